#include "tilewright/lower/tma_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "tilewright/layout/constructors.h"

namespace tw::lowering {
namespace {

using ir::Expr;

// A part of a tensor or tile: per dimension (offset, extent).
using Region = std::vector<std::pair<int64_t, int64_t>>;

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

GlobalRegion tensor(const Shape& shape, const Region& region, Shape strides = {}) {
  if (strides.empty()) strides = dense_strides(shape);
  GlobalRegion g;
  for (size_t d = 0; d < shape.size(); ++d)
    g.dims.push_back({Expr(shape[d]), Expr(strides[d]), Expr(region[d].first), region[d].second});
  return g;
}

Region whole(const Shape& shape) {
  Region r;
  for (int64_t n : shape) r.emplace_back(0, n);
  return r;
}

SharedRegion tile(const Layout& layout, const Shape& shape, const Region& region) {
  SharedRegion s{layout, {}};
  for (size_t d = 0; d < shape.size(); ++d)
    s.dims.push_back({shape[d], Expr(region[d].first), region[d].second});
  return s;
}

TileLayout strided(const Shape& shape, const Shape& strides) {
  std::vector<Iter> iters;
  for (size_t d = 0; d < shape.size(); ++d) iters.push_back({shape[d], strides[d]});
  return TileLayout(iters);
}

std::vector<int64_t> values(const std::vector<Expr>& exprs) {
  std::vector<int64_t> v;
  for (const Expr& e : exprs) v.push_back(e.constant().value());
  return v;
}

// Swizzle modes by the numbers of cuTensorMapEncodeTiled.
constexpr SwizzleMode sw[] = {SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128};

constexpr int plain = -1;

// The descriptor cases of TIRx (apache/tvm 5d4dc8721307, test_tma.py). `one_box` plans, as that system does.
struct Case {
  const char* id;
  DType dtype;
  Shape tensor_shape;
  Region tensor_region;
  Shape tile_shape;
  Region tile_region;
  int layout;                                            // swizzle of the canonical operand layout, or plain
  std::vector<int64_t> dims, strides, box, coordinates;  // no coordinates: zeros
  TmaDirection direction = TmaDirection::load;
  std::optional<OobFill> oob = {};
  Shape tensor_strides = {};
  DType map_dtype = DType::b1;  // b1: that of the tile
};

constexpr DType f16 = DType::f16;
constexpr TmaDirection store = TmaDirection::store;

// clang-format off
const std::vector<Case> cases = {
  {"8x256", f16, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {64,8,4}, {512,128}, {64,8,4}, {}},
  {"8x256 sw2", f16, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 2, {32,8,8}, {512,64}, {32,8,8}, {}},
  {"8x256 sw1", f16, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 1, {16,8,16}, {512,32}, {16,8,16}, {}},
  {"8x256 sw0", f16, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 0, {8,8,32}, {512,16}, {8,8,32}, {}},
  {"8x256 i8", DType::i8, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {128,8,2}, {256,128}, {128,8,2}, {}},
  {"8x256 bf16", DType::bf16, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {64,8,4}, {512,128}, {64,8,4}, {}},
  {"8x256 f32", DType::f32, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {32,8,8}, {1024,128}, {32,8,8}, {}},
  {"8x256 u8", DType::u8, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {128,8,2}, {256,128}, {128,8,2}, {}},
  {"8x256 e4m3", DType::e4m3, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {128,8,2}, {256,128}, {128,8,2}, {}},
  {"8x256 e5m2", DType::e5m2, {8,256}, whole({8,256}), {8,256}, whole({8,256}), 3, {128,8,2}, {256,128}, {128,8,2}, {}},
  {"stage 1 of 3", f16, {64,256}, whole({64,256}), {3,64,256}, {{1,1},{0,64},{0,256}}, 3, {64,64,4}, {512,128}, {64,64,4}, {}},
  {"part of 8192^2", f16, {8192,8192}, {{0,128},{0,64}}, {128,64}, whole({128,64}), 3, {8192,8192}, {16384}, {64,128}, {}},
  {"4-d tile", f16, {128,64}, whole({128,64}), {2,2,128,64}, {{0,1},{0,1},{0,128},{0,64}}, 3, {64,128}, {128}, {64,128}, {}},
  {"24 rows at 64", f16, {128,64}, {{64,24},{0,64}}, {2,2,24,64}, {{0,1},{0,1},{0,24},{0,64}}, 3, {64,128}, {128}, {64,24}, {0,64}},
  {"rows 128+128", f16, {256,64}, {{128,128},{0,64}}, {256,64}, {{0,128},{0,64}}, 3, {64,256}, {128}, {64,128}, {0,128}},
  {"part of a stage", f16, {128,256}, {{0,32},{0,64}}, {6,128,64}, {{0,1},{0,32},{0,64}}, 3, {256,128}, {512}, {64,32}, {}},
  {"part of stage 1", f16, {256,512}, {{0,64},{0,64}}, {4,256,64}, {{1,1},{0,64},{0,64}}, 3, {512,256}, {1024}, {64,64}, {}},
  {"3-d plain", f16, {4,32,64}, whole({4,32,64}), {4,32,64}, whole({4,32,64}), plain, {64,128}, {128}, {64,128}, {}},
  {"part of 3-d plain", f16, {8,16,128}, {{0,4},{0,16},{0,128}}, {4,16,128}, whole({4,16,128}), plain, {128,128}, {256}, {128,64}, {}},
  {"4-d tensor a", f16, {2,128,8,64}, {{0,1},{0,128},{0,1},{0,64}}, {1,1,128,64}, whole({1,1,128,64}), 3, {64,256,8}, {1024,128}, {64,128,1}, {}},
  {"4-d tensor b", f16, {4,64,4,128}, {{0,1},{0,64},{0,1},{0,128}}, {1,1,64,128}, whole({1,1,64,128}), 3, {64,64,2,4,4}, {1024,128,65536,256}, {64,64,2,1,1}, {}},
  {"4-d tensor b, 2-d tile", f16, {4,64,4,128}, {{0,1},{0,64},{0,1},{0,128}}, {64,128}, whole({64,128}), 3, {64,64,2,4,4}, {1024,128,65536,256}, {64,64,2,1,1}, {}},
  {"two batch dims", f16, {2,2,128,64}, {{0,1},{0,1},{0,128},{0,64}}, {128,64}, whole({128,64}), 3, {64,128,2,2}, {128,32768,16384}, {64,128,1,1}, {}},
  {"3x8x256", f16, {3,8,256}, {{0,1},{0,8},{0,256}}, {8,256}, whole({8,256}), 3, {64,8,4,3}, {512,128,4096}, {64,8,4,1}, {}},
  {"5x64x256", f16, {5,64,256}, {{0,1},{0,64},{0,256}}, {64,256}, whole({64,256}), 3, {64,64,4,5}, {512,128,32768}, {64,64,4,1}, {}},
  {"interleaved batches", f16, {16,16,128,128}, {{3,1},{4,1},{0,128},{0,128}}, {128,128}, whole({128,128}), plain, {128,2048,16}, {2048,256}, {128,128,1}, {0,384,4}, TmaDirection::load, {}, {131072,128,1024,1}},
  {"oob zero", f16, {128,64}, {{120,16},{0,64}}, {16,64}, whole({16,64}), 3, {64,128}, {128}, {64,16}, {0,120}, TmaDirection::load, OobFill::zero},
  {"oob nan", f16, {128,64}, {{120,16},{0,64}}, {16,64}, whole({16,64}), 3, {64,128}, {128}, {64,16}, {0,120}, TmaDirection::load, OobFill::nan},
  {"attention Q", f16, {1,2048,32,128}, {{0,1},{0,32},{0,4},{0,128}}, {2,128,128}, {{0,1},{0,128},{0,128}}, 3, {64,32,2048,2}, {256,8192,128}, {64,4,32,2}, {}},
  {"attention K", f16, {1,2048,8,128}, {{0,1},{0,128},{0,1},{0,128}}, {3,128,128}, {{0,1},{0,128},{0,128}}, 3, {64,2048,16}, {2048,128}, {64,128,2}, {}},
  {"attention V", f16, {1,2048,8,128}, {{0,1},{0,128},{0,1},{0,128}}, {3,128,128}, {{0,1},{0,128},{0,128}}, 3, {64,2048,16}, {2048,128}, {64,128,2}, {}},
  {"store 3x8x256", f16, {3,8,256}, {{0,1},{0,8},{0,256}}, {8,256}, whole({8,256}), 3, {64,8,4,3}, {512,128,4096}, {64,8,4,1}, {}, store},
  {"store 3x8x256 sw2", f16, {3,8,256}, {{0,1},{0,8},{0,256}}, {8,256}, whole({8,256}), 2, {32,8,8,3}, {512,64,4096}, {32,8,8,1}, {}, store},
  {"store 3x8x256 sw0", f16, {3,8,256}, {{0,1},{0,8},{0,256}}, {8,256}, whole({8,256}), 0, {8,8,32,3}, {512,16,4096}, {8,8,32,1}, {}, store},
  {"store 3x8x256 i8", DType::i8, {3,8,256}, {{0,1},{0,8},{0,256}}, {8,256}, whole({8,256}), 3, {128,8,2,3}, {256,128,2048}, {128,8,2,1}, {}, store},
  {"store 3x8x256 f32", DType::f32, {3,8,256}, {{0,1},{0,8},{0,256}}, {8,256}, whole({8,256}), 3, {32,8,8,3}, {1024,128,8192}, {32,8,8,1}, {}, store},
  {"store 5x64x256", f16, {5,64,256}, {{0,1},{0,64},{0,256}}, {64,256}, whole({64,256}), 3, {64,64,4,5}, {512,128,32768}, {64,64,4,1}, {}, store},
  {"store keeps coordinates", DType::bf16, {1024,4,1024}, {{128,128},{1,1},{32,32}}, {128,32}, whole({128,32}), plain, {1024,1024,4}, {8192,2048}, {32,128,1}, {32,128,1}, store},
  {"store a batch", f16, {2,128,64}, {{0,1},{0,128},{0,64}}, {128,64}, whole({128,64}), 3, {64,256}, {128}, {64,128}, {}, store},
  // Beyond the matrix: single facts of the same file.
  {"the box cap stops a merge", f16, {8,64}, whole({8,64}), {8,64}, whole({8,64}), plain, {64,8}, {128}, {64,8}, {}},
  {"u8 becomes u16", DType::u8, {64,8}, whole({64,8}), {64,8}, whole({64,8}), plain, {256}, {}, {256}, {}, TmaDirection::load, {}, {}, DType::u16},
  {"u8 rows merge", DType::u8, {32,8}, whole({32,8}), {32,8}, whole({32,8}), plain, {256}, {}, {256}, {}},
  {"six dims merge", f16, {2,2,2,2,2,8}, whole({2,2,2,2,2,8}), {2,2,2,2,2,8}, whole({2,2,2,2,2,8}), plain, {256}, {}, {256}, {}},
  {"coordinates of unit extents", f16, {4,256,8,512}, {{2,1},{64,128},{3,1},{128,128}}, {1,128,1,128}, whole({1,128,1,128}), plain, {512,256,4,8}, {8192,2097152,1024}, {128,128,1,1}, {128,64,2,3}},
  {"leading unit dim", f16, {1,8192}, {{0,1},{512,256}}, {256}, whole({256}), plain, {8192}, {}, {256}, {512}},
  {"wider before a short row", DType::u8, {8,16,32,4,4}, {{0,1},{0,4},{0,32},{0,4},{0,4}}, {8,16,32,4,4}, {{0,1},{0,4},{0,32},{0,4},{0,4}}, plain, {256,16,8}, {512,8192}, {256,4,1}, {}, TmaDirection::load, {}, {}, DType::u16},
};
// clang-format on

TmaPlanOr plan(const Case& c, bool several) {
  Layout layout = c.layout == plain ? Layout(TileLayout::row_major(c.tile_shape))
                                    : mma_shared_layout(c.dtype, sw[c.layout], c.tile_shape);
  return plan_tma(c.dtype, tensor(c.tensor_shape, c.tensor_region, c.tensor_strides),
                  tile(layout, c.tile_shape, c.tile_region),
                  {.direction = c.direction, .oob = c.oob, .several = several});
}

TEST(TmaPlan, DescriptorCases) {
  for (const Case& c : cases)
    for (bool several : {false, true}) {
      SCOPED_TRACE(c.id);
      TmaPlanOr result = plan(c, several);
      ASSERT_TRUE(std::holds_alternative<TmaPlan>(result)) << std::get<std::string>(result);
      const TmaPlan& p = std::get<TmaPlan>(result);
      EXPECT_EQ(p.dtype, c.map_dtype == DType::b1 ? c.dtype : c.map_dtype);
      EXPECT_EQ(values(p.dims), c.dims);
      EXPECT_EQ(values(p.strides), c.strides);
      EXPECT_EQ(std::vector<int64_t>(p.box.begin(), p.box.end()), c.box);
      EXPECT_EQ(p.swizzle, sw[std::max(c.layout, 0)]);
      EXPECT_EQ(p.l2, TensorMap::L2Promotion::b128);
      EXPECT_EQ(p.nan_fill, c.oob == OobFill::nan);
      EXPECT_TRUE(p.requirements.empty());
      ASSERT_EQ(p.instructions.size(), 1u);
      std::vector<int64_t> coordinates = c.coordinates;
      coordinates.resize(c.dims.size(), 0);
      EXPECT_EQ(values(p.instructions[0].coordinates), coordinates);
    }
}

std::string reason(const TmaPlanOr& result) {
  return std::holds_alternative<std::string>(result) ? std::get<std::string>(result) : "(a plan)";
}
std::string rule(const TmaPlanOr& result) { return reason(result).substr(0, reason(result).find(':')); }

// Super-atoms of 16 x 256 tiled to 32 x 512: neither dimension is one run in shared memory.
Layout super_atoms() {
  const Shape atom = mma_shared_atom_shape(f16, SwizzleMode::b128), super = {16, 256};
  return mma_shared_layout(f16, SwizzleMode::b128, atom).tile_to(super, atom).tile_to(Shape{32, 512}, super);
}

const TmaOptions one_box{.several = false};

TEST(TmaPlan, RefusedCases) {
  // Two runs of a row, two of a column: six dimensions in one box.
  const TmaPlanOr load = plan_tma(f16, tensor({32, 512}, whole({32, 512})),
                                  tile(super_atoms(), {32, 512}, whole({32, 512})), one_box);
  EXPECT_EQ(reason(load), "rank: a tensor map has 1 to 5 dimensions, got 6");
  for (TmaDirection direction : {TmaDirection::load, TmaDirection::store})
    EXPECT_EQ(reason(plan_tma(f16, tensor({7, 32, 512}, {{0, 1}, {0, 32}, {0, 512}}),
                              tile(super_atoms(), {32, 512}, whole({32, 512})),
                              {.direction = direction, .several = false})),
              "rank: a tensor map has 1 to 5 dimensions, got 6");

  const Shape gap = {8, 32, 64};
  EXPECT_EQ(rule(plan_tma(f16, tensor(gap, whole(gap)), tile(strided(gap, {4096, 64, 1}), gap, whole(gap)),
                          one_box)),
            "shared-chain");

  struct Transposed {
    Shape tensor_shape;
    Region region;
  };
  for (const auto& [shape, region] :
       {Transposed{{32, 64}, {{0, 32}, {0, 64}}}, Transposed{{64, 32}, {{0, 64}, {0, 32}}},
        Transposed{{128, 64}, {{0, 64}, {0, 64}}}, Transposed{{128, 64}, {{64, 64}, {0, 32}}}})
    for (bool several : {false, true}) {
      const Shape part = {region[0].second, region[1].second};
      EXPECT_EQ(rule(plan_tma(f16, tensor(shape, region),
                              tile(strided(part, {1, part[0]}), part, whole(part)), {.several = several})),
                "global_stride_alignment");
    }

  const GlobalRegion batch = tensor({2, 128, 64}, {{0, 1}, {0, 128}, {0, 64}});
  const Shape rows = {128, 64};
  const SharedRegion swizzled = tile(mma_shared_layout(f16, SwizzleMode::b128, rows), rows, whole(rows));
  for (OobFill oob : {OobFill::zero, OobFill::nan})
    EXPECT_EQ(rule(plan_tma(f16, batch, swizzled, {.direction = store, .oob = oob})), "oob_direction");
  const SharedRegion bytes = tile(TileLayout::row_major(rows), rows, whole(rows));
  EXPECT_EQ(rule(plan_tma(DType::i8, batch, bytes, {.direction = store, .oob = OobFill::nan})),
            "oob_direction");
  const Shape tail = {16, 64};
  EXPECT_EQ(rule(plan_tma(DType::i8, tensor({128, 64}, {{120, 16}, {0, 64}}),
                          tile(TileLayout::row_major(tail), tail, whole(tail)), {.oob = OobFill::nan})),
            "nan_oob_dtype");
  // fp8 travels as bytes, for which the driver has no NaN.
  EXPECT_EQ(rule(plan_tma(DType::e4m3, tensor({128, 64}, {{120, 16}, {0, 64}}),
                          tile(TileLayout::row_major(tail), tail, whole(tail)), {.oob = OobFill::nan})),
            "nan_oob_dtype");
}

TEST(TmaPlan, RefusesWhatDoesNotDivide) {
  const Shape shape = {3, 64, 8};
  const SharedRegion s = tile(strided(shape, {512, 1, 64}), shape, whole(shape));
  EXPECT_EQ(rule(plan_tma(f16, tensor({128, 64}, {{4, 24}, {0, 64}}), s)), "coordinate");
  EXPECT_EQ(rule(plan_tma(f16, tensor({130, 64}, {{0, 24}, {0, 64}}), s)), "global-shape");
  const Shape odd = {8, 64, 5};
  EXPECT_EQ(rule(plan_tma(DType::u8, tensor({8, 64, 8}, {{0, 8}, {0, 64}, {0, 5}}),
                          tile(TileLayout::row_major(odd), odd, whole(odd)), one_box)),
            "global_stride_alignment");
}

// A box begins at whole 16 bytes of a row (recorded on an H200: an illegal instruction otherwise).
TEST(TmaPlan, InnerCoordinateIsAMultipleOf16Bytes) {
  for (DType type : {DType::u8, f16, DType::f32, DType::f64}) {
    const int64_t width = 128 * 8 / bits(type), piece = 16 * 8 / bits(type);
    const Shape part = {8, width};
    for (SwizzleMode mode : {SwizzleMode::none, SwizzleMode::b128}) {
      const SharedRegion s = mode == SwizzleMode::none
                                 ? tile(TileLayout::row_major(part), part, whole(part))
                                 : tile(mma_shared_layout(type, mode, part), part, whole(part));
      for (int64_t column = -2 * piece; column <= 2 * piece; ++column) {
        const TmaPlanOr p = plan_tma(type, tensor({16, 2 * width}, {{4, 8}, {column, width}}), s);
        if (column % piece != 0) EXPECT_EQ(rule(p), "inner_coordinate") << column;
        else
          EXPECT_EQ(values(std::get<TmaPlan>(p).instructions[0].coordinates),
                    (std::vector<int64_t>{column, 4}));
      }
    }
  }
}

TEST(TmaPlan, OneRowABox) {
  const Shape shape = {512, 64};
  const GlobalRegion g = tensor(shape, whole(shape));
  const SharedRegion s = tile(TileLayout::row_major(shape), shape, whole(shape));
  const TmaPlan rows = std::get<TmaPlan>(plan_tma(f16, g, s, {.box_rows = 1}));
  EXPECT_EQ(rows.box, (std::vector<uint32_t>{64, 1}));
  ASSERT_EQ(rows.instructions.size(), 512u);
  EXPECT_EQ(values(rows.instructions[7].coordinates), (std::vector<int64_t>{0, 7}));
  EXPECT_TRUE(rows.instructions[7].shared_offset.is(448 * 2));
  // Left alone, the box takes all the rows it may.
  const TmaPlan p = std::get<TmaPlan>(plan_tma(f16, g, s));
  EXPECT_EQ(p.box, (std::vector<uint32_t>{64, 256}));
  ASSERT_EQ(p.instructions.size(), 2u);
  EXPECT_EQ(values(p.instructions[1].coordinates), (std::vector<int64_t>{0, 256}));
  EXPECT_TRUE(p.instructions[1].shared_offset.is(256 * 64 * 2));
  EXPECT_EQ(p.box_bytes(), 32768);
  EXPECT_EQ(p.bytes(), 65536);
}

struct Expected {
  std::vector<int64_t> dims, strides, box;
  size_t instructions;
};
void expect_plan(const TmaPlanOr& result, const Expected& e) {
  ASSERT_TRUE(std::holds_alternative<TmaPlan>(result)) << reason(result);
  const TmaPlan& p = std::get<TmaPlan>(result);
  EXPECT_EQ(values(p.dims), e.dims);
  EXPECT_EQ(values(p.strides), e.strides);
  EXPECT_EQ(std::vector<int64_t>(p.box.begin(), p.box.end()), e.box);
  EXPECT_EQ(p.instructions.size(), e.instructions);
}

TEST(TmaPlan, SeveralInstructionsWhereOneBoxWillNotDo) {
  // Five of the six dimensions fit in a box.
  expect_plan(
      plan_tma(f16, tensor({32, 512}, whole({32, 512})), tile(super_atoms(), {32, 512}, whole({32, 512}))),
      {{64, 8, 4, 4, 2}, {1024, 128, 8192, 512}, {64, 8, 4, 2, 2}, 2});
  // Holes between the planes of a tile.
  const Shape planes = {8, 32, 64};
  expect_plan(plan_tma(f16, tensor(planes, whole(planes)),
                       tile(strided(planes, {4096, 64, 1}), planes, whole(planes))),
              {{64, 32, 8}, {128, 4096}, {64, 32, 1}, 8});
  // A tensor that ends inside a swizzled row: its columns cannot be a dimension of whole rows.
  const Shape out = {128, 256};
  const Layout swizzled = mma_shared_layout(f16, SwizzleMode::b128, out);
  const TmaPlanOr tail =
      plan_tma(f16, tensor({1000, 1000}, {{896, 128}, {768, 256}}), tile(swizzled, out, whole(out)));
  expect_plan(tail, {{1000, 1000}, {2000}, {64, 128}, 4});
  for (size_t i = 0; i < 4; ++i) {
    const TmaInstruction& t = std::get<TmaPlan>(tail).instructions[i];
    const int64_t n = static_cast<int64_t>(i);
    EXPECT_EQ(values(t.coordinates), (std::vector<int64_t>{768 + 64 * n, 896}));
    EXPECT_TRUE(t.shared_offset.is(n * 128 * 128));
  }
  // Half of its rows, as one of two CTAs of a multicast loads them.
  expect_plan(
      plan_tma(f16, tensor({1024, 1024}, {{64, 64}, {256, 256}}), tile(swizzled, out, {{64, 64}, {0, 256}})),
      {{1024, 1024}, {2048}, {64, 64}, 4});
}

TEST(TmaPlan, WideRowsAreMovedAsWideElements) {
  const Shape shape = {16, 1024};
  const TmaPlanOr result = plan_tma(f16, tensor({64, 4096}, {{16, 16}, {1024, 1024}}),
                                    tile(TileLayout::row_major(shape), shape, whole(shape)));
  expect_plan(result, {{1024, 64}, {8192}, {256, 16}, 1});
  EXPECT_EQ(std::get<TmaPlan>(result).dtype, DType::u64);
  EXPECT_EQ(values(std::get<TmaPlan>(result).instructions[0].coordinates), (std::vector<int64_t>{256, 16}));
}

TEST(TmaPlan, StridesThatInterleave) {
  const Shape tensor_a = {64, 128, 2, 4, 4096}, tile_a = {64, 64, 2, 4};
  const TmaPlanOr a =
      plan_tma(f16, tensor(tensor_a, {{0, 64}, {32, 64}, {0, 2}, {0, 4}, {7, 1}}, {1, 512, 256, 64, 65536}),
               tile(strided(tile_a, {1, 64, 4096, 8192}), tile_a, whole(tile_a)));
  expect_plan(a, {{64, 128, 2, 4, 4096}, {1024, 512, 128, 131072}, {64, 64, 2, 4, 1}, 1});
  EXPECT_EQ(values(std::get<TmaPlan>(a).instructions[0].coordinates), (std::vector<int64_t>{0, 32, 0, 0, 7}));

  // Scale factors: 128 x 4 blocks of bytes, (32, 4) rows interleaved.
  const Shape tensor_b = {16, 4, 32, 32, 4}, tile_b = {5, 4, 32, 4, 4};
  const TmaPlanOr b = plan_tma(
      DType::u8, tensor(tensor_b, {{1, 1}, {0, 4}, {0, 32}, {4, 4}, {0, 4}}, {16384, 4, 16, 512, 1}),
      tile(strided(tile_b, {2048, 4, 16, 512, 1}), tile_b, {{0, 1}, {0, 4}, {0, 32}, {0, 4}, {0, 4}}));
  expect_plan(b, {{256, 32, 16}, {512, 16384}, {256, 4, 1}, 1});
  EXPECT_EQ(std::get<TmaPlan>(b).dtype, DType::u16);
  EXPECT_EQ(values(std::get<TmaPlan>(b).instructions[0].coordinates), (std::vector<int64_t>{0, 4, 1}));
}

Expr variable(const char* name, int64_t multiple_of = 1) {
  ir::Variable v;
  v.name = name;
  v.multiple_of = multiple_of;
  return Expr(std::make_shared<const ir::Variable>(v));
}
ir::BufferRef buffer(const char* name, ir::Space space, std::vector<Expr> shape, Layout layout = {}) {
  auto b = std::make_shared<ir::Buffer>();
  b->name = name;
  b->space = space;
  b->dtype = f16;
  b->shape = std::move(shape);
  b->layout = std::move(layout);
  return b;
}

// A stage of a ring, from a matrix whose sizes are known at launch.
TEST(TmaPlan, SizesAndOffsetsOfRunTime) {
  const Expr m = variable("M"), k = variable("K"), stage = variable("stage"), i = variable("i");
  const Expr cta(ir::ScopeId::cta_x);
  const Shape ring = {4, 128, 64};
  const auto a = buffer("A", ir::Space::global, {m, k});
  const auto as =
      buffer("As", ir::Space::shared, {4, 128, 64}, mma_shared_layout(f16, SwizzleMode::b128, ring));
  const TmaPlanOr result = plan_tma({a, {{cta * Expr(128), 128}, {i * Expr(64), 64}}},
                                    {as, {{stage, 1, false}, {0, 128}, {0, 64}}});
  ASSERT_TRUE(std::holds_alternative<TmaPlan>(result)) << reason(result);
  const TmaPlan& p = std::get<TmaPlan>(result);
  ASSERT_EQ(p.dims.size(), 2u);
  EXPECT_TRUE(ir::same(p.dims[0], k)) << to_string(p.dims[0]);
  EXPECT_TRUE(ir::same(p.dims[1], m)) << to_string(p.dims[1]);
  EXPECT_TRUE(ir::same(p.strides[0], ir::cast(DType::i64, k) * Expr(2))) << to_string(p.strides[0]);
  EXPECT_EQ(p.box, (std::vector<uint32_t>{64, 128}));
  ASSERT_EQ(p.instructions.size(), 1u);
  EXPECT_TRUE(ir::same(p.instructions[0].coordinates[0], i * Expr(64)));
  EXPECT_TRUE(ir::same(p.instructions[0].coordinates[1], cta * Expr(128)));
  EXPECT_TRUE(ir::same(p.instructions[0].shared_offset, stage * Expr(128 * 64 * 2)));
  EXPECT_EQ(p.shared_align, 1024u);
  // The one thing that a launch must check: rows of whole 16 bytes.
  ASSERT_EQ(p.requirements.size(), 1u);
  for (auto [size, fits] : {std::pair{4096, 1}, {8, 1}, {4, 0}, {4097, 0}})
    EXPECT_TRUE(ir::substitute(p.requirements[0].condition, k->variable, Expr(size)).is(fits)) << size;
  EXPECT_NE(p.requirements[0].text.find("is a multiple of 16"), std::string::npos) << p.requirements[0].text;

  // Where K is known to be a multiple of 8 there is nothing left to check.
  const auto a8 = buffer("A", ir::Space::global, {m, variable("K", 8)});
  const TmaPlanOr sure = plan_tma({a8, {{cta * Expr(128), 128}, {i * Expr(64), 64}}},
                                  {as, {{stage, 1, false}, {0, 128}, {0, 64}}});
  EXPECT_TRUE(std::get<TmaPlan>(sure).requirements.empty());
  // And where it is a number, a wrong one is a reason.
  const auto odd = buffer("A", ir::Space::global, {m, 100});
  EXPECT_EQ(rule(plan_tma({odd, {{cta * Expr(128), 128}, {i * Expr(64), 64}}},
                          {as, {{stage, 1, false}, {0, 128}, {0, 64}}})),
            "global_stride_alignment");
}

// A store writes whole 16 bytes, also at the end of a row (recorded on an H200); a load does not read them.
TEST(TmaPlan, AStoreKeepsToItsRows) {
  const Shape part = {64};
  const SharedRegion s = tile(TileLayout::row_major(part), part, whole(part));
  auto at = [&](const Expr& size, int64_t begin, TmaDirection direction) {
    GlobalRegion g;
    g.dims.push_back({size, 1, begin, 64});
    return plan_tma(f16, g, s, {.direction = direction});
  };
  for (int64_t size : {200, 203})
    for (int64_t begin : {0, 128, 192}) {
      const bool overwrites = size % 8 != 0 && begin + 64 > size;
      EXPECT_EQ(reason(at(size, begin, store)),
                overwrites
                    ? "inner_size: rows of 406 bytes, no multiple of 16: a store would write beyond their end"
                    : "(a plan)")
          << size << " " << begin;
      EXPECT_TRUE(std::holds_alternative<TmaPlan>(at(size, begin, TmaDirection::load)));
    }

  const Expr n = variable("n");
  EXPECT_TRUE(std::get<TmaPlan>(at(n, 0, TmaDirection::load)).requirements.empty());
  EXPECT_TRUE(std::get<TmaPlan>(at(variable("n", 8), 0, store)).requirements.empty());
  const TmaPlan p = std::get<TmaPlan>(at(n, 0, store));
  ASSERT_EQ(p.requirements.size(), 1u);
  EXPECT_EQ(p.requirements[0].text,
            "n is a multiple of 8: TMA stores whole 16 bytes, also at the end of a row");
  for (auto [size, fits] : {std::pair{4096, 1}, {8, 1}, {4, 0}, {4097, 0}})
    EXPECT_TRUE(ir::substitute(p.requirements[0].condition, n->variable, Expr(size)).is(fits)) << size;
}

TEST(TmaPlan, AttentionStageOfRunTime) {
  const Expr row = variable("kv_row"), head = variable("head"), stage = variable("stage");
  const auto kv = buffer("K", ir::Space::global, {1, 4096, 16, 128});
  const auto ring =
      buffer("Ks", ir::Space::shared, {3, 128, 128}, strided({3, 128, 2, 64}, {16384, 64, 8192, 1}));
  const TmaPlanOr result = plan_tma({kv, {{0, 1, false}, {row, 128}, {head, 1, false}, {0, 128}}},
                                    {ring, {{stage, 1, false}, {0, 128}, {0, 128}}});
  expect_plan(result, {{64, 4096, 32}, {4096, 128}, {64, 128, 2}, 1});
  const TmaPlan& p = std::get<TmaPlan>(result);
  EXPECT_TRUE(p.instructions[0].coordinates[0].is(0));
  EXPECT_TRUE(ir::same(p.instructions[0].coordinates[1], row));
  EXPECT_TRUE(ir::same(p.instructions[0].coordinates[2], head * Expr(2)));
  EXPECT_TRUE(ir::same(p.instructions[0].shared_offset, stage * Expr(16384 * 2)));
  EXPECT_EQ(p.box_bytes(), 32 * 1024);
}

}  // namespace
}  // namespace tw::lowering
