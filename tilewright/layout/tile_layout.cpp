#include "tilewright/layout/tile_layout.h"

#include <algorithm>
#include <set>

#include "tilewright/base/error.h"
#include "tilewright/layout/detail.h"

namespace tw {
namespace {

constexpr int64_t limit = int64_t{1} << 62;

// Lowest and highest sum of the iters on one axis.
struct Bounds {
  int64_t low = 0, high = 0;
  void add(const Iter& it) {
    const int64_t reach = detail::checked_mul(it.extent - 1, it.stride);
    (reach < 0 ? low : high) = detail::checked_add(reach < 0 ? low : high, reach);
  }
};

Bounds bounds(const TileLayout& l, Axis a) {
  Bounds b;
  for (const Iter& it : l.shard())
    if (it.axis == a) b.add(it);
  for (const Iter& it : l.replica())
    if (it.axis == a) b.add(it);
  return b;
}

}  // namespace

namespace detail {

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r) || r > limit || r < -limit)
    user_error({}, "a layout's numbers fit in 62 bits, {} x {} does not", a, b);
  return r;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r) || r > limit || r < -limit)
    user_error({}, "a layout's numbers fit in 62 bits, {} + {} does not", a, b);
  return r;
}

Point shard_at(std::span<const Iter> shard, int64_t linear) {
  Point p;
  for (size_t i = shard.size(); i-- > 0;) {
    p.add(shard[i].axis, linear % shard[i].extent * shard[i].stride);
    linear /= shard[i].extent;
  }
  return p;
}

int64_t product(std::span<const Iter> iters) {
  int64_t n = 1;
  for (const Iter& it : iters) n *= it.extent;
  return n;
}

void append(std::vector<Iter>& to, std::span<const Iter> iters) {
  to.insert(to.end(), iters.begin(), iters.end());
}

std::vector<Iter> scale(std::span<const Iter> iters, const std::function<int64_t(Axis)>& factor) {
  std::vector<Iter> out(iters.begin(), iters.end());
  for (Iter& it : out) it.stride = checked_mul(it.stride, factor(it.axis));
  return out;
}

Point scale(const Point& p, const std::function<int64_t(Axis)>& factor) {
  Point out;
  for (const auto& [a, v] : p.entries()) out.add(a, checked_mul(v, factor(a)));
  return out;
}

}  // namespace detail

int64_t volume(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t e : shape) {
    if (e < 1) user_error({}, "a dimension has at least 1 element, not {}", e);
    n = detail::checked_mul(n, e);
  }
  return n;
}

int64_t linearize(std::span<const int64_t> coordinate, std::span<const int64_t> shape) {
  if (coordinate.size() != shape.size())
    user_error({}, "a coordinate of {} numbers for a shape of {} dimensions", coordinate.size(),
               shape.size());
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (coordinate[d] < 0 || coordinate[d] >= shape[d])
      user_error({}, "coordinate {} of dimension {} lies outside its {} elements", coordinate[d], d,
                 shape[d]);
    linear = linear * shape[d] + coordinate[d];
  }
  return linear;
}

Shape delinearize(int64_t linear, std::span<const int64_t> shape) {
  Shape c(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    c[d] = linear % shape[d];
    linear /= shape[d];
  }
  return c;
}

int64_t Point::operator[](Axis a) const {
  for (const auto& [b, v] : entries_)
    if (a == b) return v;
  return 0;
}

void Point::add(Axis a, int64_t v) {
  if (v == 0) return;
  auto at = std::lower_bound(entries_.begin(), entries_.end(), a,
                             [](const Entry& e, Axis x) { return e.first < x; });
  if (at == entries_.end() || at->first != a) {
    entries_.insert(at, {a, v});
    return;
  }
  at->second += v;
  if (at->second == 0) entries_.erase(at);
}

Point& Point::operator+=(const Point& o) {
  for (const auto& [a, v] : o.entries_) add(a, v);
  return *this;
}

TileLayout::TileLayout() : shard_{Iter{}} {}

TileLayout::TileLayout(std::vector<Iter> shard, std::vector<Iter> replica, Point offset)
    : shard_(std::move(shard)), replica_(std::move(replica)), offset_(std::move(offset)) {
  if (shard_.empty()) shard_.push_back(Iter{});
  int64_t total = 1;
  for (const auto* iters : {&shard_, &replica_})
    for (const Iter& it : *iters) {
      if (it.extent < 1) user_error({}, "an iter has an extent of at least 1, not {}", it.extent);
      total = detail::checked_mul(total, it.extent);
    }
  for (Axis a : axes()) {
    const Bounds b = bounds(*this, a);
    detail::checked_add(b.low, offset_[a]);
    detail::checked_add(detail::checked_add(b.high, -b.low), offset_[a]);
  }
  for (Iter& it : replica_)
    if (it.stride < 0) {
      offset_.add(it.axis, (it.extent - 1) * it.stride);
      it.stride = -it.stride;
    }
}

TileLayout TileLayout::row_major(std::span<const int64_t> shape, Axis axis) {
  std::vector<Iter> shard(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    shard[d] = {shape[d], stride, axis};
    stride = detail::checked_mul(stride, shape[d]);
  }
  return TileLayout(std::move(shard));
}

TileLayout TileLayout::row_major(std::initializer_list<int64_t> shape, Axis axis) {
  return row_major(std::span(shape.begin(), shape.size()), axis);
}

TileLayout TileLayout::column_major(std::span<const int64_t> shape, Axis axis) {
  std::vector<Iter> shard(shape.size());
  int64_t stride = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    shard[d] = {shape[d], stride, axis};
    stride = detail::checked_mul(stride, shape[d]);
  }
  return TileLayout(std::move(shard));
}

TileLayout TileLayout::with_offset(Point offset) const {
  return TileLayout(shard_, replica_, std::move(offset));
}

Point TileLayout::at(int64_t linear) const {
  if (linear < 0 || linear >= size())
    user_error({}, "logical index {} lies outside a layout of {} elements", linear, size());
  Point p = detail::shard_at(shard_, linear);
  p += offset_;
  return p;
}

int64_t TileLayout::at(int64_t linear, Axis axis) const {
  if (linear < 0 || linear >= size())
    user_error({}, "logical index {} lies outside a layout of {} elements", linear, size());
  int64_t sum = offset_[axis];
  for (size_t i = shard_.size(); i-- > 0;) {
    const Iter& it = shard_[i];
    if (it.axis == axis) sum += linear % it.extent * it.stride;
    linear /= it.extent;
  }
  return sum;
}

Point TileLayout::at(std::span<const int64_t> coordinate, std::span<const int64_t> shape) const {
  if (volume(shape) != size())
    user_error({}, "a shape of {} elements for a layout of {}", volume(shape), size());
  return at(linearize(coordinate, shape));
}

std::vector<Point> TileLayout::apply(int64_t linear) const {
  const Point base = at(linear);
  std::set<Point> points;
  for (int64_t r = copies(); r-- > 0;) {
    Point p = base;
    p += detail::shard_at(replica_, r);
    points.insert(std::move(p));
  }
  return {points.begin(), points.end()};
}

std::vector<Point> TileLayout::apply(std::span<const int64_t> coordinate,
                                     std::span<const int64_t> shape) const {
  if (volume(shape) != size())
    user_error({}, "a shape of {} elements for a layout of {}", volume(shape), size());
  return apply(linearize(coordinate, shape));
}

int64_t TileLayout::size() const { return detail::product(shard_); }

int64_t TileLayout::size(Axis axis) const {
  int64_t n = 1;
  for (const Iter& it : shard_)
    if (it.axis == axis) n *= it.extent;
  return n;
}

int64_t TileLayout::copies() const { return detail::product(replica_); }

int64_t TileLayout::extent(Axis axis) const {
  const Bounds b = bounds(*this, axis);
  return b.high - b.low + 1;
}

int64_t TileLayout::span(Axis axis) const { return bounds(*this, axis).high + offset_[axis] + 1; }

int64_t TileLayout::span() const {
  int64_t n = 1;
  for (Axis a : axes())
    if (a.is_memory()) n += span(a) - 1;
  return n;
}

bool TileLayout::has_axis(Axis axis) const {
  const auto all = axes();
  return std::find(all.begin(), all.end(), axis) != all.end();
}

std::vector<Axis> TileLayout::axes() const {
  std::set<Axis> found;
  for (const auto* iters : {&shard_, &replica_})
    for (const Iter& it : *iters)
      if (it.extent > 1) found.insert(it.axis);
  for (const auto& [a, v] : offset_.entries()) found.insert(a);
  return {found.begin(), found.end()};
}

bool TileLayout::is_identity() const {
  const TileLayout c = canonicalize();
  return c.replica_.empty() && c.offset_ == Point() && c.shard_.size() == 1 && c.shard_[0].axis == axis::m &&
         c.shard_[0].stride == 1;
}

}  // namespace tw
