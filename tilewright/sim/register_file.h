#pragma once
#include <cstdint>

#include "tilewright/base/math.h"
#include "tilewright/sim/lanes.h"

// How the registers of an SM go to its warps: each of its four quarters has a quarter of them and every
// fourth warp, and a warp takes units of 8 registers a thread. An H200 grants 384 threads at 168 registers,
// 256 at 170.
namespace tw::sim {

inline constexpr uint32_t kQuarters = 4, kRegisterUnit = 8;

// Threads that an SM holds with so many registers each; 0 registers: not said, no limit.
inline uint64_t threads_that_fit(uint32_t registers, uint32_t registers_per_sm) {
  if (registers == 0) return ~uint64_t{0};
  const uint32_t a_warp = round_up(registers, kRegisterUnit) * kLanes;
  return uint64_t{kQuarters} * kLanes * (registers_per_sm / kQuarters / a_warp);
}

// The most registers that each of so many threads of an SM can have.
inline uint32_t registers_that_fit(uint64_t threads, uint32_t registers_per_sm) {
  const uint64_t warps = ceil_div<uint64_t>(threads, kLanes),
                 of_a_quarter = ceil_div<uint64_t>(warps, kQuarters);
  const uint64_t each = registers_per_sm / kQuarters / (of_a_quarter * kLanes);
  return static_cast<uint32_t>(each / kRegisterUnit * kRegisterUnit);
}

}  // namespace tw::sim
