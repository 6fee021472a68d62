// The order in which tiles are shared out.
#include "tilewright/dsl/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/error/message.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/backends.h"

namespace {

using namespace tw::dsl;

std::pair<int64_t, int64_t> at(const TileOrder& order, int64_t index) {
  TileCoordinate t = order.at(Expr(index));
  return {t.m.constant().value(), t.n.constant().value()};
}

// Ranks by row: 0 2 4 6 / 1 3 5 7 / 8 10 12 14 / 9 11 13 15.
TEST(TileOrder, GroupsOfTwoRows) {
  constexpr int kRanks[4][4] = {{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}};
  TileOrder order(4, 4, 2);
  for (int m = 0; m < 4; ++m)
    for (int n = 0; n < 4; ++n) EXPECT_EQ(at(order, kRanks[m][n]), std::pair(int64_t{m}, int64_t{n}));
}

// The last group has what rows are left.
RC_GTEST_PROP(TileOrderProperty, VisitsEachTileOnce, ()) {
  const int64_t m = *rc::gen::inRange(1, 20), n = *rc::gen::inRange(1, 20);
  TileOrder order(Expr(m), Expr(n), *rc::gen::inRange(1, 10));
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t i = 0; i < m * n; ++i) {
    auto tile = at(order, i);
    RC_ASSERT(tile.first >= 0 && tile.first < m && tile.second >= 0 && tile.second < n);
    seen.insert(tile);
  }
  RC_ASSERT(seen.size() == static_cast<size_t>(m * n));
}

// Counts known only at launch give the same order.
RC_GTEST_PROP(TileOrderProperty, RunTimeCountsAgree, ()) {
  const int64_t m = *rc::gen::inRange(1, 20), n = *rc::gen::inRange(1, 20);
  const int group = *rc::gen::inRange(1, 10);
  auto size = [](const char* name) {
    auto v = std::make_shared<tw::ir::Variable>();
    v->name = name;
    v->lo = 0;
    return v;
  };
  tw::ir::VarRef tiles_m = size("m"), tiles_n = size("n"), index = size("index");
  TileCoordinate t = TileOrder(Expr(tiles_m), Expr(tiles_n), group).at(Expr(index));
  const int64_t i = *rc::gen::inRange<int64_t>(0, m * n);
  auto value = [&](Expr e) {
    e = tw::ir::substitute(e, tiles_m, Expr(m));
    e = tw::ir::substitute(e, tiles_n, Expr(n));
    return tw::ir::substitute(e, index, Expr(i)).constant().value();
  };
  RC_ASSERT(std::pair(value(t.m), value(t.n)) == at(TileOrder(Expr(m), Expr(n), group), i));
}

// A leader and four warps that follow, in each CTA, count their visits of every tile. The machine holds fewer
// clusters than there are tiles.
TEST(TileScheduler, EachRoleVisitsEachTileOnce) {
  static const tw::machine::Gpu kSmall = [] {
    tw::machine::Gpu gpu = tw::machine::gpu("b200");
    gpu.sms = 4;
    return gpu;
  }();
  auto device = tw::open_sim(kSmall);
  constexpr int64_t kTilesM = 11, kTilesN = 5;
  for (Schedule schedule : {Schedule::persistent, Schedule::launch_control}) {
    for (int ctas : {1, 2, 4}) {
      KernelBuilder k("visits", Arch::sm_100a);
      TileScheduler tiles(k, TileOrder(Expr(kTilesM), Expr(kTilesN), 4),
                          {.schedule = schedule, .ctas = ctas, .pool = 3, .readers = 5 * ctas});
      k.launch({.grid = {tiles.ctas()}, .threads = 160, .cluster = {ctas}});
      auto led = k.global(u32, {ctas, kTilesM, kTilesN}, "led");
      auto followed = k.global(u32, {ctas, 128, kTilesM, kTilesN}, "followed");
      k.shared(u8, {120 * 1024}, tw::TileLayout::row_major({120 * 1024}), "big");  // one CTA an SM
      k.role("leader", warp(4), [&] {
        elected([&] {
          tiles.lead([&](TileCoordinate t) {
            led.store({cluster_rank, t.m, t.n}, led.load({cluster_rank, t.m, t.n}) + 1);
          });
        });
      });
      k.role("follower", warpgroup(0), [&] {
        tiles.follow([&](TileCoordinate t) {
          followed.store({cluster_rank, thread_id, t.m, t.n},
                         followed.load({cluster_rank, thread_id, t.m, t.n}) + 1);
        });
      });
      tw::Compiled kernel = tw::lower(k.finish());
      for (const char* order : {"eager", "late", "random:1", "starve:leader", "starve:follower"}) {
        SCOPED_TRACE(tw::format("schedule {}, clusters of {}, {}", static_cast<int>(schedule), ctas, order));
        tw::Tensor a = device->tensor(u32, {ctas, kTilesM, kTilesN}),
                   b = device->tensor(u32, {ctas, 128, kTilesM, kTilesN});
        for (tw::Tensor* t : {&a, &b}) t->upload(std::vector<float>(static_cast<size_t>(t->elements()), 0));
        tw::LaunchOptions options;
        options.sim.schedule = tw::sim::parse_schedule(order);
        device->launch(kernel, {a, b}, options);
        EXPECT_EQ(a.download_f32(), std::vector<float>(static_cast<size_t>(a.elements()), 1));
        EXPECT_EQ(b.download_f32(), std::vector<float>(static_cast<size_t>(b.elements()), 1));
      }
    }
  }
}

TEST(TileScheduler, SaysWhatIsMissing) {
  auto scheduler = [](TileScheduler::Options options) {
    const int base = __LINE__;
    return tw::testing::message_of(base, [&] {
      KernelBuilder k("k", Arch::sm_100a);
      TileScheduler tiles(k, TileOrder(1, 1, 8), options);
    });
  };
  EXPECT_EQ(scheduler({.schedule = Schedule::persistent}),
            "+3 a persistent schedule has a pool of at least one cluster");
  EXPECT_EQ(scheduler({.schedule = Schedule::launch_control}),
            "+3 launch control counts the warps that read its answers");
}

}  // namespace
