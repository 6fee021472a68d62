// Fragments and tensor-memory layouts against the formulas of the PTX ISA 9.1, section by section. Where the
// ISA has only a figure, the expected map is written out as the figure shows it, from the hardware's side:
// (thread, register) -> element.
#include "tilewright/layout/constructors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "tilewright/base/error.h"
#include "tilewright/layout/text.h"

namespace tw {
namespace {

struct Element {
  int64_t row, column;
};

// Checks that `layout` over (rows, columns) puts at (thread, register) the element that `holds` names, for
// all of them.
void expect_holds(const TileLayout& layout, Shape shape, int64_t warps, int64_t registers,
                  const std::function<Element(int64_t warp, int64_t lane, int64_t i)>& holds) {
  ASSERT_EQ(layout.size(), warps * 32 * registers);
  for (int64_t w = 0; w < warps; ++w)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < registers; ++i) {
        const Element e = holds(w, lane, i);
        const Point expected{{axis::wid_in_wg, w}, {axis::laneid, lane}, {axis::m, i}};
        ASSERT_EQ(layout.at(Shape{e.row, e.column}, shape), expected)
            << "warp " << w << " lane " << lane << " i " << i;
      }
}

// "Canonical Layouts": the table's K-major and MN-major rows, T = 128 bits. Strides in elements; the swizzle,
// Swizzle<B,4,3> of bytes, exchanges 16-byte chunks by the bits of the 128-byte row.
TEST(MmaSharedLayout, CanonicalLayoutsOfTheIsa) {
  for (DType type : {DType::f16, DType::e4m3, DType::tf32})
    for (auto [mode, chunks] : {std::pair{SwizzleMode::none, 1},
                                {SwizzleMode::b32, 2},
                                {SwizzleMode::b64, 4},
                                {SwizzleMode::b128, 8}}) {
      const int64_t t = 128 / bits(type), row = chunks * t;
      const int64_t mn = 2 * std::max<int64_t>(8, row), k = mn;
      auto swizzled = [&, b = std::countr_zero(static_cast<unsigned>(chunks))](int64_t place) {
        const int64_t byte = place * bits(type) / 8;
        const int64_t flips = (byte >> 7) & ((1 << b) - 1);
        return (byte ^ (flips << 4)) * 8 / bits(type);
      };
      const Layout by_k = mma_shared_layout(type, mode, Shape{mn, k});
      const Layout by_mn = mma_shared_layout(type, mode, Shape{mn, k}, Major::mn);
      for (int64_t i = 0; i < mn; ++i)
        for (int64_t j = 0; j < k; ++j) {
          // ((8,m),(row,k)) : ((row,SBO),(1,LBO)), SBO the next 8 rows, LBO the next swizzle width of K.
          const int64_t sbo = 8 * row, k_step = mn * row;
          ASSERT_EQ(by_k.place(i * k + j), swizzled(i % 8 * row + i / 8 * sbo + j % row + j / row * k_step));
          // ((row,m),(8,k)) : ((1,LBO),(row,SBO))
          const int64_t mn_step = k * row;
          ASSERT_EQ(by_mn.place(i * k + j),
                    swizzled(i % row + i / row * mn_step + j % 8 * row + j / 8 * sbo));
        }
    }
}

// "Matrix Fragments for mma.m16n8k16 with floating point type"
TEST(MmaFragments, M16n8k16Half) {
  expect_holds(mma_a_fragment(DType::f16, 16), {16, 16}, 1, 8, [](int64_t, int64_t lane, int64_t i) {
    const bool upper = i < 2 || (i >= 4 && i < 6);
    return Element{lane / 4 + (upper ? 0 : 8), lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  });
  expect_holds(mma_b_fragment(DType::bf16, 16), {16, 8}, 1, 4, [](int64_t, int64_t lane, int64_t i) {
    return Element{lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), lane / 4};
  });
  expect_holds(mma_accumulator_fragment(), {16, 8}, 1, 4, [](int64_t, int64_t lane, int64_t i) {
    return Element{lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
  });
}

// "Matrix Fragments for mma.m16n8k8"
TEST(MmaFragments, M16n8k8) {
  expect_holds(mma_a_fragment(DType::f16, 8), {16, 8}, 1, 4, [](int64_t, int64_t lane, int64_t i) {
    return Element{lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
  });
  expect_holds(mma_a_fragment(DType::tf32, 8), {16, 8}, 1, 4, [](int64_t, int64_t lane, int64_t i) {
    return Element{lane / 4 + (i % 2 == 0 ? 0 : 8), lane % 4 + (i < 2 ? 0 : 4)};
  });
  expect_holds(mma_b_fragment(DType::tf32, 8), {8, 8}, 1, 2, [](int64_t, int64_t lane, int64_t i) {
    return Element{lane % 4 + 4 * i, lane / 4};
  });
}

// "Matrix Fragments for mma.m16n8k32": s8, u8, e4m3, e5m2, and the 4-bit integers
TEST(MmaFragments, M16n8k32) {
  expect_holds(mma_a_fragment(DType::e4m3, 32), {16, 32}, 1, 16, [](int64_t, int64_t lane, int64_t i) {
    const bool upper = i < 4 || (i >= 8 && i < 12);
    return Element{lane / 4 + (upper ? 0 : 8), lane % 4 * 4 + (i & 3) + (i < 8 ? 0 : 16)};
  });
  expect_holds(mma_b_fragment(DType::i8, 32), {32, 8}, 1, 8, [](int64_t, int64_t lane, int64_t i) {
    return Element{lane % 4 * 4 + (i & 3) + (i < 4 ? 0 : 16), lane / 4};
  });
  EXPECT_THROW(mma_a_fragment(DType::f16, 32), Error);
  EXPECT_THROW(mma_a_fragment(DType::f64, 4), Error);
}

// "Warp-level matrix load instruction: ldmatrix": a group of four lanes holds a row of 8 elements of 16 bits,
// matrix i in register i; with .trans the same of the columns ("movmatrix" shows that figure).
TEST(Ldmatrix, Fragments) {
  const Shape shape{4, 8, 8};
  const TileLayout plain = ldmatrix_fragment(4), transposed = ldmatrix_fragment(4, true);
  for (int64_t mat = 0; mat < 4; ++mat)
    for (int64_t r = 0; r < 8; ++r)
      for (int64_t c = 0; c < 8; ++c) {
        EXPECT_EQ(plain.at(Shape{mat, r, c}, shape),
                  (Point{{axis::laneid, 4 * r + c / 2}, {axis::m, 2 * mat + c % 2}}));
        EXPECT_EQ(transposed.at(Shape{mat, c, r}, shape), plain.at(Shape{mat, r, c}, shape));
      }
  EXPECT_THROW(ldmatrix_fragment(3), Error);
}

// Four ldmatrix matrices in the order (rows 0-7, rows 8-15) x (k 0-7, k 8-15), k slower, are the A fragment
// of mma.m16n8k16.
TEST(Ldmatrix, X4IsTheAFragment) {
  const Shape split{2, 2, 8, 8};  // (k half, row half, row, k)
  const int order[] = {1, 2, 0, 3};
  EXPECT_TRUE(ldmatrix_fragment(4).permute_dims(split, order).equivalent(mma_a_fragment(DType::f16, 16)));
}

// "Register Fragments and Shared Memory Matrix Layouts", figures of wgmma .m64nNk16: warp w holds rows
// 16w..16w+15; within a warp, D is a row of m16n8 accumulators, and A an mma A fragment.
TEST(WgmmaFragments, AccumulatorAndA) {
  for (int64_t n : {8, 64, 256})
    expect_holds(wgmma_accumulator_fragment(n), {64, n}, 4, n / 2, [](int64_t w, int64_t lane, int64_t i) {
      return Element{16 * w + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + lane % 4 * 2 + i % 2};
    });
  for (const auto& [type, elements] : {std::pair{DType::tf32, 1}, {DType::bf16, 2}, {DType::e5m2, 4}})
    expect_holds(
        wgmma_a_fragment(type), {64, 8 * elements}, 4, 4 * elements,
        [e = elements](int64_t w, int64_t lane, int64_t i) {
          return Element{16 * w + lane / 4 + 8 * (i / e % 2), lane % 4 * e + i % e + 4 * e * (i / (2 * e))};
        });
  EXPECT_THROW(wgmma_accumulator_fragment(12), Error);
  EXPECT_THROW(wgmma_accumulator_fragment(264), Error);
}

// "Data Movement Shape", figures .32x32b, .16x64b, .16x128b, .16x256b
TEST(Tcgen05Atoms, Figures) {
  expect_holds(tcgen05_atom_layout(Tcgen05Shape::s16x64b, DType::f32, 64, 16), {64, 16}, 4, 8,
               [](int64_t w, int64_t lane, int64_t i) {
                 return Element{16 * w + 8 * (lane % 2) + lane / 4, lane / 2 % 2 + 2 * i};
               });
  expect_holds(tcgen05_atom_layout(Tcgen05Shape::s16x128b, DType::f32, 64, 16), {64, 16}, 4, 8,
               [](int64_t w, int64_t lane, int64_t i) {
                 return Element{16 * w + 8 * (i % 2) + lane / 4, lane % 4 + 4 * (i / 2)};
               });
  EXPECT_EQ(tcgen05_atom_layout(Tcgen05Shape::s16x256b, DType::f32, 64, 64), wgmma_accumulator_fragment(64));
  EXPECT_EQ(tcgen05_atom_layout(Tcgen05Shape::s32x32b, DType::f32, 128, 64),
            parse_tile_layout("S(128,64):(1@tid_in_wg,1)"));
}

TEST(Tcgen05Atoms, FactsI4I5I6) {
  auto at = [](const TileLayout& l, Shape shape, Shape c) { return l.at(c, shape); };
  auto p = [](int64_t w, int64_t l, int64_t m) {
    return Point{{axis::wid_in_wg, w}, {axis::laneid, l}, {axis::m, m}};
  };
  const auto i4 = tcgen05_atom_layout(Tcgen05Shape::s16x64b, DType::f32, 64, 4);
  EXPECT_EQ(i4, parse_tile_layout("S(4,2,8,2,2):(1@wiw,1@l,4@l,1,2@l)"));
  EXPECT_EQ(at(i4, {64, 4}, {0, 1}), p(0, 2, 0));
  EXPECT_EQ(at(i4, {64, 4}, {8, 0}), p(0, 1, 0));
  EXPECT_EQ(at(i4, {64, 4}, {17, 3}), p(1, 6, 1));
  const auto i5 = tcgen05_atom_layout(Tcgen05Shape::s16x128b, DType::f32, 64, 8);
  EXPECT_EQ(i5, parse_tile_layout("S(4,2,8,2,4):(1@wiw,1,4@l,2,1@l)"));
  EXPECT_EQ(at(i5, {64, 8}, {8, 0}), p(0, 0, 1));
  EXPECT_EQ(at(i5, {64, 8}, {17, 3}), p(1, 7, 0));
  const auto i6 = tcgen05_atom_layout(Tcgen05Shape::s16x256b, DType::f32, 64, 16);
  EXPECT_EQ(i6, parse_tile_layout("S(4,2,8,2,4,2):(1@wiw,2,4@l,4,1@l,1)"));
  EXPECT_EQ(at(i6, {64, 16}, {0, 1}), p(0, 0, 1));
  EXPECT_EQ(at(i6, {64, 16}, {8, 0}), p(0, 0, 2));
  EXPECT_EQ(at(i6, {64, 16}, {17, 3}), p(1, 5, 1));
}

TEST(Tcgen05Atoms, PackedTypesBothHalvesAndLimits) {
  // 16-bit elements: the 32-bit map with each element unpacked.
  for (auto s :
       {Tcgen05Shape::s16x64b, Tcgen05Shape::s16x128b, Tcgen05Shape::s16x256b, Tcgen05Shape::s32x32b}) {
    const int64_t rows = s == Tcgen05Shape::s32x32b ? 128 : 64;
    EXPECT_TRUE(tcgen05_atom_layout(s, DType::f16, rows, 64)
                    .equivalent(tcgen05_atom_layout(s, DType::f32, rows, 32).unpack(2)));
  }
  // 128 rows: lanes 16..31 of each warp come with the second issue, whose registers follow.
  const TileLayout both = tcgen05_atom_layout(Tcgen05Shape::s16x256b, DType::f32, 128, 16);
  const TileLayout one = tcgen05_atom_layout(Tcgen05Shape::s16x256b, DType::f32, 64, 16);
  for (int64_t r = 0; r < 128; ++r)
    for (int64_t c = 0; c < 16; ++c) {
      Point expected = one.at(Shape{r / 32 * 16 + r % 16, c}, Shape{64, 16});
      expected.add(axis::m, r / 16 % 2 * 8);
      ASSERT_EQ(both.at(Shape{r, c}, Shape{128, 16}), expected);
    }
  EXPECT_EQ(tcgen05_num(Tcgen05Shape::s16x256b, DType::f32, 256), 32);
  EXPECT_THROW(tcgen05_num(Tcgen05Shape::s16x256b, DType::f32, 512), Error);
  EXPECT_THROW(tcgen05_num(Tcgen05Shape::s16x256b, DType::f32, 24), Error);
  EXPECT_THROW(tcgen05_atom_layout(Tcgen05Shape::s32x32b, DType::f32, 64, 16), Error);
}

// "Data Path Layout Organization": the table of layout IDs, and their figures.
TEST(DataPaths, Table) {
  EXPECT_EQ(data_path_of(32, 1, true), DataPath::G);
  EXPECT_EQ(data_path_of(64, 1, true), DataPath::E);
  EXPECT_EQ(data_path_of(64, 1, false), DataPath::F);
  EXPECT_EQ(data_path_of(128, 1, false), DataPath::D);
  EXPECT_EQ(data_path_of(128, 1, true), DataPath::D);
  EXPECT_EQ(data_path_of(128, 2, false), DataPath::B);
  EXPECT_EQ(data_path_of(128, 2, false, true), DataPath::C);
  EXPECT_EQ(data_path_of(256, 2, false), DataPath::A);
  EXPECT_THROW(data_path_of(32, 1, false), Error);
  EXPECT_THROW(data_path_of(64, 2, false), Error);
}

TEST(DataPaths, Lanes) {
  constexpr int64_t n = 64;
  auto check = [&](DataPath path, const std::function<Element(int64_t r, int64_t c)>& lane_and_column,
                   int64_t offset = 0) {
    const TileLayout l = tmem_datapath_layout(path, n, offset);
    const Shape shape{data_path_rows(path), n};
    for (int64_t r = 0; r < shape[0]; ++r)
      for (int64_t c = 0; c < n; ++c) {
        const Element e = lane_and_column(r, c);
        ASSERT_EQ(l.at(Shape{r, c}, shape), (Point{{axis::TLane, e.row}, {axis::TCol, e.column}}));
      }
    EXPECT_TRUE(l.is_injective());
  };
  auto identity = [](int64_t r, int64_t c) { return Element{r, c}; };                               // I1
  auto halves = [](int64_t r, int64_t c) { return Element{r + 64 * (c / (n / 2)), c % (n / 2)}; };  // I3
  auto quarters = [](int64_t r, int64_t c) { return Element{r + 32 * (c / (n / 4)), c % (n / 4)}; };
  auto slabs = [](int64_t s) {  // I2
    return [s](int64_t r, int64_t c) { return Element{32 * (r / 16) + 16 * s + r % 16, c}; };
  };
  check(DataPath::A, identity);
  check(DataPath::D, identity);
  check(DataPath::B, halves);
  check(DataPath::E, halves);
  check(DataPath::G, quarters);
  check(DataPath::C, slabs(0));
  check(DataPath::F, slabs(0));
  check(DataPath::F, slabs(1), 16);
  EXPECT_THROW(tmem_datapath_layout(DataPath::D, n, 16), Error);
}

TEST(TensorMemory, OperandsAndScales) {
  EXPECT_EQ(tmem_mma_operand_layout(DataPath::E, 512, 256),
            parse_tile_layout("S(64,2,2,128):(1@TLane,128@TCol,64@TLane,1@TCol)"));  // I7
  EXPECT_EQ(sf_tmem_layout(128, 4, 4),
            parse_tile_layout("S(4,32,4):(4@TCol,1@TLane,1@TCol) + R[4:32@TLane]"));  // I8
}

TEST(Permute, XorSearchI9) {
  const TileLayout rows = parse_tile_layout("S(4,32):(32,1)"), columns = parse_tile_layout("S(4,32):(1,4)");
  EXPECT_EQ(conflict_free_xor(rows, columns, 4), 2);
  EXPECT_EQ(conflict_free_xor(rows, columns, 2), std::nullopt);
  EXPECT_EQ(conflict_free_xor(rows, columns, 1), std::nullopt);
  EXPECT_EQ(conflict_free_xor(rows, rows, 4), 0);
  EXPECT_EQ(conflict_free_xor(columns, columns, 2), 0);
}

}  // namespace
}  // namespace tw
