#pragma once
// Shared by the implementation of the algebra; not part of its interface.
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tilewright/layout/tile_layout.h"

namespace tw::detail {

// Products and sums that leave 62 bits are a user error: layouts come from people.
int64_t checked_mul(int64_t a, int64_t b);
int64_t checked_add(int64_t a, int64_t b);

// Drops unit iters and fuses neighbours.
std::vector<Iter> fuse(std::span<const Iter> shard);

// The strided layout equal to x -> f(x) on [0, n), as fused iters with f(0) left out; nullopt when there is
// none. The fused form of a map is unique, so reading it off f decides the question, in time linear in n.
std::optional<std::vector<Iter>> fit(int64_t n, const std::function<Point(int64_t)>& f);

// Coordinate of a shard at a logical index, offset left out.
Point shard_at(std::span<const Iter> shard, int64_t linear);
int64_t product(std::span<const Iter> iters);
void append(std::vector<Iter>& to, std::span<const Iter> iters);
// Strides of each iter (or coordinates of a point) multiplied by a factor of their axis.
std::vector<Iter> scale(std::span<const Iter> iters, const std::function<int64_t(Axis)>& factor);
Point scale(const Point& p, const std::function<int64_t(Axis)>& factor);

// Replicas left when those of `part` are taken out of `all`; nullopt when they are not among them.
std::optional<std::vector<Iter>> without_replicas(const std::vector<Iter>& all,
                                                  const std::vector<Iter>& part);

// A boundary the digits of which the layout cannot split.
struct Mismatch {
  int64_t a, b;
};
std::optional<GroupedMany> group_canonical_or_not(const TileLayout& layout, std::span<const Shape> shapes,
                                                  Mismatch* why);

}  // namespace tw::detail
