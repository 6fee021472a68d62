#include "tilewright/layout/layout.h"

#include <algorithm>
#include <numeric>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/layout/detail.h"

namespace tw {

Layout::Layout(Swizzle swizzle, TileLayout tile) : tile_(std::move(tile)) {
  if (swizzle.is_identity()) return;
  swizzle_ = swizzle;
  const int64_t lowest = tile_.span(axis::m) - tile_.extent(axis::m);
  if (lowest < 0) user_error({}, "a swizzled layout starts at place 0 or above, this one reaches {}", lowest);
}

int64_t Layout::span() const {
  const int64_t n = tile_.span(axis::m);
  return swizzle_ ? round_up(n, swizzle_->period()) : n;
}

Point Layout::swizzled(Point p) const {
  if (!swizzle_) return p;
  const int64_t place = p[axis::m];
  p.add(axis::m, swizzle_->apply(place) - place);
  return p;
}

std::vector<Point> Layout::apply(int64_t linear) const {
  std::vector<Point> points = tile_.apply(linear);
  for (Point& p : points) p = swizzled(std::move(p));
  std::sort(points.begin(), points.end());
  return points;
}

std::vector<Point> Layout::apply(std::span<const int64_t> coordinate, std::span<const int64_t> shape) const {
  if (volume(shape) != size())
    user_error({}, "a shape of {} elements for a layout of {}", volume(shape), size());
  return apply(linearize(coordinate, shape));
}

std::optional<TileLayout> Layout::is_tile_inner(const Layout& inner, std::span<const int64_t> shape,
                                                std::span<const int64_t> inner_shape) const {
  if (swizzle_ != inner.swizzle_) return std::nullopt;
  return tile_.is_tile_inner(inner.tile_, shape, inner_shape);
}

std::optional<Layout> Layout::is_tile_outer(const TileLayout& outer, std::span<const int64_t> shape,
                                            std::span<const int64_t> outer_shape) const {
  auto inner = tile_.is_tile_outer(outer, shape, outer_shape);
  if (!inner) return std::nullopt;
  return with(*std::move(inner));
}

std::optional<Layout> Layout::slice(std::span<const int64_t> shape, std::span<const Range> region) const {
  auto part = tile_.slice(shape, region);
  if (!part) return std::nullopt;
  return with(*std::move(part));
}

Layout Layout::unpack(int64_t n) const {
  if (!swizzle_) return tile_.unpack(n);
  if (!is_power_of_two(n)) user_error({}, "a swizzled element is unpacked into a power of two, not {}", n);
  Swizzle s = *swizzle_;
  return Layout(Swizzle(s.per_element + log2_exact(n), s.swizzle_len, s.atom_len, s.inner), tile_.unpack(n));
}

std::optional<Layout> Layout::pack(int64_t n) const {
  auto packed = tile_.pack(n);
  if (!packed) return std::nullopt;
  if (!swizzle_) return Layout(*std::move(packed));
  Swizzle s = *swizzle_;
  if (!is_power_of_two(n) || log2_exact(n) > s.per_element) return std::nullopt;
  return Layout(Swizzle(s.per_element - log2_exact(n), s.swizzle_len, s.atom_len, s.inner),
                *std::move(packed));
}

int64_t Layout::aligned_run() const {
  int64_t n = tile_.contiguous();
  const auto digits = detail::fuse(tile_.shard());
  for (size_t i = 0; i < digits.size(); ++i)
    if (digits[i].axis == axis::m && !(i + 1 == digits.size() && n > 1)) n = std::gcd(n, digits[i].stride);
  for (const Iter& it : tile_.replica())
    if (it.axis == axis::m && it.extent > 1) n = std::gcd(n, it.stride);
  n = std::gcd(n, tile_.offset()[axis::m]);
  if (swizzle_) n = std::gcd(n, int64_t{1} << swizzle_->per_element);
  return n;
}

}  // namespace tw
