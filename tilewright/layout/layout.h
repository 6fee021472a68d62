#pragma once
#include <optional>
#include <span>
#include <vector>

#include "tilewright/layout/swizzle.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {

// The layout of a buffer or register tile: a TileLayout, optionally followed by a swizzle of its `m`
// coordinate.
class Layout {
 public:
  Layout() = default;
  Layout(TileLayout tile) : tile_(std::move(tile)) {}  // NOLINT: a TileLayout is a Layout
  // A user error when the tile reaches below place 0 of `m`, where a swizzle is not defined.
  Layout(Swizzle swizzle, TileLayout tile);

  const TileLayout& tile_layout() const { return tile_; }
  const std::optional<Swizzle>& swizzle() const { return swizzle_; }  // never the identity

  int64_t size() const { return tile_.size(); }
  // One more than the highest place on `m` (whole periods of the swizzle).
  int64_t span() const;

  // The place on `m`, in elements: what a buffer's address is computed from.
  int64_t place(int64_t linear) const {
    const int64_t p = tile_.at(linear, axis::m);
    return swizzle_ ? swizzle_->apply(p) : p;
  }
  Point at(int64_t linear) const { return swizzled(tile_.at(linear)); }
  Point at(std::span<const int64_t> coordinate, std::span<const int64_t> shape) const {
    return swizzled(tile_.at(coordinate, shape));
  }
  std::vector<Point> apply(int64_t linear) const;
  std::vector<Point> apply(std::span<const int64_t> coordinate, std::span<const int64_t> shape) const;

  // Operations of the tile under the same swizzle; see TileLayout.
  Layout canonicalize() const { return with(tile_.canonicalize()); }
  Layout canonicalize_threads() const { return with(tile_.canonicalize_threads()); }
  Layout tile(const TileLayout& outer, std::span<const int64_t> outer_shape,
              std::span<const int64_t> inner_shape) const {
    return with(tile_.tile(outer, outer_shape, inner_shape));
  }
  Layout tile_to(std::span<const int64_t> shape, std::span<const int64_t> inner_shape) const {
    return with(tile_.tile_to(shape, inner_shape));
  }
  std::optional<TileLayout> is_tile_inner(const Layout& inner, std::span<const int64_t> shape,
                                          std::span<const int64_t> inner_shape) const;
  std::optional<Layout> is_tile_outer(const TileLayout& outer, std::span<const int64_t> shape,
                                      std::span<const int64_t> outer_shape) const;
  std::optional<Layout> slice(std::span<const int64_t> shape, std::span<const Range> region) const;
  Layout permute_dims(std::span<const int64_t> shape, std::span<const int> order) const {
    return with(tile_.permute_dims(shape, order));
  }
  Layout broadcast(std::span<const int64_t> shape, int position, int64_t extent) const {
    return with(tile_.broadcast(shape, position, extent));
  }
  // n must be a power of two when there is a swizzle: a user error from unpack, nullopt from pack.
  Layout unpack(int64_t n) const;
  std::optional<Layout> pack(int64_t n) const;
  Layout storage() const { return with(tile_.storage()); }
  bool is_injective() const { return tile_.is_injective(); }

  // The largest n such that every aligned run of n elements lies in n consecutive places of `m` that start at
  // a multiple of n.
  int64_t aligned_run() const;

  bool equivalent(const Layout& o) const { return canonicalize() == o.canonicalize(); }
  bool operator==(const Layout&) const = default;

 private:
  Layout with(TileLayout t) const {
    return swizzle_ ? Layout(*swizzle_, std::move(t)) : Layout(std::move(t));
  }
  Point swizzled(Point p) const;

  std::optional<Swizzle> swizzle_;
  TileLayout tile_;
};

}  // namespace tw
