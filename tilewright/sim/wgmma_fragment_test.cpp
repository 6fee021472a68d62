#include "tilewright/sim/wgmma_fragment.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace tw::sim {
namespace {

using Row = std::array<uint32_t, 32>;

// Figure 149, .m64nNk16 accumulator D: warp w of the warpgroup holds rows 16w to 16w + 15; thread t holds d0,
// d1 in row t / 4 at columns 2 * (t % 4) and the next, d2, d3 eight rows below, and so on every 8 columns.
struct Place {
  int row, column;
};
Place figure_149(int warp, int thread, int index) {
  return {16 * warp + thread / 4 + (index % 4 >= 2 ? 8 : 0), index / 4 * 8 + thread % 4 * 2 + index % 2};
}

TEST(WgmmaFragment, AccumulatorsFollowTheFigure) {
  for (int n : {8, 24, 96, 256}) {
    for (int warp = 0; warp < 4; ++warp) {
      std::vector<Row> rows(static_cast<size_t>(n / 2));
      std::vector<const uint32_t*> in;
      std::vector<uint32_t*> out;
      for (size_t i = 0; i < rows.size(); ++i) {
        for (uint32_t t = 0; t < 32; ++t) rows[i][t] = static_cast<uint32_t>(i) * 32 + t + 1;
        in.push_back(rows[i].data());
        out.push_back(rows[i].data());
      }
      std::vector<uint32_t> tile(static_cast<size_t>(64 * n), 0);
      wgmma_gather(DType::f32, n, warp, in, tile.data());
      for (int i = 0; i < n / 2; ++i) {
        for (int t = 0; t < 32; ++t) {
          Place p = figure_149(warp, t, i);
          ASSERT_EQ(tile[static_cast<size_t>(p.column * 64 + p.row)],
                    rows[static_cast<size_t>(i)][static_cast<size_t>(t)])
              << n << " " << i << " " << t;
        }
      }
      std::vector<Row> before = rows;
      for (Row& r : rows) r.fill(0);
      wgmma_scatter(DType::f32, n, warp, tile.data(), out);
      ASSERT_EQ(rows, before);
    }
  }
}

// With f16 a register holds d(2i) and d(2i + 1), low half first.
TEST(WgmmaFragment, HalfAccumulatorsArePacked) {
  constexpr int n = 24;
  std::vector<Row> rows(n / 4);
  std::vector<const uint32_t*> in;
  std::vector<uint32_t*> out;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (uint32_t t = 0; t < 32; ++t)
      rows[i][t] = static_cast<uint32_t>(i * 64 + t * 2) | static_cast<uint32_t>(i * 64 + t * 2 + 1) << 16;
    in.push_back(rows[i].data());
    out.push_back(rows[i].data());
  }
  EXPECT_EQ(wgmma_accumulator_registers(DType::f16, n), 6);
  std::vector<uint32_t> tile(64 * n, 0);
  wgmma_gather(DType::f16, n, 2, in, tile.data());
  for (int i = 0; i < n / 2; ++i) {
    for (int t = 0; t < 32; ++t) {
      Place p = figure_149(2, t, i);
      ASSERT_EQ(tile[static_cast<size_t>(p.column * 64 + p.row)],
                static_cast<uint32_t>(i / 2 * 64 + t * 2 + i % 2));
    }
  }
  std::vector<Row> before = rows;
  for (Row& r : rows) r.fill(0);
  wgmma_scatter(DType::f16, n, 2, tile.data(), out);
  EXPECT_EQ(rows, before);
}

// Figure 148, .m64nNk16 A: a0, a1 in row t / 4 at k = 2 * (t % 4); a2, a3 eight rows below; a4 to a7 eight k
// further. Figure 152, .m64nNk32: four bytes a register, k = 4 * (t % 4), 16 k further. Figure 150, .m64nNk8:
// one element.
TEST(WgmmaFragment, MatrixAFollowsTheFigures) {
  for (int element : {1, 2, 4}) {
    std::vector<Row> rows(4);
    std::vector<const uint32_t*> in;
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t t = 0; t < 32; ++t) rows[i][t] = (i * 32 + t) * 0x01010101u + 0x03020100u;
      in.push_back(rows[i].data());
    }
    std::vector<std::byte> tile(64 * 32);
    wgmma_gather_a(3, in, tile.data());
    const int per_register = 4 / element, half = 16 / element;
    for (int i = 0; i < 4; ++i) {
      for (int t = 0; t < 32; ++t) {
        for (int e = 0; e < per_register; ++e) {
          int row = 48 + t / 4 + i % 2 * 8, k = per_register * (t % 4) + e + i / 2 * half;
          ASSERT_EQ(std::memcmp(&tile[static_cast<size_t>(row * 32 + k * element)],
                                reinterpret_cast<const std::byte*>(
                                    &rows[static_cast<size_t>(i)][static_cast<size_t>(t)]) +
                                    e * element,
                                static_cast<size_t>(element)),
                    0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tw::sim
