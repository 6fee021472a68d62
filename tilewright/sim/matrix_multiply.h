#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tilewright/sim/matrix_kernels.h"
#include "tilewright/sim/matrix_operand.h"

// The arithmetic of the matrix unit: D = A * B + D for wgmma and tcgen05.
//
// What it computes: products of the exact operand values in f32 (exact for all types but for over- and
// underflow of bf16 and tf32), added one after the other in ascending k with round to nearest even, starting
// from D (or 0). An f16 D is widened before and rounded after each instruction; an integer D is exact, and
// wraps or saturates once an instruction. The PTX ISA leaves order and rounding open ("at least single
// precision"), and hardware differs in the last bits.
namespace tw::sim {

// Where D lies: 32-bit cells, element (m, n) at cells[n * stride + lanes[m / 16] + m % 16]. An f16 element is
// the low half of its cell ("Packing format for matrix D in Tensor Memory").
struct AccumulatorTile {
  uint32_t* cells = nullptr;
  long stride = 0;
  int m = 0, n = 0;  // m: a multiple of 16 (of 32 in tensor memory); n: of 8
  std::array<int, 8> lanes{};
  DType type = DType::f32;  // f32, f16, i32
  bool operator==(const AccumulatorTile&) const = default;
  bool overlaps(const AccumulatorTile& other) const;  // of the same memory: some cell belongs to both
};

struct MatrixOperand {
  OperandGeometry geometry;
  const std::byte* memory = nullptr;  // what the geometry's addresses count from
};

struct MatrixProduct {
  MatrixOperand a, b;
  // Of a CTA pair: b holds the first half of B's columns, b_upper the second. No memory: b holds all.
  MatrixOperand b_upper;
  int k = 0;
  bool negate = false;                       // the product: negate_a XOR negate_b
  bool accumulate = false;                   // false: D = A * B, D is not read
  int scale_exponent = 0;                    // D * 2^-scale_exponent + A * B
  bool saturate = false;                     // integer D
  std::array<uint32_t, 4> disabled_lanes{};  // bit i of the mask: cells at lane i of D are not written
};

// A chain of products on one accumulator. append() reads the operands at once; the arithmetic on D may wait
// until flush(), so that the k-steps of one tile pass over D once. Whoever touches D's cells must flush
// first.
class MatrixUnit {
 public:
  MatrixUnit();
  ~MatrixUnit();
  void append(const AccumulatorTile& d, const MatrixProduct& product);
  void flush();
  bool pending() const { return depth_ != 0; }
  const AccumulatorTile& tile() const { return tile_; }  // of the pending chain
  const MatrixKernels* kernels;                          // replaceable, for tests

 private:
  bool continues(const AccumulatorTile& d, const MatrixProduct& product) const;
  void flush_staged();
  AccumulatorTile tile_;
  MatrixProduct first_;  // of the pending chain; its operands have been read
  int depth_ = 0;        // k elements pending
  struct Buffers;
  struct Spare;
  std::unique_ptr<Buffers> buffers_;
};

// Seconds for one D = A * B + D of m x n x k f16 elements out of 128B-swizzled K-major tiles in (simulated)
// shared memory into (simulated) tensor memory, as k / 16 instructions, best of `repeats`: for benchmarks.
double time_matrix_tile(int m, int n, int k, int repeats);

}  // namespace tw::sim
