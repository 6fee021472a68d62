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

}  // namespace
}  // namespace tw::lowering
