// Layouts worked out by an independent model of the algebra: canonical forms, tiles, groups, slices,
// constructors. The labels (A1, C9, ...) are those of the fact sheet this room was built against.
#include <gtest/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/layout/text.h"

namespace tw {
namespace {

TileLayout L(std::string_view text) { return parse_tile_layout(text); }
Layout W(std::string_view text) { return parse_layout(text); }
Point pt(std::initializer_list<Point::Entry> e) { return Point(e); }

struct Rewrite {
  const char *label, *input, *output;
};
void PrintTo(const Rewrite& r, std::ostream* os) { *os << r.label; }

class Canonical : public testing::TestWithParam<Rewrite> {};
TEST_P(Canonical, Form) {
  EXPECT_EQ(to_string(L(GetParam().input).canonicalize()), to_string(L(GetParam().output)));
}
INSTANTIATE_TEST_SUITE_P(
    Facts, Canonical,
    testing::Values(Rewrite{"A1", "S(8,8,8,4,2):(512,64,8,2,1)", "S 4096:1"},
                    Rewrite{"A2", "S(8,8,1,8,4,2):(512,64,160,8,2,1)", "S 4096:1"},
                    Rewrite{"A3", "S(8,8,8,4,1,1):(512,64,8,2,1,1)", "S 2048:2"},
                    Rewrite{"A4", "S(8,8,1,1,1,4,1,1):(512,64,1,1,1,2,1,1)", "S(64,4):(64,2)"},
                    Rewrite{"A5", "S(2,3,6):(18,6,1)", "S 36:1"},
                    Rewrite{"A6", "S(8,2,3,6):(6,18,6,1)", "S(8,36):(6,1)"},
                    Rewrite{"A7", "S(8,2,3,6):(6,24,6,1)", "S(8,2,18):(6,24,1)"},
                    Rewrite{"A8", "S(8,2,4,2,3,6):(2,1,4,24,6,1)", "S(16,4,2,18):(1,4,24,1)"},
                    Rewrite{"A9", "S(3,4,5,2):(20,5,1,60)", "S(60,2):(1,60)"},
                    Rewrite{"A10", "S(3,4,5,2,3,4):(20,5,1,60,20,5)", "S(60,24):(1,5)"},
                    Rewrite{"A11", "S(8,4,8,8,16):(4@l,1@l,4,2,4)", "S(32,8,8,16):(1@l,4,2,4)"},
                    Rewrite{"A12", "S(8,8,8,1,1,2,1):(16,4@l,2,1,4@l,1,1) + 0@l", "S(8,8,16):(16,4@l,1)"},
                    Rewrite{"A13", "S(8,4,4,8,8,4,4,16,8):(4@l,1@l,16,2,8,2,16,1,4)",
                            "S(32,32,32,64,8):(1@l,2,2,1,4)"},
                    Rewrite{"A14", "S(1,1,1,1,1):(1,2,3,4,5)", "S 1:1"}));

class CanonicalThreads : public testing::TestWithParam<Rewrite> {};
TEST_P(CanonicalThreads, Form) {
  EXPECT_EQ(to_string(L(GetParam().input).canonicalize_threads()), to_string(L(GetParam().output)));
}
INSTANTIATE_TEST_SUITE_P(
    Facts, CanonicalThreads,
    testing::Values(
        Rewrite{"B1", "S(2,8,2,4):(2@w,4@l,1@w,1@l)", "S(2,8,2,4):(64@tx,4@tx,32@tx,1@tx)"},
        Rewrite{"B2", "S(2,2,8,4):(2@w,1@w,4@l,1@l)", "S 128:1@tx"},
        Rewrite{"B3", "S(2,2,8,2,2,4):(2@wgid,2@wiw,4@l,1@wgid,1@wiw,1@l)",
                "S(2,2,8,2,2,4):(256@tx,64@tx,4@tx,128@tx,32@tx,1@tx)"},
        Rewrite{"B4", "S(2,8,2,4):(2@wiw,4@l,1@wiw,1@l)", "S(2,8,2,4):(64@tiw,4@tiw,32@tiw,1@tiw)"},
        Rewrite{"B5", "S(2,2,4,32):(2@wgid,1@wgid,32@tiw,1@tiw)", "S 512:1@tx"},
        // A lane that is no lane cannot become a thread; a lone axis has nothing to join.
        Rewrite{"outside", "S(2,64):(1@w,1@l)", "S(2,64):(1@w,1@l)"},
        Rewrite{"lone", "S(8,4):(4@l,1@l)", "S 32:1@l"},
        Rewrite{"copies", "S(8,4):(4@l,1@l) + R[2:4@w] + 5@w", "S 32:1@tx + R[2:128@tx] + 160@tx"}));

TEST(Tile, C1) { EXPECT_EQ(L("8:1").tile(L("8:1"), Shape{8}, Shape{8}), L("64:1")); }

struct TileFact {
  const char *label, *inner;
  Shape inner_shape;
  const char* outer;
  Shape outer_shape;
  const char* result;
};
void PrintTo(const TileFact& f, std::ostream* os) { *os << f.label; }

class Tiles : public testing::TestWithParam<TileFact> {};

Shape times(const Shape& a, const Shape& b) {
  Shape c;
  for (size_t d = 0; d < a.size(); ++d) c.push_back(a[d] * b[d]);
  return c;
}

TEST_P(Tiles, ProductAndBothFactors) {  // C16 is the second half
  const TileFact& f = GetParam();
  const Layout inner = W(f.inner);
  const TileLayout outer = L(f.outer);
  const Layout tiled = inner.tile(outer, f.outer_shape, f.inner_shape);
  EXPECT_EQ(to_string(tiled), to_string(W(f.result).canonicalize()));
  const Shape shape = times(f.outer_shape, f.inner_shape);
  const auto found_outer = tiled.is_tile_inner(inner, shape, f.inner_shape);
  ASSERT_TRUE(found_outer);
  EXPECT_TRUE(found_outer->equivalent(outer)) << to_string(*found_outer);
  const auto found_inner = tiled.is_tile_outer(outer, shape, f.outer_shape);
  ASSERT_TRUE(found_inner);
  EXPECT_TRUE(found_inner->equivalent(inner)) << to_string(*found_inner);
  if (!inner.equivalent(outer)) {
    EXPECT_FALSE(tiled.is_tile_inner(outer, shape, f.outer_shape));
    EXPECT_FALSE(!inner.swizzle() && tiled.is_tile_outer(inner.tile_layout(), shape, f.inner_shape));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Facts, Tiles,
    testing::Values(
        TileFact{"C1", "8:1", {8}, "8:1", {8}, "64:1"},
        TileFact{"C2", "S(8,8):(8,1)", {8, 8}, "S(8,8):(8,1)", {8, 8}, "S(8,8,8,8):(512,8,64,1)"},
        TileFact{"C3", "S(2,4):(1,2)", {2, 4}, "S(8,8):(8,1)", {8, 8}, "S(8,2,32):(64,1,2)"},
        TileFact{"C4",
                 "S(4,2,2,4):(16,8,1,2)",
                 {8, 8},
                 "S(8,8):(8,1)",
                 {8, 8},
                 "S(8,4,2,8,2,4):(512,16,8,64,1,2)"},
        TileFact{"C5",
                 "S(8,1,4,2):(4@l,2,1@l,1)",
                 {8, 8},
                 "S(8,8):(8,1)",
                 {8, 8},
                 "S(8,8,1,8,4,2):(16,4@l,2,2,1@l,1)"},
        TileFact{"C6", "S(8,4):(4@l,1@l)", {8, 4}, "S(8,8):(8,1)", {8, 8}, "S(8,8,8,4):(8,4@l,1,1@l)"},
        TileFact{"C7", "S(1,2):(2,1)", {1, 2}, "S(8,4):(4@l,1@l)", {8, 4}, "S(32,2):(1@l,1)"},
        TileFact{
            "C8", "S(32,2):(1@l,1)", {8, 8}, "S(2,2):(2@w,1@w)", {2, 2}, "S(2,8,2,4,2):(2@w,4@l,1@w,1@l,1)"},
        TileFact{"C9",
                 "S(64,128):(128,1)",
                 {64, 128},
                 "S 2:2@w + R[2:1@w]",
                 {2, 1},
                 "S(2,8192):(2@w,1) + R[2:1@w]"},
        TileFact{"C10",
                 "SW(3,3,3) o 512:1",
                 {8, 64},
                 "S(8,4):(1,8)",
                 {8, 4},
                 "SW(3,3,3) o S(64,4,64):(64,4096,1)"},
        TileFact{"C11",
                 "SW(3,3,3) o 512:1",
                 {1, 8, 64},
                 "S(3,8,4):(32,1,8)",
                 {3, 8, 4},
                 "SW(3,3,3) o S(3,64,4,64):(16384,64,4096,1)"},
        TileFact{"C12",
                 "SW(3,2,3) o 256:1",
                 {8, 32},
                 "S(8,8):(1,8)",
                 {8, 8},
                 "SW(3,2,3) o S(64,8,32):(32,2048,1)"}));

TEST(MmaSharedLayout, Facts) {
  EXPECT_EQ(mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{64, 256}),
            W("SW(3,3,3) o S(64,4,64):(64,4096,1)"));  // C13
  EXPECT_EQ(mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{3, 64, 256}),
            W("SW(3,3,3) o S(3,64,4,64):(16384,64,4096,1)"));  // C14
  EXPECT_EQ(mma_shared_layout(DType::f16, SwizzleMode::b64, Shape{3, 64, 256}),
            W("SW(3,2,3) o S(3,64,8,32):(16384,32,2048,1)"));  // C15
  EXPECT_THROW(mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{64, 96}), Error);
  EXPECT_THROW(mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{60, 64}), Error);
}

TEST(DirectSum, D1) {
  const TileLayout a = L("S(2,2):(8,2)"), b = L("S(2,2):(4,1)");
  const Shape two{2, 2}, four{4, 4};
  const TileLayout sum = a.direct_sum(b, two, two);
  EXPECT_EQ(sum, L("16:1"));
  EXPECT_TRUE(sum.is_direct_sum_left(a, four, two)->equivalent(b));
  EXPECT_TRUE(sum.is_direct_sum_right(b, four, two)->equivalent(a));
  EXPECT_FALSE(sum.is_direct_sum_left(b, four, two));
}

TEST(Group, D2) {
  const TileLayout c2 = L("S(8,8,8,8):(512,8,64,1)");
  const Grouped g = c2.group({64, 64});
  EXPECT_EQ(g.layout, c2);
  EXPECT_EQ(g.separators, (std::vector<int>{0, 2, 4}));
}

TEST(Group, Refinements) {
  const GroupedMany d3 = group_many(L("30:1"), std::vector<Shape>{{6, 5}, {2, 15}});
  EXPECT_EQ(d3.layout, L("S(2,3,5):(15,5,1)"));
  EXPECT_EQ(d3.separators, (std::vector<std::vector<int>>{{0, 2, 3}, {0, 1, 3}}));

  const GroupedMany d4 = group_many(L("30:1"), std::vector<Shape>{{1, 6, 1, 5, 1}, {2, 1, 3, 5}});
  EXPECT_EQ(d4.layout, L("S(1,2,1,3,1,5,1):(30,15,15,5,5,1,1)"));
  EXPECT_EQ(d4.separators, (std::vector<std::vector<int>>{{0, 1, 4, 5, 6, 7}, {0, 2, 3, 4, 7}}));

  try {
    group_many(L("12:1"), std::vector<Shape>{{3, 4}, {2, 6}});
    FAIL() << "D5 must not group";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "incompatible cumulative boundaries: suffix products 4 and 6, neither divides the other");
  }
}

TEST(Measures, E) {
  EXPECT_EQ(L("S(8,8):(8,1)").span(), 64);
  EXPECT_EQ(L("S(8,6):(8,1)").span(), 62);
  EXPECT_EQ(L("S(8,6):(8,1)").size(), 48);
  EXPECT_EQ(L("S(8,1,4,2):(4@l,2,1@l,1)").span(), 2);
  const TileLayout e4 = L("S(8,8,8):(64@F,1@P,1@F)");
  EXPECT_EQ(e4.size(axis::P), 8);
  EXPECT_EQ(e4.size(axis::F), 64);
  EXPECT_EQ(e4.span(axis::F), 456);
}

struct SliceFact {
  const char *label, *layout;
  Shape shape;
  std::vector<Range> region;
  const char* result;  // null: none
};
void PrintTo(const SliceFact& f, std::ostream* os) { *os << f.label; }

class Slices : public testing::TestWithParam<SliceFact> {};
TEST_P(Slices, Result) {
  const SliceFact& f = GetParam();
  const auto part = L(f.layout).slice(f.shape, f.region);
  ASSERT_EQ(part.has_value(), f.result != nullptr);
  if (part) {
    EXPECT_EQ(to_string(*part), to_string(L(f.result)));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Facts, Slices,
    testing::Values(
        SliceFact{"F1", "S(8,8):(8,1)", {64}, {{5, 8}}, "S 3:1 + 5"},
        SliceFact{"F2", "S(4,4,4,4):(64,4,16,1)", {16, 16}, {{2, 3}, {6, 10}}, "S(2,2):(14,1) + 26"},
        SliceFact{"F3", "S(2,8,3,8):(192,8,64,1)", {16, 24}, {{2, 6}, {4, 12}}, "S(4,2,4):(8,60,1) + 20"},
        SliceFact{"F4",
                  "S(128,2,64):(64,8192,1)",
                  {128, 128},
                  {{0, 128}, {32, 96}},
                  "S(128,2,32):(64,8160,1) + 32"},
        SliceFact{"F5", "S 512:1", {512}, {{64, 128}}, "S 64:1 + 64"},
        SliceFact{"F6", "S(8,64):(64,1)", {8, 64}, {{2, 4}, {0, 64}}, "S 128:1 + 128"},
        SliceFact{"F7",
                  "S(3,128,128):(16384,128,1)",
                  {3, 128, 128},
                  {{2, 3}, {0, 128}, {0, 128}},
                  "S 16384:1 + 32768"},
        // F8: [3,8) of 4x4 digits wraps once, unevenly: offsets 3, 64, 65, 66, 67 have no common step.
        SliceFact{"F8", "S(4,4):(64,1)", {16}, {{3, 8}}, nullptr},
        // Three blocks that wrap evenly do have a layout, which the two-block rule would miss.
        SliceFact{"even", "S(8,4):(64,1)", {32}, {{2, 4}}, "S 2:1 + 2"}));

TEST(Apply, SwizzleFacts) {
  const Swizzle g1 = parse_swizzle("SW(0,3,3)"), g2 = parse_swizzle("SW(0,3,3,outer)");
  const Swizzle g3 = parse_swizzle("SW(0,2,3)"), g4 = parse_swizzle("SW(3,3,3)");
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j) {
      EXPECT_EQ(g1.apply(8 * i + j), 8 * i + (i ^ j));
      EXPECT_EQ(g2.apply(8 * i + j), 8 * (i ^ j) + j);
      EXPECT_EQ(g3.apply(8 * i + j), 8 * i + 4 * (j / 4) + ((i % 4) ^ (j % 4)));
      for (int64_t o = 0; o < 3; ++o)
        for (int64_t k = 0; k < 8; ++k)
          EXPECT_EQ(g4.apply(512 * o + 64 * i + 8 * j + k), 512 * o + 8 * (8 * i + (i ^ j)) + k);
    }
  EXPECT_EQ(g4.period(), 512);

  const Layout g5 = mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{8, 64});
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t j = 0; j < 64; ++j) EXPECT_EQ(g5.place(64 * i + j), 64 * i + 8 * ((j / 8) ^ i) + j % 8);
    EXPECT_EQ(g5.place(64 * i) * 2 / 4 % 32, 4 * i);  // the banks of column 0
  }
}

TEST(Apply, CaseStudyG6) {
  const TileLayout g6 = L("S(8,2,4,2):(4@l,1@w,1@l,1) + R[2:4@w] + 5@w");
  const Shape shape{8, 16};
  struct Row {
    Shape at;
    int64_t lane, warp, m;
  };
  for (const Row& r : {Row{{0, 0}, 0, 5, 0}, Row{{0, 2}, 1, 5, 0}, Row{{1, 0}, 4, 5, 0}, Row{{0, 8}, 0, 6, 0},
                       Row{{7, 15}, 31, 6, 1}}) {
    const auto expected = [&](int64_t w) {
      return pt({{axis::laneid, r.lane}, {axis::warpid, w}, {axis::m, r.m}});
    };
    EXPECT_EQ(g6.apply(r.at, shape), (std::vector<Point>{expected(r.warp), expected(r.warp + 4)}));
    EXPECT_EQ(g6.at(r.at, shape), expected(r.warp));
  }
}

TEST(Apply, UnitDimensionG7) {
  const TileLayout l = L("S(4,1,8):(8,1000,1)");
  EXPECT_EQ(l.at(Shape{3, 0, 5}, Shape{4, 1, 8}), pt({{axis::m, 29}}));
  EXPECT_THROW(l.at(Shape{3, 1, 5}, Shape{4, 1, 8}), Error);
}

TEST(Packing, H) {
  EXPECT_EQ(L("S(8,8):(8,1)").unpack(2), L("S(8,16):(16,1)").canonicalize());  // H1
  EXPECT_EQ(W("SW(3,3,3) o 512:1").unpack(2), W("SW(4,3,3) o 1024:1"));        // H2
  EXPECT_EQ(W("SW(4,3,3) o 1024:1").pack(2), W("SW(3,3,3) o 512:1"));
  EXPECT_EQ(L("S(8,4,2):(4@l,1@l,1)").storage(), L("2:1"));                           // H3
  EXPECT_EQ(W("SW(3,3,3) o S(8,64):(64,1)").canonicalize(), W("SW(3,3,3) o 512:1"));  // H4
  const Layout tiles = W("SW(3,3,3) o S(64,4,64):(64,4096,1)");
  EXPECT_EQ(tiles.canonicalize(), tiles);
  for (const auto& [text, n] : {std::pair{"SW(3,3,3) o 512:1", 512}, std::pair{"SW(4,3,3) o 1024:1", 1024}}) {
    EXPECT_EQ(W(text).size(), n);  // H4b
    EXPECT_EQ(W(text).span(), n);
  }
}

TEST(Partitioned, H5H6) {
  EXPECT_EQ(partitioned_layout("FPF", Shape{32, 512, 512}), L("S(32,4,128,512):(512@F,16384@F,1@P,1@F)"));
  const TileLayout psum = to_banks(L("S(1024,8):(1@F,1@P)"));
  for (int64_t i = 0; i < 1024; ++i)
    for (int64_t j = 0; j < 8; ++j)
      ASSERT_EQ(psum.at(8 * i + j), pt({{axis::Bank, i / 512}, {axis::F, i % 512}, {axis::P, j}}));
}

}  // namespace
}  // namespace tw
