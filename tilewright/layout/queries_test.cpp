#include "tilewright/layout/queries.h"

#include <gtest/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/layout/text.h"

namespace tw {
namespace {

WarpAccess lanes(int bytes, int64_t (*element)(int64_t lane)) {
  WarpAccess a{{}, bytes};
  for (int64_t lane = 0; lane < 32; ++lane) a.element[static_cast<size_t>(lane)] = element(lane);
  return a;
}

TEST(BankConflicts, WordsOfOneBank) {
  const Layout row = TileLayout::row_major({32, 32});
  // A row of words: one wavefront. A column of a 32-word row: all in bank 0, 32 wavefronts.
  EXPECT_EQ(bank_conflicts(row, lanes(4, [](int64_t l) { return l; }), 32).wavefronts, 1);
  const BankReport column = bank_conflicts(row, lanes(4, [](int64_t l) { return 32 * l; }), 32);
  EXPECT_EQ(column.wavefronts, 32);
  EXPECT_EQ(column.ideal, 1);
  ASSERT_EQ(column.conflicts.size(), 1u);
  EXPECT_EQ(column.conflicts[0].bank, 0);
  EXPECT_EQ(column.conflicts[0].words, 32);
  EXPECT_EQ(column.conflicts[0].lanes.size(), 32u);
  // All lanes on one word: a broadcast.
  EXPECT_TRUE(bank_conflicts(row, lanes(4, [](int64_t) { return int64_t{7}; }), 32).conflict_free());
  // A padded row of 33 words makes the column free.
  const Layout padded = parse_layout("S(32,32):(33,1)");
  EXPECT_EQ(bank_conflicts(padded, lanes(4, [](int64_t l) { return 32 * l; }), 32).wavefronts, 1);
}

TEST(BankConflicts, PhasesOfWideAccesses) {
  const Layout row = TileLayout::row_major({4096});
  const BankReport b16 = bank_conflicts(row, lanes(16, [](int64_t l) { return 4 * l; }), 32);
  EXPECT_EQ(b16.wavefronts, 4);
  EXPECT_EQ(b16.ideal, 4);
  EXPECT_EQ(bank_conflicts(row, lanes(8, [](int64_t l) { return 2 * l; }), 32).wavefronts, 2);
  // Two lanes of one phase 128 bytes apart meet in four banks; lanes of different phases never do.
  const BankReport apart =
      bank_conflicts(row, lanes(16, [](int64_t l) { return l % 8 * 4 + l / 8 * 32; }), 32);
  EXPECT_TRUE(apart.conflict_free());
  const BankReport strided = bank_conflicts(row, lanes(16, [](int64_t l) { return l * 32; }), 32);
  EXPECT_EQ(strided.wavefronts, 32);
  EXPECT_EQ(strided.conflicts.size(), 16u);  // four banks in each of four phases
}

// The reason for swizzled operands: ldmatrix reads 8 rows of 16 bytes at one column, a phase each.
TEST(BankConflicts, SwizzleFreesColumnsOfOperands) {
  auto column = [](int64_t l) { return 64 * (l % 8) + 8 * (l / 8); };  // lane 8i+r: row r, chunk i
  const Layout plain = TileLayout::row_major({8, 64});
  const Layout swizzled = mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{8, 64});
  EXPECT_EQ(bank_conflicts(plain, lanes(16, column), 16).wavefronts, 32);
  EXPECT_EQ(bank_conflicts(swizzled, lanes(16, column), 16).wavefronts, 4);
  // 64- and 32-byte swizzles leave 2 and 4 rows in each bank of a row of their own width.
  auto narrow = [](int64_t l) { return 32 * (l % 8) + 8 * (l / 8); };
  EXPECT_EQ(
      bank_conflicts(mma_shared_layout(DType::f16, SwizzleMode::b64, Shape{8, 32}), lanes(16, narrow), 16)
          .wavefronts,
      4);
}

TEST(BankConflicts, InactiveLanesAndMisalignment) {
  const Layout row = TileLayout::row_major({64});
  const auto one = lanes(4, [](int64_t l) { return l == 3 ? l : -1; });
  EXPECT_EQ(bank_conflicts(row, one, 32).wavefronts, 1);
  const auto none = lanes(4, [](int64_t) { return int64_t{-1}; });
  EXPECT_EQ(bank_conflicts(row, none, 32).wavefronts, 0);
  EXPECT_THROW(bank_conflicts(row, lanes(8, [](int64_t l) { return l; }), 32), Error);
  EXPECT_THROW(bank_conflicts(row, lanes(3, [](int64_t l) { return l; }), 32), Error);
}

TEST(BankConflicts, WalksAndWords) {
  const Shape tile{8, 64};
  const WarpAccess down = warp_access(tile, 0, 16, 16), across = warp_access(tile, 1, 16, 16);
  EXPECT_EQ(down.element[1], 64);  // the next row
  EXPECT_EQ(down.element[8], 8);   // past the last row: the next 16 bytes
  EXPECT_EQ(across.element[1], 8);
  EXPECT_EQ(across.element[8], 64);
  EXPECT_EQ(warp_access(Shape{2, 8}, 0, 16, 16).element[2], -1);
  EXPECT_THROW(warp_access(Shape{8, 60}, 0, 16, 16), Error);
  EXPECT_THROW(warp_access(tile, 2, 16, 16), Error);
  EXPECT_EQ(to_string(bank_conflicts(TileLayout::row_major({8, 64}), across, 16)),
            "4 wavefronts, no bank conflict");
  EXPECT_EQ(
      to_string(bank_conflicts(parse_layout("S(2,8):(64,1)"), warp_access(Shape{2, 8}, 0, 16, 16), 16)),
      "2 wavefronts where 1 would do: bank 0 has 2 words in phase 0 (lanes 0 1), bank 1 has 2 words in phase "
      "0 "
      "(lanes 0 1), bank 2 has 2 words in phase 0 (lanes 0 1), bank 3 has 2 words in phase 0 (lanes 0 1)");
}

TEST(VectorWidth, BoundedByEachRule) {
  EXPECT_EQ(vector_width(TileLayout::row_major({8, 64}), 16), 16);
  EXPECT_EQ(vector_width(TileLayout::row_major({8, 64}), 16, 4), 4);    // the buffer's alignment
  EXPECT_EQ(vector_width(parse_layout("S(8,64):(66,1)"), 16), 4);       // the row pitch
  EXPECT_EQ(vector_width(parse_layout("S(8,64):(72,1) + 1"), 16), 2);   // the offset
  EXPECT_EQ(vector_width(parse_layout("S(64,8):(1,64)"), 32), 4);       // no run at all
  EXPECT_EQ(vector_width(parse_layout("SW(1,3,3) o S 512:1"), 16), 4);  // the swizzle's chunk
  EXPECT_EQ(vector_width(parse_layout("SW(3,3,3) o S(64,4,64):(64,4096,1)"), 16), 16);
  EXPECT_EQ(vector_width(parse_layout("S(8,4,2):(4@l,1@l,1)"), 16), 4);  // one thread's registers
  EXPECT_EQ(vector_width(parse_layout("S 64:2"), 4), 0);                 // half bytes apart
  EXPECT_EQ(vector_width(parse_layout("S 64:1"), 4), 16);
}

}  // namespace
}  // namespace tw
