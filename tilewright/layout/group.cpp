#include <algorithm>
#include <map>

#include "tilewright/base/error.h"
#include "tilewright/layout/detail.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {
namespace {

using Descending = std::greater<int64_t>;

// Where one boundary (a suffix product of extents) falls among the iters of the refinement.
struct Boundary {
  int units = 0;  // iters of extent 1 that stand at it
  int first = 0;  // index of the first of them
};

// Suffix products of a shape's dimensions: element d is the boundary after dimension d.
std::vector<int64_t> suffix_products(std::span<const int64_t> extents) {
  std::vector<int64_t> after(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) after[d - 1] = after[d] * extents[d];
  return after;
}

std::vector<int> separators_of(std::span<const int64_t> shape,
                               const std::map<int64_t, Boundary, Descending>& at, int total) {
  std::vector<int> sep{0};
  const auto after = suffix_products(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    sep.push_back(shape[d] == 1 ? sep.back() + 1 : at.at(after[d]).first);
  sep.back() = total;
  return sep;
}

std::optional<GroupedMany> refine(const TileLayout& layout, std::span<const Iter> shard,
                                  std::span<const Shape> shapes, detail::Mismatch* why) {
  const int64_t size = layout.size();
  std::map<int64_t, Boundary, Descending> at{{size, {}}, {1, {}}};
  std::vector<int64_t> extents;
  for (const Iter& it : shard) extents.push_back(it.extent);
  const auto ends = suffix_products(extents);
  for (int64_t b : ends) at[b];
  for (const Shape& shape : shapes) {
    std::map<int64_t, int> units;
    const auto after = suffix_products(shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      at[after[d]];
      if (shape[d] == 1) at[after[d]].units = std::max(at[after[d]].units, ++units[after[d]]);
    }
  }

  std::vector<Iter> out;
  size_t from = 0;  // the iter the next piece is cut from
  for (auto b = at.begin(); b != at.end(); ++b) {
    const auto next = std::next(b);
    b->second.first = static_cast<int>(out.size());
    Iter piece = shard.empty() ? Iter{} : shard.back();
    piece.extent = 1;
    if (next != at.end()) {
      if (b->first % next->first != 0) {
        if (why) *why = {next->first, b->first};
        return std::nullopt;
      }
      while (ends[from] > next->first) ++from;
      piece = {b->first / next->first, shard[from].stride * (next->first / ends[from]), shard[from].axis};
    }
    const Iter unit{1, piece.extent * piece.stride, piece.axis};
    out.insert(out.end(), b->second.units, unit);
    if (next != at.end()) out.push_back(piece);
  }
  const int total = static_cast<int>(out.size());
  GroupedMany result{TileLayout(std::move(out), layout.replica(), layout.offset()), {}};
  for (const Shape& shape : shapes) result.separators.push_back(separators_of(shape, at, total));
  return result;
}

}  // namespace

namespace detail {

std::optional<GroupedMany> group_canonical_or_not(const TileLayout& layout, std::span<const Shape> shapes,
                                                  Mismatch* why) {
  for (const Shape& shape : shapes)
    if (volume(shape) != layout.size())
      user_error({}, "a shape of {} elements for a layout of {}", volume(shape), layout.size());
  std::vector<Iter> shard;
  for (const Iter& it : layout.shard())
    if (it.extent > 1) shard.push_back(it);
  if (auto as_it_is = refine(layout, shard, shapes, nullptr)) return as_it_is;
  return refine(layout, fuse(shard), shapes, why);
}

}  // namespace detail

GroupedMany group_many(const TileLayout& layout, std::span<const Shape> shapes) {
  detail::Mismatch why{};
  auto grouped = detail::group_canonical_or_not(layout, shapes, &why);
  if (!grouped)
    user_error({}, "incompatible cumulative boundaries: suffix products {} and {}, neither divides the other",
               why.a, why.b);
  return *std::move(grouped);
}

Grouped TileLayout::group(std::span<const int64_t> shape) const {
  const Shape shapes[] = {Shape(shape.begin(), shape.end())};
  GroupedMany g = group_many(*this, shapes);
  return {std::move(g.layout), std::move(g.separators[0])};
}

Grouped TileLayout::group(std::initializer_list<int64_t> shape) const {
  return group(std::span(shape.begin(), shape.size()));
}

std::optional<Grouped> TileLayout::try_group(std::span<const int64_t> shape) const {
  const Shape shapes[] = {Shape(shape.begin(), shape.end())};
  auto g = detail::group_canonical_or_not(*this, shapes, nullptr);
  if (!g) return std::nullopt;
  return Grouped{std::move(g->layout), std::move(g->separators[0])};
}

}  // namespace tw
