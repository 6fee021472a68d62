#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "tilewright/base/dtype.h"

// Register fragments of wgmma ("Register Fragments", figures 148 to 155), for one warp of the four: `warp` is
// its rank in the warpgroup. A register is a row of 32 threads. The matrices are M = 64 rows.
namespace tw::sim {

// Registers of the accumulator a thread holds: N / 2, or N / 4 when `type` is f16 (two elements each).
int wgmma_accumulator_registers(DType type, int n);
// Between registers and a dense tile tile[n * 64 + m] of 32-bit cells, f16 in the low half of its cell.
void wgmma_gather(DType type, int n, int warp, std::span<const uint32_t* const> registers, uint32_t* tile);
void wgmma_scatter(DType type, int n, int warp, const uint32_t* tile, std::span<uint32_t* const> registers);

// Matrix A from its four registers into 64 rows of 32 bytes of k.
void wgmma_gather_a(int warp, std::span<const uint32_t* const> registers, std::byte* rows);

}  // namespace tw::sim
