#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/instructions.h"
#include "kernels/registry.h"

// What the simulator and the compiler are asked for, as measurements.
namespace tw::bench {

// The arithmetic of one D += A * B of 128x128x64 f16 elements: unswizzle, convert, multiply, accumulate.
inline constexpr double tile_flops = 2.0 * 128 * 128 * 64;
Body matrix_tile();

// A square f16 product, all of a launch; `checked`: one schedule of the checker.
Body simulated_gemm(const kernels::GemmKernel& kernel, int64_t extent, const std::string& on = "sim:b200",
                    bool checked = false);

// gemm.step3 at 1024^3.
inline constexpr int64_t step3_extent = 1024;
Body step3();

// The last step of the ladder that a B200 has.
const kernels::GemmKernel& last_step();

// One 32-lane instruction, in seconds: a loop of one warp on one host thread; loop control is included.
Body instruction(const Instruction& which);

// Every instruction of the list, the fastest of its rounds, after the slowest of its kind.
std::vector<Result> instruction_results(int rounds);

// C++ to PTX text of every kernel for every architecture it is written for: the slowest of them.
Body slowest_compilation();

// What the checker costs: gemm.step9 at 1024^3, checked under one schedule, against the plain simulation.
inline constexpr int64_t checked_extent = 1024;
std::vector<Result> checker_results(int rounds);

// The measurements that need no yardstick, for `tw bench sim`.
std::vector<Result> simulator_results(int rounds);

}  // namespace tw::bench
