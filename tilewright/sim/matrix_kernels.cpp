#include "tilewright/sim/matrix_kernels.h"

namespace tw::sim {

extern const MatrixKernels kMatrixKernelsV1, kMatrixKernelsV3, kMatrixKernelsV4;

namespace {

// What the levels add that the kernels use ("x86-64 psABI", micro-architecture levels).
bool cpu_has(int level) {
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("f16c");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  return level == 4 ? v4 : level == 3 ? v3 : true;
}

}  // namespace

const MatrixKernels* matrix_kernels_of_level(int level) {
  if (!cpu_has(level)) return nullptr;
  return level == 4 ? &kMatrixKernelsV4 : level == 3 ? &kMatrixKernelsV3 : &kMatrixKernelsV1;
}

const MatrixKernels& matrix_kernels() {
  static const MatrixKernels& best = *[] {
    for (int level : {4, 3}) {
      if (const MatrixKernels* k = matrix_kernels_of_level(level)) return k;
    }
    return &kMatrixKernelsV1;
  }();
  return best;
}

}  // namespace tw::sim
