#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/layout/axis.h"

namespace tw {

using Shape = std::vector<int64_t>;

// The number of elements of a shape; a user error when a dimension is below 1 or the product leaves int64.
int64_t volume(std::span<const int64_t> shape);
// Row-major position of a coordinate; a user error when it lies outside the shape.
int64_t linearize(std::span<const int64_t> coordinate, std::span<const int64_t> shape);
Shape delinearize(int64_t linear, std::span<const int64_t> shape);

// One digit of a layout: `extent` values, each `stride` apart on `axis`.
struct Iter {
  int64_t extent = 1;
  int64_t stride = 1;
  Axis axis = axis::m;
  bool operator==(const Iter&) const = default;
};

// A physical coordinate: one number per axis, 0 on every axis that is not named.
class Point {
 public:
  using Entry = std::pair<Axis, int64_t>;

  Point() = default;
  Point(std::initializer_list<Entry> entries) {
    for (const auto& [a, v] : entries) add(a, v);
  }
  int64_t operator[](Axis a) const;
  void add(Axis a, int64_t v);
  Point& operator+=(const Point& o);
  std::span<const Entry> entries() const& { return entries_; }  // sorted by axis, none is 0
  std::span<const Entry> entries() const&& = delete;            // would dangle
  auto operator<=>(const Point&) const = default;

 private:
  std::vector<Entry> entries_;
};

struct Grouped;

// Half-open range of one dimension.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Range&) const = default;
};

// Maps a logical index to a set of physical coordinates (Axe Layout, arXiv 2601.19092):
//   L(x) = { sum of stride_i * digit_i(x)  +  r  +  offset  :  r in the span of the replica iters },
// the digits being x split row-major by the extents of the shard (the last iter varies fastest), and the sums
// taken separately per axis. A coordinate of a shape is a logical index by its row-major position.
//
// A value type: every operation returns a new layout, and those that ask for one that need not exist return
// nullopt when there is none.
class TileLayout {
 public:
  TileLayout();  // one element at the origin
  // A user error when an extent is below 1, or the size or a coordinate would not fit in 62 bits. Replica
  // strides are made positive, moving the offset: the copies are a set.
  explicit TileLayout(std::vector<Iter> shard, std::vector<Iter> replica = {}, Point offset = {});

  static TileLayout row_major(std::span<const int64_t> shape, Axis axis = axis::m);
  static TileLayout row_major(std::initializer_list<int64_t> shape, Axis axis = axis::m);
  static TileLayout column_major(std::span<const int64_t> shape, Axis axis = axis::m);

  const std::vector<Iter>& shard() const { return shard_; }
  const std::vector<Iter>& replica() const { return replica_; }
  const Point& offset() const { return offset_; }
  TileLayout with_offset(Point offset) const;

  // Evaluation. `at` gives the coordinate without replication (r = 0), `apply` the whole set, sorted.
  // A user error when the index lies outside [0, size()) or the shape does not hold size() elements.
  Point at(int64_t linear) const;
  Point at(std::span<const int64_t> coordinate, std::span<const int64_t> shape) const;
  int64_t at(int64_t linear, Axis axis) const;
  std::vector<Point> apply(int64_t linear) const;
  std::vector<Point> apply(std::span<const int64_t> coordinate, std::span<const int64_t> shape) const;

  // Measures.
  int64_t size() const;             // logical elements
  int64_t size(Axis axis) const;    // the product of the extents of the shard iters on this axis
  int64_t copies() const;           // the product of the replica extents
  int64_t extent(Axis axis) const;  // highest minus lowest coordinate plus one, replicas included
  int64_t span(Axis axis) const;    // one more than the highest coordinate: extent, plus the offset
  int64_t span() const;             // of the memory axes together
  bool has_axis(Axis axis) const;
  std::vector<Axis> axes() const;  // sorted
  bool is_identity() const;        // coordinate x on `m` for every x

  // Canonical form: unit iters dropped, neighbours (e1:s1)(e2:s2) on one axis with s1 = e2*s2 fused, stride-0
  // iters moved to `m`, replicas sorted and fused. Two layouts are the same map when their canonical forms
  // are equal; for layouts without replicas, only then.
  TileLayout canonicalize() const;
  // The canonical form under a CUDA target: thread axes that together make up a wider one are renamed into it
  // (laneid with wid_in_wg is tid_in_wg; laneid with warpid, or with wid_in_wg and wgid, is tx).
  TileLayout canonicalize_threads() const;
  bool equivalent(const TileLayout& o) const { return canonicalize() == o.canonicalize(); }
  bool operator==(const TileLayout&) const = default;

  // Splits iters along the dimensions of `shape`, or of several shapes at once (their minimal common
  // refinement). A user error names the two boundaries that do not fit; `try_group` returns nullopt instead.
  Grouped group(std::span<const int64_t> shape) const;
  Grouped group(std::initializer_list<int64_t> shape) const;
  std::optional<Grouped> try_group(std::span<const int64_t> shape) const;

  // Whether no physical coordinate holds two different elements.
  bool is_injective() const;
  // The largest n such that every aligned run of n logical elements lies in n consecutive places of `axis`
  // and shares all its other coordinates.
  int64_t contiguous(Axis axis = axis::m) const;

  // Inverse: from the row-major position in the physical box (`order[0]` slowest, one extent(axis) each) to
  // the logical index on `m`. Exists when the layout fills that box without holes or overlaps and starts at 0
  // on every axis. Copies of an element all map back to it.
  std::optional<TileLayout> inverse(std::span<const Axis> order) const;
  std::optional<TileLayout> inverse() const;  // along the layout's only axis

  // R(c) = A(B(c)): `*this` is applied to the `m` coordinate of `b`; other axes of `b` are kept.
  // nullopt when b leaves [0, size()), or when no layout is that map. Takes time in the number of b's
  // elements only when a stride of b carries over from one digit of *this to the next.
  std::optional<TileLayout> compose(const TileLayout& b) const;

  // C such that every place of [0, places) on `axis` is A(i) + C(j) for exactly one (element or copy i, j).
  std::optional<TileLayout> complement(int64_t places, Axis axis = axis::m) const;

  // Whole copies of this layout laid out by `outer`: dimension d of the result is split (outer, inner), and
  // outer strides are multiplied by this layout's extent on their axis. The shapes have one rank. Canonical.
  TileLayout tile(const TileLayout& outer, std::span<const int64_t> outer_shape,
                  std::span<const int64_t> inner_shape) const;
  // `*this` repeated row-major until it has `shape`; each dimension must be a multiple of inner_shape's.
  TileLayout tile_to(std::span<const int64_t> shape, std::span<const int64_t> inner_shape) const;
  // The factors of *this: `outer` with inner.tile(outer, shape / inner_shape, inner_shape) equal to *this,
  // and `inner` with inner.tile(outer, outer_shape, shape / outer_shape).
  std::optional<TileLayout> is_tile_inner(const TileLayout& inner, std::span<const int64_t> shape,
                                          std::span<const int64_t> inner_shape) const;
  std::optional<TileLayout> is_tile_outer(const TileLayout& outer, std::span<const int64_t> shape,
                                          std::span<const int64_t> outer_shape) const;

  // S(l, r) = L(l) + R(r): dimension d is split (left, right), strides stay as they are. Canonical.
  TileLayout direct_sum(const TileLayout& right, std::span<const int64_t> left_shape,
                        std::span<const int64_t> right_shape) const;
  // The `right` with left.direct_sum(right) equal to *this; and the `left`.
  std::optional<TileLayout> is_direct_sum_left(const TileLayout& left, std::span<const int64_t> shape,
                                               std::span<const int64_t> left_shape) const;
  std::optional<TileLayout> is_direct_sum_right(const TileLayout& right, std::span<const int64_t> shape,
                                                std::span<const int64_t> right_shape) const;

  // The layout of a box of `shape`: element c of the result is element begin + c here. Canonical.
  // Found whenever one exists; nullopt when the box's places have no strided form.
  std::optional<TileLayout> slice(std::span<const int64_t> shape, std::span<const Range> region) const;

  // Dimension d of the result is dimension order[d] of `shape`.
  TileLayout permute_dims(std::span<const int64_t> shape, std::span<const int> order) const;
  // The same on groups of iters [separators[g], separators[g+1]).
  TileLayout permute_by_groups(std::span<const int> separators, std::span<const int> order) const;
  // A new dimension of `extent` before dimension `position` of `shape`; all its elements share one place.
  TileLayout broadcast(std::span<const int64_t> shape, int position, int64_t extent) const;

  // Each element becomes n consecutive ones on `axis` (f32 seen as two f16: n = 2); pack joins them again.
  TileLayout unpack(int64_t n, Axis axis = axis::m) const;
  std::optional<TileLayout> pack(int64_t n, Axis axis = axis::m) const;

  // What one thread stores: iters on thread axes, replicas and the offset dropped. Canonical.
  TileLayout storage() const;

 private:
  std::vector<Iter> shard_;
  std::vector<Iter> replica_;
  Point offset_;
};

// A layout whose iters are split so that dimension d of a shape owns iters [separators[d], separators[d+1]).
struct Grouped {
  TileLayout layout;
  std::vector<int> separators;
  std::span<const Iter> dim(size_t d) const {
    return std::span(layout.shard()).subspan(separators[d], separators[d + 1] - separators[d]);
  }
};

// One layout split along several shapes; separators[i] belongs to shapes[i]. A dimension of 1 owns a unit
// iter.
struct GroupedMany {
  TileLayout layout;
  std::vector<std::vector<int>> separators;
};
GroupedMany group_many(const TileLayout& layout, std::span<const Shape> shapes);

}  // namespace tw
