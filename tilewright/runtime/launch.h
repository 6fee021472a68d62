#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/lower/compiled.h"
#include "tilewright/runtime/device.h"
#include "tilewright/sim/simulator.h"

// From a compiled kernel and its arguments to a launch that is known to be sound, the same for every device.
namespace tw {

// What a device allows (CUDA Programming Guide, "Compute Capabilities", table of technical specifications).
struct LaunchLimits {
  std::string device;           // "sim:b200", for messages
  std::string arch;             // "sm_100a"
  uint32_t shared_per_cta = 0;  // bytes, static and dynamic together
  uint32_t static_shared = 48 * 1024;
  uint32_t max_cluster = 0;  // CTAs
  uint32_t threads_per_cta = 1024;
  sim::Dim3 grid = {0x7fffffff, 65535, 65535};
  sim::Dim3 block = {1024, 1024, 64};
};

struct Binding {
  sim::Launch launch;
  std::vector<std::pair<std::string, int64_t>> sizes;  // run-time sizes in order of appearance

  bool empty() const { return launch.grid.count() == 0; }  // nothing to run; no parameters are packed
};

// Checks the arguments against the parameters, takes run-time sizes from shapes, checks the requirements,
// evaluates the grid and packs the parameter block. A grid of no CTAs is a launch that does nothing. All
// failures are user errors that name kernel, parameter, expected and given. `device`: where every tensor must
// live.
Binding bind_arguments(const Compiled& kernel, std::span<const Argument> arguments, const Device& device);

// User errors: a module for another architecture; grid, block or cluster beyond the limits, a grid the
// cluster does not divide.
void check_target(std::string_view kernel, std::string_view target, const LaunchLimits& limits);
void check_extents(std::string_view kernel, const sim::Launch& launch, const LaunchLimits& limits);
void check_shared(std::string_view kernel, uint32_t static_bytes, uint32_t dynamic_bytes,
                  const LaunchLimits& limits);

// "gemm.step1(A = f16 [128, 64] at 0x7f0000000000, K = 64), grid [1, 1, 1], block [128, 1, 1], ..."; for
// driver errors.
std::string describe_launch(const Compiled& kernel, std::span<const Argument> arguments,
                            const Binding& binding);
std::string describe_launch(std::string_view entry, const sim::Launch& launch);

}  // namespace tw
