#pragma once
#include <cstdint>

#include "tilewright/sim/matrix_operand.h"

// The inner loops of the matrix unit, compiled once per x86-64 level and chosen at run time.
namespace tw::sim {

// Where packing puts element (mn, k) of an operand: base[(mn / 32) * mn_outer + (mn % 32) * mn_inner + k *
// k_stride].
//   the vector side (A): mn_outer = 32 * depth, mn_inner = 1, k_stride = 32: panels of 32 rows, contiguous in
//   m the broadcast side (B): mn_outer = 32 * depth, mn_inner = depth, k_stride = 1: rows contiguous in k
struct PackTarget {
  float* base;
  long mn_outer, mn_inner, k_stride;
  [[gnu::always_inline]] float* at(long mn, long k) const {
    return base + (mn >> 5) * mn_outer + (mn & 31) * mn_inner + k * k_stride;
  }
};

// One product: d[n][lane(m)] = (load ? d * scale : 0) + sum over k of a[m][k] * b[n][k], where lane(m) =
// lanes[m / 16] + m % 16. Each element is one chain of multiply-adds in ascending k, and a NaN becomes
// 0x7fffffff.
struct Product {
  const float* a;  // as PackTarget says, the vector side
  const float* b;  // the broadcast side
  long depth;      // allotted k of a panel
  int m, n, k;     // m: a multiple of 32; n: of 8
  float* d;
  long d_stride;  // floats from one n to the next
  const int* lanes;
  bool load;
  float scale;
};

struct MatrixKernels {
  const char* level;  // "x86-64-v4"
  // Unswizzles and converts an operand to f32.
  void (*pack)(const OperandGeometry& g, const uint8_t* memory, const PackTarget& target);
  void (*multiply)(const Product& p);
};

// The best this CPU runs. The others are for tests: the result does not depend on the level.
const MatrixKernels& matrix_kernels();
const MatrixKernels* matrix_kernels_of_level(int level);  // 1, 3, 4; nullptr if this CPU lacks it

}  // namespace tw::sim
