#include <numeric>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/layout/constructors.h"

namespace tw {
namespace {

using namespace axis;

// Elements of a 32-bit register.
int64_t per_register(DType element) {
  const int b = bits(element);
  if (b > 32 || 32 % b != 0)
    user_error({}, "no fragment of {}: {} bits do not divide a 32-bit register", name(element), b);
  return 32 / b;
}

// k comes in chunks that fill one register of each of four lanes.
int64_t register_chunks(DType element, int64_t k) {
  const int64_t chunk = 4 * per_register(element);
  if (k != chunk && k != 2 * chunk)
    user_error({}, "an mma fragment of {} has k = {} or {}, not {}", name(element), chunk, 2 * chunk, k);
  return k / chunk;
}

}  // namespace

Shape mma_shared_atom_shape(DType element, SwizzleMode mode) {
  Swizzle::of(mode, element);  // the type's rules
  return {8, width_bytes(mode) * 8 / bits(element)};
}

Layout mma_shared_layout(DType element, SwizzleMode mode, std::span<const int64_t> shape, Major major) {
  if (shape.size() < 2)
    user_error({}, "an MMA operand in shared memory has rows and K; {} dimensions", shape.size());
  const Shape tail = mma_shared_atom_shape(element, mode);
  const size_t rank = shape.size();
  if (major == Major::mn) {
    std::vector<int> exchanged(rank);
    std::iota(exchanged.begin(), exchanged.end(), 0);
    std::swap(exchanged[rank - 2], exchanged[rank - 1]);
    Shape turned(shape.begin(), shape.end());
    std::swap(turned[rank - 2], turned[rank - 1]);
    return mma_shared_layout(element, mode, turned).permute_dims(turned, exchanged);
  }
  Shape atom(rank, 1), outer(shape.begin(), shape.end());
  std::vector<Iter> order(rank);
  for (size_t d : {rank - 2, rank - 1}) {
    atom[d] = tail[d + 2 - rank];
    if (shape[d] % atom[d] != 0)
      user_error({},
                 "dimension {} of an MMA operand of {} under a {}-byte swizzle is a multiple of {}, not {}",
                 d, name(element), width_bytes(mode), atom[d], shape[d]);
    outer[d] = shape[d] / atom[d];
  }
  order[rank - 2] = {outer[rank - 2], 1, m};
  order[rank - 1] = {outer[rank - 1], outer[rank - 2], m};
  int64_t stride = outer[rank - 1] * outer[rank - 2];
  for (size_t d = rank - 2; d-- > 0;) {
    order[d] = {outer[d], stride, m};
    stride *= outer[d];
  }
  return Layout(Swizzle::of(mode, element), TileLayout::row_major(atom)).tile(TileLayout(order), outer, atom);
}

TileLayout mma_a_fragment(DType element, int64_t k) {
  const int64_t e = per_register(element), chunks = register_chunks(element, k);
  return TileLayout({{2, e, m}, {8, 4, laneid}, {chunks, 2 * e, m}, {4, 1, laneid}, {e, 1, m}})
      .canonicalize();
}

TileLayout mma_b_fragment(DType element, int64_t k) {
  const int64_t e = per_register(element), chunks = register_chunks(element, k);
  return TileLayout({{chunks, e, m}, {4, 1, laneid}, {e, 1, m}, {8, 4, laneid}}).canonicalize();
}

TileLayout mma_accumulator_fragment() {
  return TileLayout({{2, 2, m}, {8, 4, laneid}, {4, 1, laneid}, {2, 1, m}}).canonicalize();
}

TileLayout ldmatrix_fragment(int64_t matrices, bool transposed) {
  if (matrices != 1 && matrices != 2 && matrices != 4)
    user_error({}, "ldmatrix and stmatrix move 1, 2 or 4 matrices, not {}", matrices);
  if (transposed)
    return TileLayout({{matrices, 2, m}, {4, 1, laneid}, {2, 1, m}, {8, 4, laneid}}).canonicalize();
  return TileLayout({{matrices, 2, m}, {8, 4, laneid}, {4, 1, laneid}, {2, 1, m}}).canonicalize();
}

TileLayout wgmma_accumulator_fragment(int64_t n) {
  if (n < 8 || n > 256 || n % 8 != 0) user_error({}, "wgmma has N = 8, 16, ..., 256, not {}", n);
  return TileLayout({{4, 1, wid_in_wg}, {2, 2, m}, {8, 4, laneid}, {n / 8, 4, m}, {4, 1, laneid}, {2, 1, m}})
      .canonicalize();
}

TileLayout wgmma_a_fragment(DType element) {
  const int64_t e = per_register(element);
  return TileLayout({{4, 1, wid_in_wg}, {2, e, m}, {8, 4, laneid}, {2, 2 * e, m}, {4, 1, laneid}, {e, 1, m}})
      .canonicalize();
}

TileLayout row_per_thread_layout(int64_t columns, int64_t rows) {
  return TileLayout({{rows, 1, tid_in_wg}, {columns, 1, m}}).canonicalize();
}

}  // namespace tw
