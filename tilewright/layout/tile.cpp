#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/layout/detail.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {
namespace {

void require_one_rank(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() != b.size())
    user_error({}, "two shapes of one rank are needed, these have {} and {} dimensions", a.size(), b.size());
}

Shape divide(std::span<const int64_t> shape, std::span<const int64_t> by) {
  require_one_rank(shape, by);
  Shape q(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (by[d] < 1 || shape[d] % by[d] != 0)
      user_error({}, "dimension {} of {} elements is no multiple of {}", d, shape[d], by[d]);
    q[d] = shape[d] / by[d];
  }
  return q;
}

// The iters of `a` and `b`, dimension by dimension.
std::vector<Iter> interleave(const Grouped& a, const Grouped& b) {
  std::vector<Iter> out;
  for (size_t d = 0; d + 1 < a.separators.size(); ++d) {
    detail::append(out, a.dim(d));
    detail::append(out, b.dim(d));
  }
  return out;
}

// The two factors of an interleaved layout.
struct Halves {
  std::vector<Iter> outer, inner;
};

std::optional<Halves> separate(const TileLayout& l, std::span<const int64_t> outer_shape,
                               std::span<const int64_t> inner_shape) {
  Shape both;
  for (size_t d = 0; d < outer_shape.size(); ++d) {
    both.push_back(outer_shape[d]);
    both.push_back(inner_shape[d]);
  }
  const auto g = l.try_group(both);
  if (!g) return std::nullopt;
  Halves h;
  for (size_t d = 0; d < outer_shape.size(); ++d) {
    detail::append(h.outer, g->dim(2 * d));
    detail::append(h.inner, g->dim(2 * d + 1));
  }
  return h;
}

Point minus(const Point& a, const Point& b) {
  Point out = a;
  out += detail::scale(b, [](Axis) { return -1; });
  return out;
}

bool divide_strides(std::vector<Iter>& iters, const TileLayout& inner) {
  for (Iter& it : iters) {
    if (it.extent == 1) continue;
    const int64_t e = inner.extent(it.axis);
    if (it.stride % e != 0) return false;
    it.stride /= e;
  }
  return true;
}

}  // namespace

namespace detail {

std::optional<std::vector<Iter>> without_replicas(const std::vector<Iter>& all,
                                                  const std::vector<Iter>& part) {
  std::vector<Iter> rest = all;
  for (const Iter& p : part) {
    // p may have been fused into a longer replica on either side.
    const auto host = std::find_if(rest.begin(), rest.end(), [&](const Iter& r) {
      return r.axis == p.axis && r.extent % p.extent == 0 && p.stride % r.stride == 0 &&
             (p.stride == r.stride || p.stride / r.stride * p.extent == r.extent);
    });
    if (host == rest.end()) return std::nullopt;
    const Iter left{host->extent / p.extent, p.stride == host->stride ? p.stride * p.extent : host->stride,
                    p.axis};
    rest.erase(host);
    if (left.extent > 1) rest.push_back(left);
  }
  return rest;
}

}  // namespace detail

TileLayout TileLayout::tile(const TileLayout& outer, std::span<const int64_t> outer_shape,
                            std::span<const int64_t> inner_shape) const {
  require_one_rank(outer_shape, inner_shape);
  auto factor = [this](Axis a) { return extent(a); };
  Grouped out = outer.group(outer_shape);
  out.layout = TileLayout(detail::scale(out.layout.shard_, factor));
  std::vector<Iter> replicas = detail::scale(outer.replica_, factor);
  detail::append(replicas, replica_);
  Point origin = detail::scale(outer.offset_, factor);
  origin += offset_;
  return TileLayout(interleave(out, group(inner_shape)), std::move(replicas), std::move(origin))
      .canonicalize();
}

TileLayout TileLayout::tile_to(std::span<const int64_t> shape, std::span<const int64_t> inner_shape) const {
  const Shape outer = divide(shape, inner_shape);
  return tile(row_major(outer), outer, inner_shape);
}

std::optional<TileLayout> TileLayout::is_tile_inner(const TileLayout& inner, std::span<const int64_t> shape,
                                                    std::span<const int64_t> inner_shape) const {
  const Shape outer_shape = divide(shape, inner_shape);
  const TileLayout all = canonicalize(), in = inner.canonicalize();
  auto halves = separate(all, outer_shape, inner_shape);
  if (!halves || detail::fuse(halves->inner) != detail::fuse(in.shard_)) return std::nullopt;
  auto replicas = detail::without_replicas(all.replica_, in.replica_);
  if (!replicas || !divide_strides(halves->outer, in) || !divide_strides(*replicas, in)) return std::nullopt;
  const Point shift = minus(all.offset_, in.offset_);
  Point origin;
  for (const auto& [a, v] : shift.entries()) {
    if (v % in.extent(a) != 0) return std::nullopt;
    origin.add(a, v / in.extent(a));
  }
  TileLayout outer = TileLayout(halves->outer, *replicas, origin).canonicalize();
  if (inner.tile(outer, outer_shape, inner_shape) != all) return std::nullopt;
  return outer;
}

std::optional<TileLayout> TileLayout::is_tile_outer(const TileLayout& outer, std::span<const int64_t> shape,
                                                    std::span<const int64_t> outer_shape) const {
  const Shape inner_shape = divide(shape, outer_shape);
  const TileLayout all = canonicalize(), out = outer.canonicalize();
  auto halves = separate(all, outer_shape, inner_shape);
  if (!halves) return std::nullopt;
  const TileLayout shard_only(halves->inner);
  auto factor = [&](Axis a) { return shard_only.extent(a); };
  auto replicas = detail::without_replicas(all.replica_, detail::scale(out.replica_, factor));
  if (!replicas) return std::nullopt;
  const Point origin = minus(all.offset_, detail::scale(out.offset_, factor));
  TileLayout inner = TileLayout(halves->inner, *replicas, origin).canonicalize();
  if (inner.tile(outer, outer_shape, inner_shape) != all) return std::nullopt;
  return inner;
}

TileLayout TileLayout::direct_sum(const TileLayout& right, std::span<const int64_t> left_shape,
                                  std::span<const int64_t> right_shape) const {
  require_one_rank(left_shape, right_shape);
  std::vector<Iter> replicas = replica_;
  detail::append(replicas, right.replica_);
  Point origin = offset_;
  origin += right.offset_;
  return TileLayout(interleave(group(left_shape), right.group(right_shape)), std::move(replicas),
                    std::move(origin))
      .canonicalize();
}

std::optional<TileLayout> TileLayout::is_direct_sum_left(const TileLayout& left,
                                                         std::span<const int64_t> shape,
                                                         std::span<const int64_t> left_shape) const {
  const Shape right_shape = divide(shape, left_shape);
  const TileLayout all = canonicalize(), part = left.canonicalize();
  auto halves = separate(all, left_shape, right_shape);
  auto replicas = detail::without_replicas(all.replica_, part.replica_);
  if (!halves || !replicas) return std::nullopt;
  TileLayout right = TileLayout(halves->inner, *replicas, minus(all.offset_, part.offset_)).canonicalize();
  if (left.direct_sum(right, left_shape, right_shape) != all) return std::nullopt;
  return right;
}

std::optional<TileLayout> TileLayout::is_direct_sum_right(const TileLayout& right,
                                                          std::span<const int64_t> shape,
                                                          std::span<const int64_t> right_shape) const {
  const Shape left_shape = divide(shape, right_shape);
  const TileLayout all = canonicalize(), part = right.canonicalize();
  auto halves = separate(all, left_shape, right_shape);
  auto replicas = detail::without_replicas(all.replica_, part.replica_);
  if (!halves || !replicas) return std::nullopt;
  TileLayout left = TileLayout(halves->outer, *replicas, minus(all.offset_, part.offset_)).canonicalize();
  if (left.direct_sum(right, left_shape, right_shape) != all) return std::nullopt;
  return left;
}

}  // namespace tw
