#include "tilewright/sim/vector_level.h"

#include <algorithm>
#include <atomic>

namespace tw::sim {

namespace {

VectorLevel detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 ? VectorLevel::avx512 : avx2 ? VectorLevel::avx2 : VectorLevel::plain;
#else
  return VectorLevel::plain;
#endif
}

std::atomic<VectorLevel> limit{VectorLevel::avx512};

}  // namespace

VectorLevel vector_level() {
  static const VectorLevel best = detect();
  return std::min(best, limit.load(std::memory_order_relaxed));
}

VectorLevelLimit::VectorLevelLimit(VectorLevel upper) : before_(limit.exchange(upper)) {}
VectorLevelLimit::~VectorLevelLimit() { limit = before_; }

}  // namespace tw::sim
