// The algebra's laws on random well-formed layouts.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "tilewright/layout/text.h"

namespace tw {
namespace {

using rc::gen::element;
using rc::gen::inRange;

// Runs a property as one GoogleTest case.
template <class Property>
void law(const char* what, Property property) {
  EXPECT_TRUE(rc::check(what, property));
}

Axis any_axis() { return *element(axis::m, axis::m, axis::laneid, axis::warpid, axis::TCol); }

Shape any_shape(int max_rank = 3) {
  Shape s(*inRange(1, max_rank + 1));
  for (auto& e : s) e = *element<int64_t>(1, 2, 3, 4, 6, 8);
  return s;
}

std::vector<Iter> any_iters(int most) {
  std::vector<Iter> iters(*inRange(0, most + 1));
  for (Iter& it : iters) it = {*element<int64_t>(1, 2, 3, 4, 8), *inRange<int64_t>(-4, 40), any_axis()};
  return iters;
}

TileLayout any_layout() {
  Point offset;
  offset.add(any_axis(), *inRange<int64_t>(-5, 50));
  return TileLayout(any_iters(4), any_iters(1), offset);
}

// Iters split as the dimensions of `shape`, on any strides: a layout that groups by the shape.
TileLayout layout_of(const Shape& shape) {
  std::vector<Iter> iters;
  for (int64_t e : shape) {
    const int64_t inner = *element<int64_t>(1, 2, 3);
    const int64_t cut = e % inner == 0 ? inner : 1;
    iters.push_back({e / cut, *inRange<int64_t>(0, 60), any_axis()});
    iters.push_back({cut, *inRange<int64_t>(0, 9), any_axis()});
  }
  return TileLayout(iters, any_iters(1), {{any_axis(), *inRange<int64_t>(0, 9)}});
}

// A bijection onto [0, n): the digits of a row-major box in any order.
TileLayout any_permutation(const Shape& shape) {
  const TileLayout rows = TileLayout::row_major(shape);
  std::vector<int> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[*inRange<size_t>(0, i + 1)]);
  return rows.permute_dims(shape, order);
}

bool same_map(const TileLayout& a, const TileLayout& b) {
  if (a.size() != b.size()) return false;
  for (int64_t x = 0; x < a.size(); ++x)
    if (a.apply(x) != b.apply(x)) return false;
  return true;
}

// Whether some digits of [0, n) give f, by trying every way to split n; `weight` is the product of the inner
// digits.
bool has_layout(int64_t n, const std::function<Point(int64_t)>& f, int64_t weight = 1,
                std::vector<Iter> digits = {}) {
  if (weight == n) {
    std::reverse(digits.begin(), digits.end());
    const TileLayout guess(digits, {}, f(0));
    for (int64_t x = 0; x < n; ++x)
      if (guess.at(x) != f(x)) return false;
    return true;
  }
  const Point origin = f(0);
  Point step = f(weight);
  for (const auto& [a, v] : origin.entries()) step.add(a, -v);
  if (step.entries().size() > 1) return false;
  const Point::Entry on = step.entries().empty() ? Point::Entry{axis::m, 0} : step.entries()[0];
  for (int64_t e = 2; e <= n / weight; ++e) {
    if (n / weight % e != 0) continue;
    auto more = digits;
    more.push_back({e, on.second, on.first});
    if (has_layout(n, f, weight * e, more)) return true;
  }
  return false;
}

TEST(Laws, CanonicalizeKeepsTheMap) {
  law("canonicalize", [] {
    const TileLayout l = any_layout();
    const TileLayout c = l.canonicalize();
    RC_ASSERT(same_map(l, c));
    for (int64_t x = 0; x < l.size(); ++x) RC_ASSERT(l.at(x) == c.at(x));
    RC_ASSERT(c.canonicalize() == c);
  });
}

TEST(Laws, CanonicalFormsDecideEquality) {
  law("equality", [] {
    const Shape s = any_shape();
    const TileLayout l(layout_of(s).shard());
    const auto g = l.group(s).layout;  // another way to write the same map
    RC_ASSERT(l.equivalent(g));
    const TileLayout other(layout_of(s).shard());
    RC_ASSERT(l.equivalent(other) == same_map(l, other));
  });
}

TEST(Laws, CanonicalThreadsRenamesLanes) {
  law("threads", [] {
    const TileLayout l({{*inRange<int64_t>(1, 5), 1, axis::warpid},
                        {*element<int64_t>(2, 4, 8), *inRange<int64_t>(1, 4), axis::laneid},
                        {*inRange<int64_t>(1, 4), 1, axis::m}});
    const TileLayout c = l.canonicalize_threads();
    for (int64_t x = 0; x < l.size(); ++x) {
      const Point p = l.at(x), q = c.at(x);
      RC_ASSERT(32 * p[axis::warpid] + p[axis::laneid] ==
                32 * q[axis::warpid] + q[axis::laneid] + q[axis::tx]);
      RC_ASSERT(p[axis::m] == q[axis::m]);
    }
  });
}

TEST(Laws, GroupKeepsTheMapAndSplitsByTheShape) {
  law("group", [] {
    const Shape s = any_shape();
    const TileLayout l = layout_of(s);
    const Grouped g = l.group(s);
    RC_ASSERT(same_map(l, g.layout));
    for (size_t d = 0; d < s.size(); ++d) {
      int64_t n = 1;
      for (const Iter& it : g.dim(d)) n *= it.extent;
      RC_ASSERT(n == s[d]);
    }
  });
}

TEST(Laws, TextRoundTrip) {
  law("parse(print(x)) == x", [] {
    const TileLayout t = any_layout();
    RC_ASSERT(parse_tile_layout(to_string(t)) == t);
    const int b = *inRange(0, 5);
    const Swizzle s(*inRange(0, 6), b, b + *inRange(0, 4), *rc::gen::arbitrary<bool>());
    RC_ASSERT(parse_swizzle(to_string(s)) == s);
    const Layout l(s, TileLayout::row_major({*inRange<int64_t>(1, 9), 64}));
    RC_ASSERT(parse_layout(to_string(l)) == l);
  });
}

TEST(Laws, SwizzleIsAnInvolutionOnEachPeriod) {
  law("swizzle", [] {
    const int b = *inRange(0, 4);
    const Swizzle s(*inRange(0, 4), b, b + *inRange(0, 3), *rc::gen::arbitrary<bool>());
    std::set<int64_t> image;
    for (int64_t p = 0; p < s.period(); ++p) {
      const int64_t q = s.apply(p);
      RC_ASSERT(s.apply(q) == p);
      RC_ASSERT(q >= 0 && q < s.period());
      RC_ASSERT(s.apply(p + s.period()) == q + s.period());
      image.insert(q);
    }
    RC_ASSERT(static_cast<int64_t>(image.size()) == s.period());
  });
}

TEST(Laws, Inverse) {
  law("inverse(A(x)) == x", [] {
    const TileLayout a = any_permutation(any_shape(4));
    const auto inv = a.inverse();
    RC_ASSERT(inv.has_value());
    for (int64_t x = 0; x < a.size(); ++x) RC_ASSERT(inv->at(a.at(x, axis::m), axis::m) == x);
    RC_ASSERT(a.compose(*inv)->is_identity());
    RC_ASSERT(inv->compose(a)->is_identity());
  });
}

TEST(Laws, InverseOverThreadsAndRegisters) {
  law("inverse over two axes", [] {
    const Shape s{*element<int64_t>(2, 4), *element<int64_t>(2, 4, 8), *element<int64_t>(1, 2, 3)};
    const TileLayout a({{s[0], 1, axis::m}, {s[1], 1, axis::laneid}, {s[2], s[0], axis::m}},
                       {{*element<int64_t>(1, 2), s[1], axis::laneid}});
    const Axis order[] = {axis::laneid, axis::m};
    const auto inv = a.inverse(order);
    RC_ASSERT(inv.has_value());
    const int64_t registers = a.extent(axis::m);
    for (int64_t x = 0; x < a.size(); ++x)
      for (const Point& p : a.apply(x))
        RC_ASSERT(inv->at(p[axis::laneid] * registers + p[axis::m], axis::m) == x);
  });
}

TEST(Laws, Composition) {
  law("R(c) == A(B(c))", [] {
    const TileLayout a = any_layout();
    std::vector<Iter> iters(*inRange(1, 4)), copies(*inRange(0, 2));
    for (auto* list : {&iters, &copies})
      for (Iter& it : *list)
        it = {*element<int64_t>(1, 2, 3, 4), *element<int64_t>(0, 1, 2, 3, 4, 6, 8), axis::m};
    iters.push_back({*inRange<int64_t>(1, 4), 1, axis::laneid});
    const TileLayout b(iters, copies, {{axis::m, *inRange<int64_t>(0, 3)}, {axis::wgid, 2}});
    const bool fits = b.span(axis::m) <= a.size();
    const auto r = a.compose(b);
    if (!fits) RC_ASSERT(!r);
    if (!fits || !r) return;
    RC_ASSERT(r->size() == b.size());
    for (int64_t c = 0; c < b.size(); ++c) {
      std::set<Point> expected;
      for (const Point& p : b.apply(c))
        for (Point q : a.apply(p[axis::m])) {
          Point others = p;
          others.add(axis::m, -p[axis::m]);
          expected.insert(q += others);
        }
      RC_ASSERT(r->apply(c) == std::vector<Point>(expected.begin(), expected.end()));
    }
  });
}

TEST(Laws, CompositionOfPermutationsExists) {
  law("compose of row-major with any strided", [] {
    const Shape s = any_shape(4);
    const TileLayout a = any_permutation(s), rows = TileLayout::row_major(s);
    RC_ASSERT(a.compose(rows)->equivalent(a));
    RC_ASSERT(rows.compose(a)->equivalent(a));
  });
}

TEST(Laws, ComplementCoversDisjointly) {
  law("complement", [] {
    const Shape s = any_shape(4);
    const TileLayout box = any_permutation(s);
    std::vector<Iter> kept;
    for (const Iter& it : box.shard())
      if (*rc::gen::arbitrary<bool>()) kept.push_back(it);
    const TileLayout a(kept);
    const int64_t places = box.size() * *inRange<int64_t>(1, 3);
    const auto c = a.complement(places);
    RC_ASSERT(c.has_value());
    std::set<int64_t> covered;
    for (int64_t i = 0; i < a.size(); ++i)
      for (int64_t j = 0; j < c->size(); ++j)
        RC_ASSERT(covered.insert(a.at(i, axis::m) + c->at(j, axis::m)).second);
    RC_ASSERT(static_cast<int64_t>(covered.size()) == places);
    RC_ASSERT(*covered.rbegin() == places - 1);
  });
}

TEST(Laws, TileThenUntile) {
  law("tile", [] {
    const Shape in = any_shape(2);
    Shape out(in.size());
    for (auto& e : out) e = *element<int64_t>(1, 2, 3, 4);
    const TileLayout inner(layout_of(in).shard()), outer(layout_of(out).shard());
    const TileLayout tiled = inner.tile(outer, out, in);
    Shape shape;
    for (size_t d = 0; d < in.size(); ++d) shape.push_back(in[d] * out[d]);
    for (int64_t x = 0; x < tiled.size(); ++x) {
      const Shape c = delinearize(x, shape);
      Shape ci, co;
      for (size_t d = 0; d < c.size(); ++d) {
        co.push_back(c[d] / in[d]);
        ci.push_back(c[d] % in[d]);
      }
      Point p = inner.at(ci, in);
      const Point block = outer.at(co, out);
      for (const auto& [a, v] : block.entries()) p.add(a, v * inner.extent(a));
      RC_ASSERT(tiled.at(x) == p);
    }
    RC_ASSERT(tiled.is_tile_inner(inner, shape, in)->equivalent(outer));
    RC_ASSERT(tiled.is_tile_outer(outer, shape, out)->equivalent(inner));
  });
}

TEST(Laws, UntileWithCopiesAndOffsets) {
  law("untile with replicas", [] {
    const Shape in{2, 4}, out{3, 2}, shape{6, 8};
    const bool copies_inside = *rc::gen::arbitrary<bool>();
    const std::vector<Iter> copies{{*element<int64_t>(2, 3, 4), *inRange<int64_t>(1, 5), axis::warpid}};
    const TileLayout inner(layout_of(in).shard(), copies_inside ? copies : std::vector<Iter>{},
                           {{axis::m, *inRange<int64_t>(0, 3)}});
    const TileLayout outer(layout_of(out).shard(), copies_inside ? std::vector<Iter>{} : copies);
    const TileLayout tiled = inner.tile(outer, out, in);
    RC_ASSERT(tiled.copies() == copies[0].extent);
    const auto found_outer = tiled.is_tile_inner(inner, shape, in);
    const auto found_inner = tiled.is_tile_outer(outer, shape, out);
    RC_ASSERT(found_outer && inner.tile(*found_outer, out, in) == tiled);
    RC_ASSERT(found_inner && found_inner->tile(outer, out, in) == tiled);
  });
}

TEST(Laws, TileToIsRowMajorOverTiles) {
  law("tile_to", [] {
    const Shape in{*inRange<int64_t>(1, 4), *inRange<int64_t>(1, 4)},
        out{*inRange<int64_t>(1, 4), *inRange<int64_t>(1, 4)};
    const Shape shape{in[0] * out[0], in[1] * out[1]};
    const TileLayout l = TileLayout::row_major(in).tile_to(shape, in);
    for (int64_t r = 0; r < shape[0]; ++r)
      for (int64_t c = 0; c < shape[1]; ++c)
        RC_ASSERT(l.at(Shape{r, c}, shape)[axis::m] ==
                  (r / in[0] * out[1] + c / in[1]) * in[0] * in[1] + r % in[0] * in[1] + c % in[1]);
  });
}

TEST(Laws, SwizzledSliceIsPointwiseEqual) {
  law("slice under a swizzle", [] {
    const Shape s{*element<int64_t>(8, 16, 32), *element<int64_t>(32, 64)};
    const Layout l(Swizzle(3, *inRange(1, 4), 3), TileLayout::row_major(s));
    std::vector<Range> region;
    for (int64_t e : s) {
      const int64_t b = *inRange<int64_t>(0, e);
      region.push_back({b, *inRange<int64_t>(b + 1, e + 1)});
    }
    const auto part = l.slice(s, region);
    RC_ASSERT(part.has_value());
    const Shape extents{region[0].end - region[0].begin, region[1].end - region[1].begin};
    for (int64_t r = 0; r < extents[0]; ++r)
      for (int64_t c = 0; c < extents[1]; ++c)
        RC_ASSERT(part->place(r * extents[1] + c) ==
                  l.place((r + region[0].begin) * s[1] + c + region[1].begin));
  });
}

// Layouts of whole tensors: the answers must not take time in their size.
TEST(Laws, HugeLayoutsAreDecidedAtOnce) {
  const int64_t n = int64_t{1} << 20;
  const TileLayout tensor = TileLayout::row_major({n, n});
  const Shape shape{n, n};
  EXPECT_TRUE(tensor.is_injective());
  EXPECT_TRUE(tensor.inverse()->is_identity());
  EXPECT_TRUE(tensor.compose(tensor)->is_identity());
  const Range box[] = {{7, n - 5}, {64, n - 64}};
  EXPECT_EQ(to_string(*tensor.slice(shape, box)), "S[(1048564, 1048448) : (1048576, 1)] + 7340096");
  EXPECT_FALSE(TileLayout({{n, 3, axis::m}, {n, 1, axis::m}}).is_injective());
  EXPECT_TRUE(TileLayout({{n, 3 * n, axis::m}, {3, 1, axis::m}, {n, 3, axis::m}}).is_injective());
}

TEST(Laws, DirectSumAddsAndSplits) {
  law("direct sum", [] {
    const Shape ls = any_shape(2);
    Shape rs(ls.size()), shape(ls.size());
    for (auto& e : rs) e = *element<int64_t>(1, 2, 3, 4);
    const TileLayout left(layout_of(ls).shard()), right(layout_of(rs).shard());
    const TileLayout sum = left.direct_sum(right, ls, rs);
    for (size_t d = 0; d < ls.size(); ++d) shape[d] = ls[d] * rs[d];
    for (int64_t x = 0; x < sum.size(); ++x) {
      const Shape c = delinearize(x, shape);
      Shape cl, cr;
      for (size_t d = 0; d < c.size(); ++d) {
        cl.push_back(c[d] / rs[d]);
        cr.push_back(c[d] % rs[d]);
      }
      Point p = left.at(cl, ls);
      p += right.at(cr, rs);
      RC_ASSERT(sum.at(x) == p);
    }
    RC_ASSERT(sum.is_direct_sum_left(left, shape, ls)->equivalent(right));
    RC_ASSERT(sum.is_direct_sum_right(right, shape, rs)->equivalent(left));
  });
}

TEST(Laws, SliceIsPointwiseEqualAndDecided) {
  law("slice", [] {
    const Shape s = any_shape();
    const TileLayout l = layout_of(s);
    std::vector<Range> region;
    Shape extents;
    for (int64_t e : s) {
      const int64_t b = *inRange<int64_t>(0, e), n = *inRange<int64_t>(1, e - b + 1);
      region.push_back({b, b + n});
      extents.push_back(n);
    }
    auto source = [&](int64_t x) {
      Shape c = delinearize(x, extents);
      for (size_t d = 0; d < c.size(); ++d) c[d] += region[d].begin;
      return linearize(c, s);
    };
    const auto part = l.slice(s, region);
    const int64_t n = volume(extents);
    if (part)
      for (int64_t x = 0; x < n; ++x) RC_ASSERT(part->apply(x) == l.apply(source(x)));
    RC_ASSERT(part.has_value() == has_layout(n, [&](int64_t x) { return l.at(source(x)); }));
  });
}

TEST(Laws, PermuteAndBroadcast) {
  law("permute, broadcast", [] {
    const Shape s{*inRange<int64_t>(1, 5), *inRange<int64_t>(1, 5), *inRange<int64_t>(1, 5)};
    const TileLayout l = layout_of(s);
    const int order[] = {2, 0, 1};
    const TileLayout p = l.permute_dims(s, order);
    const Shape turned{s[2], s[0], s[1]};
    const TileLayout b = l.broadcast(s, 1, 4);
    const Shape wide{s[0], 4, s[1], s[2]};
    for (int64_t x = 0; x < l.size(); ++x) {
      const Shape c = delinearize(x, s);
      RC_ASSERT(p.apply(Shape{c[2], c[0], c[1]}, turned) == l.apply(x));
      RC_ASSERT(b.apply(Shape{c[0], x % 4, c[1], c[2]}, wide) == l.apply(x));
    }
  });
}

TEST(Laws, UnpackThenPack) {
  law("pack(unpack)", [] {
    const TileLayout l = any_layout();
    const int64_t n = *inRange<int64_t>(1, 5);
    const TileLayout wide = l.unpack(n);
    for (int64_t x = 0; x < wide.size(); ++x) {
      const Point p = l.at(x / n), q = wide.at(x);
      RC_ASSERT(q[axis::m] == p[axis::m] * n + x % n);
      RC_ASSERT(q[axis::laneid] == p[axis::laneid]);
    }
    RC_ASSERT(wide.pack(n)->equivalent(l));
  });
}

TEST(Laws, InjectivityAndContiguity) {
  law("injective, contiguous", [] {
    const TileLayout l = any_layout();
    std::map<Point, int64_t> owner;
    bool injective = true;
    for (int64_t x = 0; x < l.size(); ++x)
      for (const Point& p : l.apply(x)) injective = injective && owner.try_emplace(p, x).first->second == x;
    RC_ASSERT(l.is_injective() == injective);

    auto run_holds = [&](int64_t n) {
      for (int64_t x = 0; x < l.size(); ++x) {
        Point p = l.at(x / n * n);
        p.add(axis::m, x % n);
        if (p != l.at(x)) return false;
      }
      return true;
    };
    const int64_t n = l.contiguous();
    RC_ASSERT(run_holds(n));
    for (int64_t more = n + 1; more <= l.size(); ++more)
      if (l.size() % more == 0) RC_ASSERT(!run_holds(more));
  });
}

TEST(Laws, AlignedRunOfSwizzledLayouts) {
  law("aligned run", [] {
    const int b = *inRange(0, 3);
    const Swizzle s(*inRange(0, 4), b, 3);
    const Layout l(s, TileLayout({{*inRange<int64_t>(1, 5), *inRange<int64_t>(1, 40), axis::m},
                                  {*element<int64_t>(1, 4, 8, 16), 1, axis::m}},
                                 {}, {{axis::m, *inRange<int64_t>(0, 9)}}));
    const int64_t n = l.aligned_run();
    for (int64_t x = 0; x < l.size(); ++x) {
      RC_ASSERT(l.place(x / n * n) % n == 0);
      RC_ASSERT(l.place(x) == l.place(x / n * n) + x % n);
    }
  });
}

}  // namespace
}  // namespace tw
