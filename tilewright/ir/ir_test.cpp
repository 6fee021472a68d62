#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/ir/active_set.h"
#include "tilewright/ir/simplify.h"
#include "tilewright/ir/testing.h"

namespace tw::ir {
namespace {

using testing::bounded;

const Expr kThread{ScopeId::thread};

TEST(Simplify, UnrolledCopyRowsBecomeOffsets) {
  // Vector j*128 + t of a tile of 8 vectors a row: row t/8 + 16j, column t%8.
  Expr t = kThread % 128;
  EXPECT_EQ(to_string((t + 3 * 128) / 8), to_string(t / 8 + 48));
  EXPECT_EQ(to_string((t + 3 * 128) % 8), to_string(kThread % 8));
}

TEST(Simplify, RangesRemoveDivision) {
  Expr i = bounded("i", 0, 15);
  EXPECT_TRUE((i / 16).is(0));
  EXPECT_TRUE(same(i % 16, i));
  EXPECT_TRUE(same((i * 64 + 63) / 64, i));
  EXPECT_TRUE(((i < 16)).is(1));
  EXPECT_TRUE(((i >= 16)).is(0));
}

TEST(Simplify, StageLeavesTheSwizzle) {
  Expr stage = bounded("stage", 0, 3), x = bounded("x", 0, 8191);
  Expr swizzled = swizzle(x + stage * 8192, 3, 3, 3);
  EXPECT_TRUE(same(swizzled, swizzle(x, 3, 3, 3) + stage * 8192)) << to_string(swizzled);
}

// 32-bit products do not hold what 64-bit ones do, so each factor is widened.
TEST(Simplify, ProductsWidenFactorByFactor) {
  Expr a = bounded("a", 0, 1 << 20), b = bounded("b", 0, 1 << 20);
  const Expr wide = cast(DType::i64, a * b * 4 + 3);
  EXPECT_TRUE(same(wide, cast(DType::i64, a) * cast(DType::i64, b) * 4 + 3)) << to_string(wide);
}

// Every simplification keeps the value: random expressions over the thread id against plain evaluation.
RC_GTEST_PROP(SimplifyProperty, KeepsTheValue, ()) {
  Expr e = kThread;
  int t = *rc::gen::inRange(0, 1024);
  int64_t v = t;
  int steps = *rc::gen::inRange(1, 8);
  for (int i = 0; i < steps; ++i) {
    int64_t c = *rc::gen::inRange(1, 300);
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
        e = e + c;
        v += c;
        break;
      case 1:
        e = e - c;
        v -= c;
        break;
      case 2:
        c = c % 9 + 1;
        e = e * c;
        v *= c;
        break;
      case 3:
        e = e / c;
        v = v / c - (v % c < 0);
        break;
      case 4:
        e = e % c;
        v = ((v % c) + c) % c;
        break;
      case 5:
        e = e + kThread * c;
        v += t * c;
        break;
      default:
        if (v < 0) break;
        e = swizzle(e, 3, 3, 3);
        v = v ^ (((v >> 6) & 7) << 3);
    }
    if (std::abs(v) > (1 << 28)) break;
  }
  auto got = evaluate(e, t);
  RC_ASSERT(got.has_value());
  RC_ASSERT(*got == v);
  Range r = range(e);
  RC_ASSERT(!r.lo || *r.lo <= v);
  RC_ASSERT(!r.hi || *r.hi >= v);
}

TEST(Range, OfOperationsOnRunTimeValues) {
  Expr x = bounded("x", 3, 100), size = bounded("size", 0, 20), any = bounded("any", -4, 4);
  auto expect = [](const Expr& e, std::optional<int64_t> lo, std::optional<int64_t> hi) {
    Range r = range(e);
    EXPECT_EQ(r.lo, lo) << to_string(e);
    EXPECT_EQ(r.hi, hi) << to_string(e);
  };
  expect(x / size, 0, 100);
  expect(x / any, {}, {});  // 100 / -1
  expect(any / 3, -2, 1);   // rounds down
  expect(x % 8, 0, 7);
  expect(x % any, {}, {});
  expect(x * size, 0, 2000);
  expect(max(x, any), 3, 100);
  expect(min(x, any), -4, 4);
  expect(select(x < 7, x, any), -4, 100);
}

// The reference system's cases (facts: execution scopes).
TEST(Range, BeyondSixtyFourBitsIsNone) {
  Expr a = bounded("a", 0, INT32_MAX), wide = cast(DType::i64, a);
  EXPECT_EQ(range(wide * wide).hi, int64_t{INT32_MAX} * INT32_MAX);
  EXPECT_EQ(range(wide * wide * wide).hi, std::nullopt);
  EXPECT_EQ(range(wide * wide * 8).hi, std::nullopt);
  EXPECT_EQ(range(wide * wide * 8).lo, 0);
}

TEST(ActiveSet, GuardsNarrowExactly) {
  ActiveSet all = ActiveSet::all(512);
  Expr warp(ScopeId::warp), wg(ScopeId::warpgroup);
  ActiveSet some = all.guarded(warp >= 2 && warp < 6, {"k.cpp", 3});
  EXPECT_EQ(some.count(), 128u);
  EXPECT_FALSE(some.unfit(Scope::warp));
  EXPECT_EQ(*some.unfit(Scope::warpgroup), "only 64 of 128 threads of warpgroup 0 are active");
  ActiveSet lanes = all.guarded(kThread >= 34 && kThread < 40, {"k.cpp", 4});
  EXPECT_EQ(lanes.to_string(), "threads 34..39");
  EXPECT_EQ(*lanes.unfit(Scope::warp), "only 6 of 32 threads of warp 1 are active");
  ActiveSet groups = all.guarded(wg >= 1 && wg < 3, {"k.cpp", 5});
  EXPECT_EQ(groups.first_warp(), 4);
  EXPECT_EQ(groups.warp_count(), 8);
  EXPECT_FALSE(groups.unfit(Scope::warpgroup));
  EXPECT_EQ(*groups.unfit(Scope::cta), "only 256 of 512 threads of the CTA are active");
}

TEST(ActiveSet, ElectionAndRunTimeGuards) {
  ActiveSet all = ActiveSet::all(128);
  Expr n = bounded("n", 0, 1000);
  EXPECT_FALSE(all.guarded(n < 5, {}).unfit(Scope::cta));
  ActiveSet unknown = all.guarded(kThread < n, {"k.cpp", 9});
  EXPECT_EQ(*unknown.unfit(Scope::warp), "the guard lets through threads known only at run time");
  ActiveSet one = all.guarded(Expr(ScopeId::warp) == 2, {}).elected({"k.cpp", 7});
  EXPECT_TRUE(one.one_thread());
  EXPECT_EQ(one.to_string(), "one elected lane of warp 2");
}

TEST(ActiveSet, RanksInTheCluster) {
  ActiveSet all = ActiveSet::all(128, 4);
  Expr rank(ScopeId::cluster_rank);
  EXPECT_TRUE(all.in_every_cta());
  EXPECT_TRUE(all.in_both_of_a_pair());
  EXPECT_FALSE(all.in_home_of(Scope::cta_pair));
  EXPECT_TRUE(all.in_home_of(Scope::cta));
  ActiveSet even = all.guarded(rank % 2 == 0, {});
  EXPECT_FALSE(even.in_both_of_a_pair());
  EXPECT_TRUE(even.in_home_of(Scope::cta_pair));
  EXPECT_FALSE(even.in_home_of(Scope::cluster));
  EXPECT_TRUE(all.guarded(rank == 0, {}).in_home_of(Scope::cluster));
  EXPECT_TRUE(all.guarded(rank >= 2, {}).in_both_of_a_pair());
  EXPECT_TRUE(all.guarded(rank >= 2, {}).reaches_home_of(Scope::cta_pair));
  EXPECT_FALSE(all.guarded(rank == 3, {}).reaches_home_of(Scope::cta_pair));
  EXPECT_FALSE(all.guarded(rank >= 2, {}).reaches_home_of(Scope::cluster));
  EXPECT_TRUE(all.guarded(rank == 4, {}).empty());
  // What is known only at run time may be in any CTA.
  EXPECT_TRUE(all.guarded(bounded("n", 0, 9) == rank, {}).in_every_cta());
}

}  // namespace
}  // namespace tw::ir
