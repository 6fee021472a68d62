#include "tilewright/sim/tensor_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "tilewright/base/error.h"

namespace tw::sim {
namespace {

std::string fault_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(contains(text, part)) << text

// --- allocator ---

TEST(TensorAllocator, RulesOfTheInstruction) {
  TensorAllocator a(512);
  EXPECT_CONTAINS(fault_of([&] { a.allocate(48); }), "power of two in [32, 512]");
  EXPECT_CONTAINS(fault_of([&] { a.allocate(16); }), "power of two in [32, 512]");
  EXPECT_CONTAINS(fault_of([&] { a.allocate(1024); }), "power of two in [32, 512]");
  EXPECT_EQ(a.allocate(256), 0);
  EXPECT_EQ(a.allocate(128), 256);
  EXPECT_CONTAINS(fault_of([&] { a.allocate(256); }), "should not increase");
  EXPECT_EQ(a.allocate(128), 384);
  EXPECT_EQ(a.allocate(32), std::nullopt);  // full: wait
  EXPECT_CONTAINS(fault_of([&] { a.release(0, 128); }), "where 256 were allocated");
  EXPECT_CONTAINS(fault_of([&] { a.release(128, 128); }), "no allocation begins");
  a.release(256, 128);
  EXPECT_EQ(a.allocate(32), 256);
  a.relinquish();
  EXPECT_CONTAINS(fault_of([&] { a.allocate(32); }), "after tcgen05.relinquish_alloc_permit");
  EXPECT_EQ(a.live(), (std::vector<TensorAllocator::Range>{{0, 256}, {256, 32}, {384, 128}}));
}

// Random traces against a plain model: a set of disjoint ranges.
TEST(TensorAllocator, RandomTracesKeepAllocationsDisjoint) {
  EXPECT_TRUE(rc::check("allocations are disjoint, and waiting means that no aligned range is free", [] {
    TensorAllocator a(512);
    std::map<int, int> model;
    int size = 512;
    for (int step = 0; step < 60; ++step) {
      if (*rc::gen::inRange(0, 3) != 0 || model.empty()) {
        size = std::max(32, size >> *rc::gen::inRange(0, 2));
        std::set<int> used;
        for (auto [c, n] : model)
          for (int i = 0; i < n; ++i) used.insert(c + i);
        bool fits = false;
        for (int c = 0; c < 512; c += size) fits |= used.lower_bound(c) == used.lower_bound(c + size);
        std::optional<int> got = a.allocate(size);
        RC_ASSERT(got.has_value() == fits);
        if (!got) continue;
        for (int i = 0; i < size; ++i) RC_ASSERT(used.count(*got + i) == 0u);
        model[*got] = size;
      } else {
        auto it = std::next(model.begin(), *rc::gen::inRange<int>(0, static_cast<int>(model.size())));
        a.release(it->first, it->second);
        model.erase(it);
      }
      std::vector<TensorAllocator::Range> live;
      for (auto [c, n] : model) live.push_back({c, n});
      RC_ASSERT(a.live() == live);
    }
  }));
}

// --- ld and st ---

struct Registers {
  std::vector<std::array<uint32_t, 32>> rows;
  explicit Registers(int n) : rows(static_cast<size_t>(n)) {}
  std::vector<uint32_t*> pointers() {
    std::vector<uint32_t*> p;
    for (auto& r : rows) p.push_back(r.data());
    return p;
  }
  std::vector<const uint32_t*> constants() const {
    std::vector<const uint32_t*> p;
    for (const auto& r : rows) p.push_back(r.data());
    return p;
  }
};

uint32_t tag(int lane, int column) { return static_cast<uint32_t>(lane * 1000 + column); }

void fill(TensorMemory& m) {
  m.allocator.allocate(512);
  for (int c = 0; c < 512; ++c)
    for (int l = 0; l < 128; ++l) m.set_cell(l, c, tag(l, c));
}

// Register r of thread t, from the layouts of the fragments (facts: 16x64b, 16x128b and 16x256b as shard
// layouts over rows of 16 lanes by columns; the digits of row and column are split row-major).
std::pair<int, int> figure(TensorShape shape, int row, int column) {  // -> thread, register
  int high = row / 8, low = row % 8;
  switch (shape) {
    case TensorShape::s32x32b: return {row, column};
    // S(2,8,2,2):(1@laneid,4@laneid,1,2@laneid): row = (2,8), column = (rep,2)
    case TensorShape::s16x64b: return {high + 4 * low + 2 * (column % 2), column / 2};
    // S(2,8,2,4):(1,4@laneid,2,1@laneid)
    case TensorShape::s16x128b: return {4 * low + column % 4, high + 2 * (column / 4)};
    // S(2,8,2,4,2):(2,4@laneid,4,1@laneid,1)
    case TensorShape::s16x256b: return {4 * low + column % 8 / 2, 2 * high + 4 * (column / 8) + column % 2};
    default: return {-1, -1};
  }
}

TEST(TensorTransfer, FragmentsOfEveryShape) {
  TensorMemory m;
  fill(m);
  for (TensorShape shape :
       {TensorShape::s32x32b, TensorShape::s16x64b, TensorShape::s16x128b, TensorShape::s16x256b}) {
    for (int num = 1; num <= 128; num *= 2) {
      TensorTransfer t{shape, num};
      if (num * (shape == TensorShape::s16x128b ? 2 : shape == TensorShape::s16x256b ? 4 : 1) > 128) {
        EXPECT_CONTAINS(fault_of([&] { (void)t.registers(); }), "has no .x");
        continue;
      }
      for (int warp = 0; warp < 4; ++warp) {
        int lane = warp * 32 + (shape != TensorShape::s32x32b && num % 4 == 2 ? 16 : 0),
            column = 512 - t.columns();
        Registers r(t.registers());
        m.load({lane, column}, t, warp, r.pointers());
        for (int i = 0; i < t.lanes(); ++i) {
          for (int j = 0; j < t.columns(); ++j) {
            auto [thread, index] = figure(shape, i, j);
            ASSERT_EQ(r.rows[static_cast<size_t>(index)][static_cast<size_t>(thread)],
                      tag(lane + i, column + j))
                << name(shape) << ".x" << num << " lane " << i << " column " << j;
          }
        }
      }
    }
  }
}

// .16x32bx2: threads 0-15 from taddr, 16-31 from taddr + immHalfSplitoff.
TEST(TensorTransfer, TwoHalves) {
  TensorMemory m;
  fill(m);
  TensorTransfer t{TensorShape::s16x32bx2, 4, false, 100};
  Registers r(4);
  m.load({48, 7}, t, 1, r.pointers());
  for (int i = 0; i < 4; ++i) {
    for (int thread = 0; thread < 32; ++thread) {
      EXPECT_EQ(r.rows[static_cast<size_t>(i)][static_cast<size_t>(thread)],
                tag(48 + thread % 16, 7 + i + (thread < 16 ? 0 : 100)));
    }
  }
}

TEST(TensorTransfer, PackTakesAdjacentColumns) {
  TensorMemory m;
  fill(m);
  TensorTransfer t{TensorShape::s32x32b, 8, true};
  Registers r(8);
  m.load({96, 32}, t, 3, r.pointers());
  for (int i = 0; i < 8; ++i) {
    for (int thread = 0; thread < 32; ++thread) {
      uint32_t low = tag(96 + thread, 32 + 2 * i) & 0xffff, high = tag(96 + thread, 33 + 2 * i) & 0xffff;
      EXPECT_EQ(r.rows[static_cast<size_t>(i)][static_cast<size_t>(thread)], low | high << 16);
    }
  }
}

TEST(TensorTransfer, StoreThenLoadGivesTheRegistersBack) {
  std::mt19937 random(3);
  for (bool pack : {false, true}) {
    for (TensorShape shape : {TensorShape::s32x32b, TensorShape::s16x64b, TensorShape::s16x128b,
                              TensorShape::s16x256b, TensorShape::s16x32bx2}) {
      for (int num : {1, 2, 8, 32}) {
        TensorMemory m;
        m.allocator.allocate(512);
        TensorTransfer t{shape, num, pack, 256};
        Registers out(t.registers()), in(t.registers());
        for (auto& row : out.rows)
          for (auto& v : row) v = random();
        m.store({64, 0}, t, 2, out.constants());
        m.load({64, 0}, t, 2, in.pointers());
        EXPECT_EQ(out.rows, in.rows) << name(shape) << ".x" << num;
        int written = 0;
        for (int c = 0; c < 512; ++c)
          for (int l = 0; l < 128; ++l) written += m.cell(l, c).has_value();
        EXPECT_EQ(written, 32 * t.registers() * (pack ? 2 : 1)) << name(shape);
      }
    }
  }
}

// "Access restrictions": warp w of a warpgroup accesses lanes 32w to 32w + 31.
TEST(TensorTransfer, Faults) {
  TensorMemory m;
  int column = *m.allocator.allocate(64);
  TensorTransfer t{TensorShape::s32x32b, 4};
  Registers r(4);
  EXPECT_CONTAINS(fault_of([&] {
                    m.load({0, column}, t, 1, r.pointers());
                  }),
                  "warp 1 of a warpgroup can access lanes 32 to 63 only");
  EXPECT_CONTAINS(fault_of([&] { m.load({48, column}, t, 1, r.pointers()); }), "lanes 48 to 79");
  EXPECT_CONTAINS(fault_of([&] { m.load({32, 61}, t, 1, r.pointers()); }), "column 64 is not allocated");
  EXPECT_CONTAINS(fault_of([&] { m.load({32, 510}, t, 1, r.pointers()); }), "beyond its 512");
  EXPECT_CONTAINS(fault_of([&] {
                    m.load({32, column}, t, 1, r.pointers());
                  }),
                  "lane 32, column 0 is read but nothing has written it");
  m.store({32, column}, t, 1, r.constants());
  EXPECT_EQ(fault_of([&] { m.load({32, column}, t, 1, r.pointers()); }), "no error");
  m.release(column, 64);
  m.allocator.allocate(64);
  EXPECT_CONTAINS(fault_of([&] { m.load({32, column}, t, 1, r.pointers()); }), "nothing has written it");
}

// --- cp ---

TEST(TensorCopy, ShapesAndMulticast) {
  std::vector<std::byte> shared(128 * 32);
  for (size_t i = 0; i < shared.size() / 4; ++i) {
    uint32_t v = static_cast<uint32_t>(i);
    std::memcpy(&shared[i * 4], &v, 4);
  }
  // Rows of 16 bytes, 8 of them a core matrix of 128 bytes; the second 16-byte column 2048 bytes away.
  SharedMatrix d{0, 2048, 128, 0, SwizzleMode::none};
  auto source = [&](int row, int word) { return static_cast<uint32_t>(word / 4 * 512 + row * 4 + word % 4); };
  auto check = [&](CopyShape shape, auto row_of_lane) {
    TensorMemory m;
    m.allocator.allocate(32);
    int words = TensorMemory::copy_columns(shape);
    OperandGeometry g = shared_operand(d, DType::u8, false, TensorMemory::copy_rows(shape), words * 4);
    m.copy({0, 8}, shape, g, shared.data());
    for (int lane = 0; lane < 128; ++lane) {
      for (int c = 0; c < 32; ++c) {
        bool inside = c >= 8 && c < 8 + words;
        ASSERT_EQ(m.cell(lane, c).has_value(), inside) << lane << " " << c;
        if (!inside) continue;
        ASSERT_EQ(*m.cell(lane, c), source(row_of_lane(lane), c - 8)) << lane << " " << c;
      }
    }
  };
  check(CopyShape::c128x256b, [](int lane) { return lane; });
  check(CopyShape::c128x128b, [](int lane) { return lane; });
  check(CopyShape::c64x128b_02_13, [](int lane) { return lane % 64; });
  check(CopyShape::c64x128b_01_23, [](int lane) { return lane / 64 * 32 + lane % 32; });
  check(CopyShape::c32x128b, [](int lane) { return lane % 32; });
}

// --- tiles of the matrix unit ---

// "Data Path Layout Organization": layout D is the identity; layout F uses 16 lanes of each quarter.
TEST(TensorMemory, AccumulatorLayouts) {
  TensorMemory m;
  m.allocator.allocate(128);
  EXPECT_EQ(m.accumulator({0, 0}, 128, 128, DType::f32).lanes,
            (std::array<int, 8>{0, 16, 32, 48, 64, 80, 96, 112}));
  EXPECT_EQ(m.accumulator({16, 0}, 64, 8, DType::f32).lanes, (std::array<int, 8>{16, 48, 80, 112}));
  EXPECT_CONTAINS(fault_of([&] { m.accumulator({16, 0}, 128, 8, DType::f32); }), "needs lane 0");
  EXPECT_CONTAINS(fault_of([&] { m.accumulator({32, 0}, 64, 8, DType::f32); }), "needs lane 0 or 16");
  EXPECT_CONTAINS(fault_of([&] {
                    m.accumulator({0, 64}, 128, 128, DType::f32);
                  }),
                  "column 128 is not allocated");
}

TEST(TensorMemory, WrittenCellsOfATile) {
  TensorMemory m;
  m.allocator.allocate(64);
  AccumulatorTile t = m.accumulator({16, 0}, 64, 16, DType::f32);
  EXPECT_EQ(m.first_unwritten(t, 8)->encode(), (TensorAddress{16, 8}).encode());
  m.mark_written(t, 8, {0, 1u << 17, 0, 0});
  TensorAddress missing = *m.first_unwritten(t, 8);
  EXPECT_EQ(missing.lane, 49);
  EXPECT_EQ(missing.column, 8);
  m.mark_written(t, 8, {});
  EXPECT_FALSE(m.first_unwritten(t, 8).has_value());
  EXPECT_FALSE(m.cell(0, 8).has_value());
}

// D = A B^T + D of 128 x 8 with A[m, 0] = B[0, 0] = 1 and zeros elsewhere: adds 1 to column 0 of the tile.
struct UnitProduct {
  std::vector<std::byte> a = std::vector<std::byte>(128 * 32), b = std::vector<std::byte>(8 * 32);
  MatrixProduct product;
  explicit UnitProduct(bool accumulate) {
    const uint16_t one = 0x3c00;
    for (size_t i = 0; i < 128; ++i) std::memcpy(&a[i * 32], &one, 2);
    std::memcpy(&b[0], &one, 2);
    product.a = {linear_operand(DType::f16, 128), a.data()};
    product.b = {linear_operand(DType::f16, 8), b.data()};
    product.k = 16;
    product.accumulate = accumulate;
  }
};

// A product's arithmetic may wait, but no access sees that.
TEST(TensorMemory, AccessesSeePendingProducts) {
  TensorMemory m;
  m.allocator.allocate(32);
  AccumulatorTile t = m.accumulator({0, 0}, 128, 8, DType::f32);
  const UnitProduct set(false);
  m.append(t, set.product);
  m.mark_written(t, 0, {});
  EXPECT_TRUE(m.pending());
  EXPECT_EQ(m.cell(5, 0), 0x3f800000u);
  EXPECT_FALSE(m.pending());
}

TEST(TensorMemory, ProductsOnSeveralAccumulatorsKeepTheirOrder) {
  TensorMemory m;
  m.allocator.allocate(64);
  const UnitProduct set(false), add(true);
  std::vector<AccumulatorTile> tiles;
  for (int i = 0; i < 6; ++i) tiles.push_back(m.accumulator({0, 8 * i}, 128, 8, DType::f32));
  for (const auto& t : tiles) m.append(t, set.product);
  for (const auto& t : tiles) m.append(t, add.product);
  // The columns 4 to 11: the upper half of tile 0 and the lower one of tile 1.
  m.append(m.accumulator({0, 4}, 128, 8, DType::f32), add.product);
  m.append(tiles[1], add.product);
  for (int i = 0; i < 6; ++i) m.mark_written(tiles[static_cast<size_t>(i)], 8 * i, {});
  auto value = [&](int column) { return std::bit_cast<float>(m.cell(77, column).value()); };
  EXPECT_EQ(value(0), 2);
  EXPECT_EQ(value(4), 1);
  EXPECT_EQ(value(8), 3);
  for (int i = 2; i < 6; ++i) EXPECT_EQ(value(8 * i), 2);
}

}  // namespace
}  // namespace tw::sim
