#include "kernels/gemm/plan.h"

#include <gtest/gtest.h>

#include "tilewright/base/error.h"

namespace tw::kernels {
namespace {

constexpr GemmPlan kLarge{128, 256, 2, 3, 1000}, kSmall{64, 64, 1, 10, 200};
constexpr GemmPlan kPlans[] = {kLarge, kSmall};
constexpr GemmMachine kMachine{
    .sms = 100, .bytes_per_cycle = 1e9, .launch_cycles = 500, .store_cycles = 0.125};

// By hand: launch, then for each wave its chunks and its store; 2 % more, as memory is no limit here.
TEST(GemmPlan, TimeIsWavesTimesChunks) {
  const GemmShape one_wave{128 * 10, 256 * 10, 640};  // 100 tiles
  EXPECT_DOUBLE_EQ(estimate_cycles(one_wave, kLarge, kMachine), 1.02 * (500 + 10 * 1000 + 0.125 * 128 * 256));
  const GemmShape a_tile_more{128 * 10 + 1, 256 * 10, 640};  // 110 tiles: two waves
  EXPECT_DOUBLE_EQ(estimate_cycles(a_tile_more, kLarge, kMachine),
                   1.02 * (500 + 2 * (10 * 1000 + 0.125 * 128 * 256)));
}

TEST(GemmPlan, MemoryIsALowerBound) {
  GemmMachine slow = kMachine;
  slow.bytes_per_cycle = 1;
  const GemmShape s{128, 256, 64};
  const double computing = 500 + 1000 + 0.125 * 128 * 256, bytes = 2.0 * (128 * 64 + 256 * 64 + 128 * 256);
  EXPECT_DOUBLE_EQ(estimate_cycles(s, kLarge, slow), bytes + 0.02 * computing);
}

TEST(GemmPlan, FewTilesAreMadeSmaller) {
  EXPECT_EQ(choose({4096, 4096, 4096}, kPlans, kMachine).tile_n, 256);
  EXPECT_EQ(choose({512, 512, 4096}, kPlans, kMachine).tile_n, 64);  // 8 large tiles, or 64 small ones
}

TEST(GemmPlan, RowsKnownAtLaunchAreManyUnlessToldOtherwise) {
  GemmShape s{0, 512, 4096};
  s.runtime_m = true;
  EXPECT_EQ(choose(s, kPlans, kMachine).tile_n, 256);
  s.m = 64;
  EXPECT_EQ(choose(s, kPlans, kMachine).tile_n, 64);
}

TEST(GemmPlan, ATileThatIsAskedForIsTaken) {
  GemmShape s{4096, 4096, 4096};
  s.tile_m = s.tile_n = 64;
  EXPECT_EQ(choose(s, kPlans, kMachine).tile_m, 64);
  s.tile_n = 32;
  try {
    choose(s, kPlans, kMachine);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "gemm has no tile of 64x32; there are 128x256, 64x64");
  }
}

}  // namespace
}  // namespace tw::kernels
