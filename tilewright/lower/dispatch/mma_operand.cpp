#include "tilewright/lower/dispatch/mma_operand.h"

#include "tilewright/base/error.h"
#include "tilewright/lower/address.h"

namespace tw::lowering {

namespace {

// Places along axis m (before the swizzle) of the tile's elements, relative to its first one. The offsets of
// a tile move all its elements alike when they are multiples of the pattern, which the caller checks.
class Places {
 public:
  explicit Places(const ir::Tile& tile)
      : layout_(tile.buffer->layout.tile_layout()), shape_(tile.buffer->extents()) {
    for (size_t d = 0; d < tile.dims.size(); ++d)
      if (tile.dims[d].kept) kept_.push_back(d);
  }
  int64_t operator()(int64_t row, int64_t k) const {
    std::vector<int64_t> at(shape_.size(), 0);
    at[kept_[0]] = row;
    at[kept_[1]] = k;
    return layout_.at(linearize(at, shape_), axis::m);
  }

 private:
  const TileLayout& layout_;
  std::vector<int64_t> shape_;
  std::vector<size_t> kept_;
};

}  // namespace

std::variant<MmaOperand, std::string> mma_operand(const Context& c, const ir::Tile& tile, int64_t step) {
  const ir::Buffer& b = *tile.buffer;
  if (b.space != ir::Space::shared) return format("'{}' is not in shared memory", b.name);
  int64_t bytes = bits(b.dtype) / 8;
  int64_t rows = tile.shape()[0], k = tile.shape()[1];
  if (rows % 8 != 0) return format("'{}' has {} rows, no multiple of 8", b.name, rows);
  if (k % step != 0) return format("'{}' has K = {}, no multiple of the instruction's {}", b.name, k, step);

  MmaOperand o;
  if (const auto& s = b.layout.swizzle()) {
    o.swizzle_bytes = 16 << s->swizzle_len;
    if (!(*s == Swizzle::of(s->swizzle_len == 3   ? SwizzleMode::b128
                            : s->swizzle_len == 2 ? SwizzleMode::b64
                                                  : SwizzleMode::b32,
                            b.dtype)))
      return format("the swizzle of '{}' is none of the tensor core's", b.name);
  }
  size_t d = 0;
  for (const ir::TileDim& dim : tile.dims) {
    if (!dim.kept) continue;
    int64_t multiple = d++ == 0 ? 8 : step;
    if (ir::alignment(c.resolve(dim.offset)) % (multiple & -multiple) != 0)
      return format("{} does not start at a multiple of {} along dimension {}", to_string(tile), multiple,
                    d - 1);
  }

  Places place(tile);
  int64_t chunk = 16 / bytes;                                         // elements of a core matrix' row
  int64_t pitch = o.swizzle_bytes ? o.swizzle_bytes / bytes : chunk;  // between rows of a group of 8
  int64_t group = rows > 8 ? place(8, 0) : 8 * pitch;
  int64_t leading = !o.swizzle_bytes && step > chunk ? place(0, chunk) : 0;
  for (int64_t first = 0; first < k; first += step) {
    int64_t start = place(0, first);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t x = 0; x < step; ++x) {
        int64_t expected = o.swizzle_bytes ? x : x / chunk * leading + x % chunk;
        if (place(r, first + x) - start != r / 8 * group + r % 8 * pitch + expected)
          return format("'{}' is not a K-major operand: element ({}, {}) lies elsewhere", b.name, r,
                        first + x);
      }
    }
    o.k_offsets.push_back(start * bytes);
  }
  o.stride_bytes = group * bytes;
  o.leading_bytes = leading * bytes;
  o.address = unswizzled_address(c, tile);
  return o;
}

ptx::Operand descriptor(Emitter& e, const MmaOperand& o, int64_t offset, uint32_t high) {
  const ir::Expr low = (o.address + ir::Expr(offset)) / 16 + ir::Expr(o.leading_bytes >> 4 << 16);
  ptx::RegId both = e.fresh(ptx::Type::b64);
  e.emit("mov.b64", {ptx::reg(both),
                     ptx::vector({ptx::reg(e.reg(low)), ptx::reg(e.reg(ir::integer(DType::u32, high)))})});
  return ptx::reg(both);
}

}  // namespace tw::lowering
