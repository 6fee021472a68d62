#pragma once
#include <cstdint>

#include "tilewright/sim/matrix_descriptor.h"

// Where the elements of an MMA operand lie. The canonical layouts of the PTX ISA (wgmma "Canonical Layouts",
// tcgen05 "Canonical Layouts"), written once for all modes: the operand is a grid of 16-byte chunks, `rows`
// of them down the dimension that is not contiguous and `columns` along the contiguous one.
//   K-major:  a row is one m (or n), its chunks run along k
//   MN-major: a row is one k, its chunks run along m (or n)
// The chunk at (row, column) is at
//   swizzle(start + row % period * pitch + row / period * group_stride + column % width * 16 + column / width
//   * column_stride)
namespace tw::sim {

struct OperandGeometry {
  uint32_t start = 0;
  uint32_t period = 8;
  uint32_t pitch = 16;
  uint32_t group_stride = 0;
  uint32_t width = 1;
  uint32_t column_stride = 0;
  // Swizzle on the absolute address: its bits above `swizzle_to` are XORed with ((address - phase) >> 7) &
  // swizzle_mask.
  uint32_t swizzle_mask = 0;
  uint32_t swizzle_to = 4;
  uint32_t phase = 0;

  int rows = 0, columns = 0;
  DType type = DType::f16;
  bool mn_major = false;
  bool operator==(const OperandGeometry&) const = default;

  uint32_t address(uint32_t row, uint32_t column) const {
    uint32_t a = start + row % period * pitch + row / period * group_stride + column % width * 16 +
                 column / width * column_stride;
    return swizzled(a);
  }
  // f(address) of every chunk, row by row.
  template <class F>
  void each_address(F f) const {
    for (uint32_t r = 0, in_period = 0, row = start; r < static_cast<uint32_t>(rows); ++r) {
      for (uint32_t c = 0, in_width = 0, at = row; c < static_cast<uint32_t>(columns); ++c) {
        f(swizzled(at));
        const bool wide = ++in_width == width;
        at += wide ? column_stride - (width - 1) * 16 : 16;
        if (wide) in_width = 0;
      }
      const bool whole = ++in_period == period;
      row += whole ? group_stride - (period - 1) * pitch : pitch;
      if (whole) in_period = 0;
    }
  }

 private:
  uint32_t swizzled(uint32_t a) const { return a ^ (((a - phase) >> 7 & swizzle_mask) << swizzle_to); }
};

// Elements in a 16-byte chunk: 4 of tf32, 8 of f16 and bf16, 16 of every narrower type (6- and 4-bit elements
// lie packed at the chunk's start, padded to 16 bytes: "Packing format used for matrix A and B ... in Shared
// Memory").
int chunk_elements(DType type);

// An operand of `extent` (M or N) by `k` elements described by `matrix`.
OperandGeometry shared_operand(const SharedMatrix& matrix, DType type, bool mn_major, int extent, int k);
// An operand of `extent` rows of 32 bytes of k, one after the other: copies of register or tensor-memory
// operands.
OperandGeometry linear_operand(DType type, int extent);

// Bytes [begin, end) that hold all chunks; may include more than the chunks.
struct ByteRange {
  uint32_t begin, end;
};
ByteRange extent(const OperandGeometry& g);

}  // namespace tw::sim
