#include "tilewright/sim/matrix_operand.h"

#include <algorithm>

#include "tilewright/base/error.h"

namespace tw::sim {

int chunk_elements(DType type) { return bits(type) == 32 ? 4 : bits(type) == 16 ? 8 : 16; }

OperandGeometry shared_operand(const SharedMatrix& matrix, DType type, bool mn_major, int extent, int k) {
  OperandGeometry g;
  g.start = matrix.start;
  g.type = type;
  g.mn_major = mn_major;
  g.rows = mn_major ? k : extent;
  g.columns = (mn_major ? extent + chunk_elements(type) - 1 : k) / chunk_elements(type);
  g.phase = matrix.base_offset * 128;
  const uint32_t leading = matrix.leading_stride, stride = matrix.stride;
  if (matrix.swizzle == SwizzleMode::none) {
    g.group_stride = mn_major ? leading : stride;
    g.column_stride = mn_major ? stride : leading;
    return g;
  }
  switch (matrix.swizzle) {
    case SwizzleMode::b32: g.width = 2, g.swizzle_mask = 1; break;
    case SwizzleMode::b64: g.width = 4, g.swizzle_mask = 3; break;
    case SwizzleMode::b128: g.width = 8, g.swizzle_mask = 7; break;
    default: g.width = 8, g.swizzle_mask = 3, g.swizzle_to = 5, g.period = 4; break;
  }
  g.pitch = g.width * 16;
  g.group_stride = stride;
  g.column_stride = leading;
  // K-major: the two chunks of a row are neighbours before swizzling, whatever the width; the leading stride
  // is unused.
  if (!mn_major) g.width = static_cast<uint32_t>(g.columns);
  return g;
}

OperandGeometry linear_operand(DType type, int extent) {
  OperandGeometry g;
  g.type = type;
  g.rows = extent;
  g.columns = 2;
  g.width = 2;
  g.pitch = 32;
  g.group_stride = 256;
  return g;
}

ByteRange extent(const OperandGeometry& g) {
  uint32_t rows = static_cast<uint32_t>(g.rows), columns = static_cast<uint32_t>(g.columns);
  uint32_t end = g.start + (std::min(rows, g.period) - 1) * g.pitch + (rows - 1) / g.period * g.group_stride +
                 (std::min(columns, g.width) - 1) * 16 + (columns - 1) / g.width * g.column_stride + 16;
  if (g.swizzle_mask == 0) return {g.start, end};
  // The swizzle permutes chunks within blocks of 128 bytes.
  return {g.start & ~127u, (end + 127) & ~127u};
}

}  // namespace tw::sim
