// The order in which tiles are shared out.
#include "tilewright/dsl/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/error/message.h"

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
