#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"

// The errors that PTX ISA allows: "Floating-Point Instructions" and "Half Precision Floating-Point
// Instructions", the notes of each .approx instruction. The exact values come from the host's double
// functions.
namespace tw::sim::testing {
namespace {

using u64 = uint64_t;
using Function = double (*)(double);

float f32(u64 v) { return std::bit_cast<float>(static_cast<uint32_t>(v)); }
u64 bits(float v) { return std::bit_cast<uint32_t>(v); }

// Evenly spread from low to high, with zeros.
std::vector<u64> between(double low, double high, size_t n = 60'000) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> spread(low, high);
  std::vector<u64> v{bits(0.0f), bits(-0.0f), bits(static_cast<float>(low)), bits(static_cast<float>(high))};
  while (v.size() < n) v.push_back(bits(static_cast<float>(spread(random))));
  return v;
}
// Every exponent from 2^low to 2^high, positive.
std::vector<u64> exponents(int low, int high, size_t n = 60'000) {
  std::mt19937_64 random(4);
  std::vector<u64> v;
  while (v.size() < n) {
    const int e = low + static_cast<int>(random() % static_cast<u64>(high - low));
    v.push_back(bits(static_cast<float>(std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, e))));
  }
  return v;
}

double ulp(double exact) {
  const int e = std::max(std::ilogb(exact), -126);
  return std::ldexp(1.0, e - 23);
}

struct Bound {
  double relative = 0, absolute = 0, ulps = 0;
  double of(double exact) const {
    return std::max(absolute, std::fabs(exact) * relative) + (ulps > 0 ? ulps * ulp(exact) : 0);
  }
};

void expect_within(std::string_view text, const std::vector<u64>& inputs, Function exact, Bound bound) {
  const auto got = evaluate(text, 4, 4, {inputs}, "sm_100a");
  for (size_t n = 0; n < got.size(); ++n) {
    const double x = f32(inputs[n]), wanted = exact(x), is = f32(got[n]);
    if (std::fabs(wanted) > 3.4028235677973366e38) {
      ASSERT_TRUE(std::isinf(is)) << text << " of " << x;
      continue;
    }
    ASSERT_LE(std::fabs(is - wanted), bound.of(wanted))
        << text << " of " << x << ": " << is << ", not " << wanted;
  }
}

double rsqrt(double x) { return 1 / std::sqrt(x); }
double rcp(double x) { return 1 / x; }

TEST(Approximate, Exp2IsWithinTwoUnits) {
  expect_within("ex2.approx.f32 %d, %a;", between(-155, 130), &std::exp2, {.ulps = 2});
  expect_within("ex2.approx.f32 %d, %a;", between(-2, 2), &std::exp2, {.ulps = 2});
  expect_within("ex2.approx.ftz.f32 %d, %a;", between(-126, 130), &std::exp2, {.ulps = 2});
  for (int e = -126; e < 128; ++e) {
    const std::vector<u64> x{bits(static_cast<float>(e))};
    ASSERT_EQ(f32(evaluate("ex2.approx.f32 %d, %a;", 4, 4, {x})[0]), std::ldexp(1.0f, e));
  }
}

TEST(Approximate, Log2IsWithinTheBound) {
  expect_within("lg2.approx.f32 %d, %a;", between(0.5, 2), &std::log2, {.absolute = 0x1p-22});
  expect_within("lg2.approx.f32 %d, %a;", exponents(-149, 128), &std::log2,
                {.relative = 0x1p-22, .absolute = 0x1p-22});
  expect_within("lg2.approx.ftz.f32 %d, %a;", exponents(-126, 128), &std::log2,
                {.relative = 0x1p-22, .absolute = 0x1p-22});
}

TEST(Approximate, SineAndCosineAreWithinTheBound) {
  constexpr double pi = 3.14159265358979323846;
  for (const char* ftz : {"", ".ftz"}) {
    const std::string sine = tw::format("sin.approx{}.f32 %d, %a;", ftz),
                      cosine = tw::format("cos.approx{}.f32 %d, %a;", ftz);
    expect_within(sine, between(-2 * pi, 2 * pi), &std::sin, {.absolute = 0x1p-20});
    expect_within(cosine, between(-2 * pi, 2 * pi), &std::cos, {.absolute = 0x1p-20});
    expect_within(sine, between(-1e5, 1e5), &std::sin, {.absolute = 0x1p-14});
    expect_within(cosine, between(-1e5, 1e5), &std::cos, {.absolute = 0x1p-14});
    // "Best effort" far out: still exact here.
    expect_within(sine, exponents(18, 128, 2000), &std::sin, {.absolute = 0x1p-14});
    expect_within(cosine, exponents(18, 128, 2000), &std::cos, {.absolute = 0x1p-14});
  }
  // Small arguments keep their relative precision.
  expect_within("sin.approx.f32 %d, %a;", exponents(-126, -1), &std::sin, {.relative = 0x1p-22});
}

TEST(Approximate, TanhIsWithinTheBound) {
  expect_within("tanh.approx.f32 %d, %a;", between(-12, 12), &std::tanh, {.relative = 0x1p-11});
  expect_within("tanh.approx.f32 %d, %a;", between(-1, 1), &std::tanh, {.relative = 0x1p-21});
  expect_within("tanh.approx.f32 %d, %a;", exponents(-148, 128), &std::tanh, {.relative = 0x1p-11});
}

TEST(Approximate, RootsAndReciprocalsAreWithinTheBound) {
  expect_within("rsqrt.approx.f32 %d, %a;", exponents(-148, 128), &rsqrt, {.relative = 1.33e-7});  // 2^-22.9
  expect_within("rsqrt.approx.ftz.f32 %d, %a;", exponents(-126, 128), &rsqrt, {.relative = 1.33e-7});
  expect_within("rcp.approx.f32 %d, %a;", exponents(-126, 126), &rcp, {.ulps = 1});
  expect_within("sqrt.approx.f32 %d, %a;", exponents(-126, 128), &std::sqrt, {.relative = 0x1p-23});
}

// The tables "Input, Result" of each instruction's notes.
TEST(Approximate, EdgesFollowTheTables) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<u64> inputs{bits(-inf), bits(-1.5f), bits(-0.0f), bits(0.0f), bits(inf), 0xFFC12345};
  const struct {
    const char* text;
    std::vector<float> results;
  } tables[] = {
      {"lg2.approx.f32 %d, %a;", {nan, nan, -inf, -inf, inf, nan}},
      {"rsqrt.approx.f32 %d, %a;", {nan, nan, -inf, inf, 0.0f, nan}},
      {"sqrt.approx.f32 %d, %a;", {nan, nan, -0.0f, 0.0f, inf, nan}},
      {"sin.approx.f32 %d, %a;", {nan, -0.997495f, -0.0f, 0.0f, nan, nan}},
      {"cos.approx.f32 %d, %a;", {nan, 0.0707372f, 1.0f, 1.0f, nan, nan}},
      {"ex2.approx.f32 %d, %a;", {0.0f, 0.353553f, 1.0f, 1.0f, inf, nan}},
      {"ex2.approx.ftz.f32 %d, %a;", {0.0f, 0.353553f, 1.0f, 1.0f, inf, nan}},
      {"tanh.approx.f32 %d, %a;", {-1.0f, -0.905148f, -0.0f, 0.0f, 1.0f, nan}},
  };
  for (const auto& t : tables) {
    const auto got = evaluate(t.text, 4, 4, {inputs}, "sm_100a");
    for (size_t n = 0; n < inputs.size(); ++n) {
      const float wanted = t.results[n];
      if (wanted != wanted) EXPECT_EQ(got[n], 0x7FFFFFFFu) << t.text << n;
      else if (std::isinf(wanted) || wanted == 0 || wanted == 1 || wanted == -1)
        EXPECT_EQ(got[n], bits(wanted)) << t.text << n;
      else EXPECT_NEAR(f32(got[n]), wanted, 1e-6) << t.text << n;
    }
  }
  // ".ftz": a subnormal counts as zero. (Without it, lg2 of the smallest one is -149.)
  EXPECT_EQ(f32(evaluate("lg2.approx.ftz.f32 %d, %a;", 4, 4, {{1}})[0]), -inf);
  EXPECT_EQ(f32(evaluate("lg2.approx.f32 %d, %a;", 4, 4, {{1}})[0]), -149.0f);
  EXPECT_EQ(evaluate("ex2.approx.f32 %d, %a;", 4, 4, {{bits(-149.0f)}})[0], 1u);
  EXPECT_EQ(evaluate("ex2.approx.f32 %d, %a;", 4, 4, {{bits(-150.0f)}})[0], 0u);
}

// All 65536 codes: within half a unit of the last place and what the polynomials add, which the ISA's bounds
// (2^-9.9 and 2^-7 relative for ex2, 2^-10.987 and 2^-8 absolute for tanh) leave room for.
TEST(Approximate, HalvesAreNearlyNearest) {
  std::vector<u64> codes(65536);
  for (size_t n = 0; n < codes.size(); ++n) codes[n] = n;
  const struct {
    const char* text;
    DType format;
    Function exact;
    double relative;
    bool ftz;
  } cases[] = {{"ex2.approx.f16 %d, %a;", DType::f16, &std::exp2, 0x1.04p-11, false},
               {"tanh.approx.f16 %d, %a;", DType::f16, &std::tanh, 0x1.04p-11, false},
               {"ex2.approx.ftz.bf16 %d, %a;", DType::bf16, &std::exp2, 0x1.04p-8, true},
               {"tanh.approx.bf16 %d, %a;", DType::bf16, &std::tanh, 0x1.04p-8, false}};
  for (const auto& c : cases) {
    const auto got = evaluate(c.text, 2, 2, {codes}, "sm_100a");
    const double smallest = c.format == DType::f16 ? 0x1p-25 : c.ftz ? 0x1p-126 : 0x1p-134;
    for (size_t n = 0; n < codes.size(); ++n) {
      const double x = to_double(c.format, static_cast<uint32_t>(codes[n])), wanted = c.exact(x),
                   is = to_double(c.format, static_cast<uint32_t>(got[n]));
      if (wanted != wanted) ASSERT_EQ(got[n], 0x7FFFu) << c.text << codes[n];
      else if (std::isinf(is)) ASSERT_GE(std::fabs(wanted), c.format == DType::f16 ? 65519.0 : 3.38e38) << x;
      else ASSERT_LE(std::fabs(is - wanted), std::fabs(wanted) * c.relative + smallest) << c.text << " " << x;
    }
    std::vector<u64> two(codes.size());
    for (size_t n = 0; n < codes.size(); ++n) two[n] = n | (n * 40503 & 0xFFFF) << 16;
    std::string packed(c.text);
    packed.insert(packed.find(' '), "x2");
    const auto both = evaluate(packed, 4, 4, {two}, "sm_100a");
    for (size_t n = 0; n < codes.size(); ++n)
      ASSERT_EQ(both[n], got[two[n] & 0xFFFF] | got[two[n] >> 16] << 16) << packed << " " << two[n];
  }
}

}  // namespace
}  // namespace tw::sim::testing
