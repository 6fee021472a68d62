#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/layout/detail.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {
namespace {

// Elements [begin, begin + count) of one dimension.
struct Window {
  std::vector<Iter> iters;
  int64_t begin, count;
  Point offset;

  // Inner digits that are taken whole do not take part in the question.
  std::vector<Iter> take_whole_digits() {
    std::vector<Iter> whole;
    while (!iters.empty() && begin % iters.back().extent == 0 && count % iters.back().extent == 0) {
      whole.insert(whole.begin(), iters.back());
      begin /= iters.back().extent;
      count /= iters.back().extent;
      iters.pop_back();
    }
    return whole;
  }
  // An outer digit that is the same for all elements is an offset.
  void drop_constant_digits() {
    while (!iters.empty()) {
      const int64_t below = detail::product(std::span(iters).subspan(1));
      if (begin / below != (begin + count - 1) / below) return;
      offset.add(iters[0].axis, begin / below * iters[0].stride);
      begin %= below;
      iters.erase(iters.begin());
    }
  }
};

std::optional<std::vector<Iter>> slice_dimension(std::span<const Iter> iters, Range range, Point& offset) {
  Window w{{iters.begin(), iters.end()}, range.begin, range.end - range.begin, {}};
  const std::vector<Iter> whole = w.take_whole_digits();
  w.drop_constant_digits();
  offset += w.offset;
  offset += detail::shard_at(w.iters, w.begin);
  std::optional<std::vector<Iter>> out;
  if (w.iters.size() <= 1)
    out = w.iters.empty() ? std::vector<Iter>{}
                          : std::vector<Iter>{{w.count, w.iters[0].stride, w.iters[0].axis}};
  else out = detail::fit(w.count, [&](int64_t i) { return detail::shard_at(w.iters, w.begin + i); });
  if (out) detail::append(*out, whole);
  return out;
}

}  // namespace

namespace detail {

std::optional<std::vector<Iter>> fit(int64_t n, const std::function<Point(int64_t)>& f) {
  std::vector<Iter> digits;  // innermost first
  const Point origin = detail::scale(f(0), [](Axis) { return -1; });
  int64_t step = 1;
  auto h = [&](int64_t i) {
    Point p = f(i * step);
    p += origin;
    return p;
  };
  while (n > 1) {
    const Point d = h(1);
    if (d.entries().size() > 1) return std::nullopt;
    const Iter unit =
        d.entries().empty() ? Iter{1, 0, axis::m} : Iter{1, d.entries()[0].second, d.entries()[0].first};
    auto times = [&](int64_t i) {
      Point p;
      p.add(unit.axis, i * unit.stride);
      return p;
    };
    int64_t e = 2;
    while (e < n && h(e) == times(e)) ++e;
    if (n % e != 0) return std::nullopt;
    for (int64_t base = e; base < n; base += e) {
      const Point start = h(base);
      for (int64_t i = 1; i < e; ++i) {
        Point expected = start;
        expected += times(i);
        if (h(base + i) != expected) return std::nullopt;
      }
    }
    digits.push_back({e, unit.stride, unit.axis});
    n /= e;
    step *= e;
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace detail

std::optional<TileLayout> TileLayout::slice(std::span<const int64_t> shape,
                                            std::span<const Range> region) const {
  if (region.size() != shape.size())
    user_error({}, "a region of {} ranges for a shape of {} dimensions", region.size(), shape.size());
  Shape extents, begin;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (region[d].begin < 0 || region[d].end > shape[d] || region[d].begin >= region[d].end)
      user_error({}, "range [{}, {}) of dimension {} is empty or leaves its {} elements", region[d].begin,
                 region[d].end, d, shape[d]);
    extents.push_back(region[d].end - region[d].begin);
    begin.push_back(region[d].begin);
  }
  Point origin = offset_;
  std::vector<Iter> out;
  if (const auto grouped = try_group(shape)) {
    // Dimensions add up independently, and the fused form of a map is unique: a box is strided only if each
    // side is.
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto dim = slice_dimension(grouped->dim(d), region[d], origin);
      if (!dim) return std::nullopt;
      detail::append(out, *dim);
    }
  } else {
    auto at_corner = [&](int64_t i) {
      Shape c = delinearize(i, extents);
      for (size_t d = 0; d < c.size(); ++d) c[d] += begin[d];
      return detail::shard_at(shard_, linearize(c, shape));
    };
    const auto all = detail::fit(volume(extents), at_corner);
    if (!all) return std::nullopt;
    out = *all;
    origin += at_corner(0);
  }
  return TileLayout(std::move(out), replica_, std::move(origin)).canonicalize();
}

}  // namespace tw
