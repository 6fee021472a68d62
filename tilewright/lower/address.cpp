#include "tilewright/lower/address.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/ir/simplify.h"

namespace tw::lowering {

using ir::Expr;

namespace {

// Coordinates along all dimensions of the buffer.
std::vector<Expr> full_coordinate(const Context& c, const ir::Tile& tile, std::span<const Expr> coordinate) {
  std::vector<Expr> full;
  size_t kept = 0;
  for (const ir::TileDim& d : tile.dims) {
    Expr offset = c.resolve(d.offset);
    full.push_back(d.kept ? offset + coordinate[kept++] : offset);
  }
  return full;
}

Expr global_address(const Context& c, const ir::Buffer& b, const std::vector<Expr>& full) {
  int64_t bytes = bits(b.dtype) / 8;
  Expr stride = ir::integer(DType::i64, bytes);
  Expr sum = Expr(c.global_base.at(&b));
  for (size_t d = full.size(); d-- > 0;) {
    sum = sum + ir::cast(DType::i64, full[d]) * stride;
    stride = stride * ir::cast(DType::i64, c.resolve(b.shape[d]));
  }
  return sum;
}

// Place on axis m of a coordinate, before the swizzle.
Expr place(const TileLayout& layout, const std::vector<int64_t>& shape, const std::vector<Expr>& full) {
  Grouped g = layout.group(shape);
  Expr sum = static_cast<int>(layout.offset()[axis::m]);
  for (size_t d = 0; d < full.size(); ++d) {
    int64_t weight = shape[d];
    for (const Iter& it : g.dim(d)) {
      weight /= it.extent;
      Expr digit = full[d] / Expr(weight);
      // The leading digit needs no remainder: coordinates lie inside the shape.
      if (weight * it.extent != shape[d]) digit = digit % Expr(it.extent);
      sum = sum + digit * Expr(it.stride);
    }
  }
  return sum;
}

Expr shared_address(const Context& c, const ir::Buffer& b, const std::vector<Expr>& full) {
  Expr p = place(b.layout.tile_layout(), b.extents(), full);
  if (const auto& s = b.layout.swizzle()) {
    require(s->inner, "shared memory swizzles move the lower bits");
    p = ir::swizzle(p, s->per_element, s->swizzle_len, s->atom_len);
  }
  return p * Expr(bits(b.dtype) / 8) + Expr(static_cast<int64_t>(c.plan.shared.at(&b))) + Expr(c.shared_base);
}

}  // namespace

Expr element_address(const Context& c, const ir::Tile& tile, std::span<const Expr> coordinate) {
  const ir::Buffer& b = *tile.buffer;
  require(bits(b.dtype) % 8 == 0, "elements of whole bytes");
  std::vector<Expr> full = full_coordinate(c, tile, coordinate);
  return b.space == ir::Space::global ? global_address(c, b, full) : shared_address(c, b, full);
}

Expr unswizzled_address(const Context& c, const ir::Tile& tile) {
  const ir::Buffer& b = *tile.buffer;
  std::vector<Expr> first(tile.shape().size(), Expr(0));
  Expr p = place(b.layout.tile_layout(), b.extents(), full_coordinate(c, tile, first));
  return p * Expr(bits(b.dtype) / 8) + Expr(static_cast<int64_t>(c.plan.shared.at(&b))) + Expr(c.matrix_base);
}

Expr in_bounds(const Context& c, const ir::Tile& tile, std::span<const Expr> coordinate) {
  Expr inside = true;
  if (tile.buffer->space != ir::Space::global) return inside;
  std::vector<Expr> full = full_coordinate(c, tile, coordinate);
  for (size_t d = 0; d < full.size(); ++d) inside = inside && full[d] < c.resolve(tile.buffer->shape[d]);
  return inside;
}

std::variant<Fragment, std::string> fragment_of(const Context& c, const ir::Tile& tile, ir::Scope scope,
                                                const SourceLoc& loc) {
  const ir::Buffer& b = *tile.buffer;
  const TileLayout& layout = b.layout.tile_layout();
  if (!layout.replica().empty()) return format("the layout of '{}' holds copies of its elements", b.name);
  int needed = 1;  // threads
  for (const Iter& it : layout.shard()) {
    if (it.axis == axis::laneid) needed = std::max(needed, 32);
    else if (it.axis == axis::wid_in_wg || it.axis == axis::tid_in_wg) needed = std::max(needed, 128);
    else if (it.axis != axis::m) needed = c.kernel.threads;
  }
  if (needed > c.threads_of(scope))
    return format("'{}' is spread over {} threads, the scope '{}' has {}", b.name, needed, ir::name(scope),
                  c.threads_of(scope));

  std::vector<int64_t> shape = b.extents();
  Grouped g = layout.group(shape);
  int64_t count = layout.storage().span();
  Fragment f;
  f.slots.resize(static_cast<size_t>(count));
  std::vector<bool> used(static_cast<size_t>(count), true);
  for (size_t s = 0; s < f.slots.size(); ++s) f.slots[s].element = static_cast<int64_t>(s);

  for (size_t d = 0; d < shape.size(); ++d) {
    Expr thread_part = 0;
    std::vector<int64_t> slot_part(static_cast<size_t>(count), 0);
    int64_t weight = shape[d];
    for (const Iter& it : g.dim(d)) {
      weight /= it.extent;
      if (it.axis == axis::m) {
        for (int64_t s = 0; s < count; ++s)
          slot_part[static_cast<size_t>(s)] += s / it.stride % it.extent * weight;
      } else {
        thread_part =
            thread_part + c.axis_value(it.axis, loc) / Expr(it.stride) % Expr(it.extent) * Expr(weight);
      }
    }
    const ir::TileDim& region = tile.dims[d];
    auto begin = region.offset.constant();
    if (!begin) return format("the part of '{}' is chosen at run time", b.name);
    ir::Range t = ir::range(thread_part);
    for (size_t s = 0; s < f.slots.size(); ++s) {
      int64_t low = slot_part[s] + t.lo.value_or(0) - *begin, high = slot_part[s] + t.hi.value_or(0) - *begin;
      if (high < 0 || low >= region.extent) used[s] = false;
      else if (low < 0 || high >= region.extent)
        return format("threads hold different parts of {}", to_string(tile));
      if (region.kept) f.slots[s].coordinate.push_back(slot_part[s] - *begin);
    }
    if (region.kept) f.thread.push_back(thread_part);
  }
  std::vector<Fragment::Slot> slots;
  for (size_t s = 0; s < f.slots.size(); ++s)
    if (used[s]) slots.push_back(std::move(f.slots[s]));
  f.slots = std::move(slots);
  return f;
}

Runs vectorize(const Context& c, const Fragment& f, const ir::Tile& memory) {
  const ir::Buffer& b = *memory.buffer;
  int64_t bytes = bits(b.dtype) / 8;
  size_t last = f.thread.size() - 1;
  auto coordinate = [&](const Fragment::Slot& s) {
    std::vector<Expr> at;
    for (size_t d = 0; d < f.thread.size(); ++d) at.push_back(f.thread[d] + Expr(s.coordinate[d]));
    return at;
  };
  auto side_by_side = [&](size_t first, int64_t n) {
    const Fragment::Slot& a = f.slots[first];
    if (a.element % n != 0) return false;
    for (int64_t i = 1; i < n; ++i) {
      const Fragment::Slot& x = f.slots[first + static_cast<size_t>(i)];
      std::vector<int64_t> expected = a.coordinate;
      expected[last] += i;
      if (x.element != a.element + i || x.coordinate != expected) return false;
    }
    return true;
  };
  // Places of shared memory stay side by side only inside what the layout keeps together.
  int64_t together = b.space == ir::Space::shared ? b.layout.aligned_run() : INT64_MAX;
  for (int64_t n = std::max<int64_t>(1, 16 / bytes);; n /= 2) {
    bool fits = f.slots.size() % static_cast<size_t>(n) == 0 && n <= together;
    Runs out{n, {}};
    for (size_t s = 0; fits && s < f.slots.size(); s += static_cast<size_t>(n)) {
      if (n > 1 && !side_by_side(s, n)) {
        fits = false;
        break;
      }
      std::vector<Expr> at = coordinate(f.slots[s]);
      Expr address = element_address(c, memory, at);
      fits = n == 1 || ir::alignment(address) % (n * bytes) == 0;
      Expr inside = in_bounds(c, memory, at);
      if (n > 1 && !inside.is(1)) {  // a run is inside or outside as a whole
        fits = fits && ir::alignment(c.resolve(b.shape.back())) % n == 0 &&
               ir::alignment(c.resolve(memory.dims.back().offset) + at[last]) % n == 0;
      }
      out.runs.push_back({s, address, inside});
    }
    if (fits) return out;
  }
}

}  // namespace tw::lowering
