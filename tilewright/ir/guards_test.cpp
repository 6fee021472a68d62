#include "tilewright/ir/guards.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "tilewright/ir/testing.h"

namespace tw::ir {
namespace {

using testing::bounded;

Range under(std::initializer_list<Expr> conditions, const Expr& value) {
  Guards guards;
  for (const Expr& c : conditions) guards.add(c);
  return guards.range(value);
}
void expect(const Range& r, int64_t lo, int64_t hi) {
  EXPECT_EQ(r.lo, lo);
  EXPECT_EQ(r.hi, hi);
}

TEST(Guards, BoundAVariable) {
  const Expr i = bounded("i", 0, 1000);
  expect(under({}, i * 4), 0, 4000);
  expect(under({i < 10}, i * 4), 0, 36);
  expect(under({i <= 10, i >= 3}, i * 4 + 1), 13, 41);
  expect(under({i < 10}, i * -4), -36, 0);
  expect(under({i == 7}, i * 4), 28, 28);
  expect(under({!(i < 10)}, i), 10, 1000);
  expect(under({i < 2000}, i), 0, 1000);
  expect(under({i != 7}, i), 0, 1000);
}

TEST(Guards, ConjunctionsAndWhatTheyNegate) {
  const Expr i = bounded("i", 0, 1000), j = bounded("j", 0, 1000);
  expect(under({i < 10 && j < 5}, i * 100 + j), 0, 904);
  expect(under({!(i >= 10 || j >= 5)}, i * 100 + j), 0, 904);
  expect(under({i < 10 || j < 5}, i * 100 + j), 0, 101000);  // neither alone is known
}

// A row of a tile beyond the last: no term of the sum is bounded more closely, only the sum is.
TEST(Guards, BoundASumOfWhichTheValueIsAMultiple) {
  const Expr tile = bounded("tile", 0, 9), t = bounded("t", 0, 127), column = bounded("column", 0, 511);
  const Expr row = tile * 128 + t;
  expect(under({row < 1200}, row * 300), 0, 1199 * 300);
  expect(under({row < 1200}, row * 300 + column), 0, 1199 * 300 + 511);
  expect(under({row < 1200, column < 300}, row * 300 + column), 0, 1199 * 300 + 299);
  expect(under({column < 300, row < 1200}, row * 300 + column), 0, 1199 * 300 + 299);
  expect(under({row * 2 < 2400}, row * 3), 0, 1199 * 3 + 1);  // row <= 1199.5, times 3
  expect(under({tile + t < 5}, row), 0, 512);                 // 128 times what is left for the tile
}

TEST(Guards, NoOtherConditionSaysAnything) {
  const Expr i = bounded("i", 0, 1000), f = cast(DType::f32, i);
  expect(under({f < Expr(3.0)}, i), 0, 1000);
  auto v = std::make_shared<Variable>();  // 0 - 1 is large
  v->type = DType::u32;
  v->lo = 0, v->hi = 1000;
  const Expr u{VarRef(v)};
  expect(under({u - 1 < integer(DType::u32, 10)}, u), 0, 1000);
}

TEST(Guards, AContradictionNeverHolds) {
  const Expr i = bounded("i", 0, 1000);
  Guards guards;
  guards.add(i < 5);
  EXPECT_FALSE(guards.never());
  guards.add(i > 2000);  // false at once
  EXPECT_TRUE(guards.never());
}

TEST(Guards, WhatDoesNotFit64BitsIsLeftOut) {
  const Expr i = cast(DType::i64, bounded("i", 0, INT32_MAX)), j = bounded("j", 0, INT32_MAX);
  expect(under({i * (int64_t{1} << 40) < j}, i * 3), 0, 0);
  expect(under({i * (int64_t{1} << 62) < j}, i * 3), 0, int64_t{3} * INT32_MAX);  // 2^62 * 3 on the way
}

// Three variables, all of whose values are tried: no value leaves its bounds where the guards hold.
RC_GTEST_PROP(GuardsProperty, NoValueThatTheyLetThroughLeavesTheBounds, ()) {
  constexpr int kValues = 7;
  std::array<std::shared_ptr<Variable>, 3> variables;
  std::array<int64_t, 3> low{};
  for (size_t i = 0; i < 3; ++i) {
    low[i] = *rc::gen::inRange(-5, 5);
    variables[i] = std::make_shared<Variable>();
    variables[i]->name = std::string(1, static_cast<char>('x' + i));
    variables[i]->lo = low[i];
    variables[i]->hi = low[i] + kValues - 1;
  }
  using Sum = std::array<int64_t, 4>;  // coefficients and a constant
  const auto sum = [] {
    Sum s;
    for (int64_t& c : s) c = *rc::gen::inRange(-4, 5);
    return s;
  };
  const auto expr = [&](const Sum& s) {
    Expr e = s[3];
    for (size_t i = 0; i < 3; ++i) e = e + Expr(VarRef(variables[i])) * s[i];
    return e;
  };
  const Sum value = sum(), first = sum(), second = sum();
  const bool all = *rc::gen::arbitrary<bool>(), equal = *rc::gen::inRange(0, 4) == 0;
  const Expr one = equal ? expr(first) == 0 : expr(first) < 0, two = expr(second) <= 3;
  Guards guards;
  if (all) guards.add(one && two);
  else guards.add(one || two, false);
  const Range r = guards.range(expr(value));
  for (int n = 0; n < kValues * kValues * kValues; ++n) {
    const std::array<int64_t, 3> at{low[0] + n % kValues, low[1] + n / kValues % kValues,
                                    low[2] + n / kValues / kValues};
    const auto of = [&](const Sum& s) { return s[0] * at[0] + s[1] * at[1] + s[2] * at[2] + s[3]; };
    const bool a = equal ? of(first) == 0 : of(first) < 0, b = of(second) <= 3;
    if (all ? !(a && b) : (a || b)) continue;
    RC_ASSERT(!guards.never());
    RC_ASSERT(*r.lo <= of(value) && of(value) <= *r.hi);
  }
}

}  // namespace
}  // namespace tw::ir
