#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/lower/context.h"

namespace tw::lowering {

// A matrix in shared memory as a tensor core's descriptor sees it.
struct MmaOperand {
  int swizzle_bytes = 0;           // 0 (none), 32, 64, 128
  int64_t leading_bytes = 0;       // between core matrices along K; unused by swizzled K-major operands
  int64_t stride_bytes = 0;        // between groups of 8 rows
  ir::Expr address;                // bytes, of element (0, 0)
  std::vector<int64_t> k_offsets;  // bytes from there to each step along K
};

// Matches a tile (rows x K) against what one descriptor can describe: every `step` elements along K start an
// instruction. Otherwise the reason.
std::variant<MmaOperand, std::string> mma_operand(const Context& c, const ir::Tile& tile, int64_t step);

// Bytes from the operand's first row to row `row`, a multiple of 8.
inline int64_t row_offset(const MmaOperand& o, int64_t row) { return row / 8 * o.stride_bytes; }

// The 64-bit descriptor of what lies `offset` bytes into the operand: its low word, address and leading
// offset in units of 16 bytes, is alike on Hopper and Blackwell; `high` is what differs. Made of two words,
// as sums of 64 bits take twice the instructions.
ptx::Operand descriptor(Emitter& e, const MmaOperand& o, int64_t offset, uint32_t high);

}  // namespace tw::lowering
