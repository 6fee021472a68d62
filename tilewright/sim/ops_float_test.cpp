#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"

// References written from PTX ISA, "Floating-Point Instructions", "Half Precision Floating-Point
// Instructions", "cvt" and "Comparison and Selection Instructions". long double has the precision to hold
// exact sums and products of these inputs.
namespace tw::sim::testing {
namespace {

using u64 = uint64_t;
uint32_t bits(float v) { return std::bit_cast<uint32_t>(v); }
float f32(u64 v) { return std::bit_cast<float>(static_cast<uint32_t>(v)); }
u64 bits64(double v) { return std::bit_cast<u64>(v); }

const std::vector<u64> kFloats = {0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x80000001,
                                  0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
                                  0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x3F800001, 0x34000000,
                                  0x33800000, 0xB3800001, 0x4B7FFFFF, 0x3EAAAAAB, 0x42C80000};
const std::vector<u64> kHalves = {0x0000, 0x8000, 0x3C00, 0xBC00, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF,
                                  0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x3C01, 0x1000, 0x5640, 0x3555};

float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
u64 canonical_bits(float v) { return std::isnan(v) ? 0x7FFFFFFF : bits(v); }

template <class F>
void check(std::string_view text, int out, int in, const std::vector<u64>& values, F reference) {
  const auto columns = pairs(values, values);
  const auto got = evaluate(text, out, in, columns, "sm_100a");
  for (size_t n = 0; n < got.size(); ++n) {
    ASSERT_EQ(got[n], static_cast<u64>(reference(columns[0][n], columns[1][n])))
        << text << " of " << std::hex << columns[0][n] << ", " << columns[1][n];
  }
}

TEST(Float, F32ArithmeticNanFtzSat) {
  check("add.f32 %d, %a, %b;", 4, 4, kFloats, [](u64 a, u64 b) { return canonical_bits(f32(a) + f32(b)); });
  check("sub.rn.f32 %d, %a, %b;", 4, 4, kFloats,
        [](u64 a, u64 b) { return canonical_bits(f32(a) - f32(b)); });
  check("mul.f32 %d, %a, %b;", 4, 4, kFloats, [](u64 a, u64 b) { return canonical_bits(f32(a) * f32(b)); });
  check("mul.ftz.f32 %d, %a, %b;", 4, 4, kFloats,
        [](u64 a, u64 b) { return canonical_bits(flushed(flushed(f32(a)) * flushed(f32(b)))); });
  check("fma.rn.f32 %d, %a, %b, %a;", 4, 4, kFloats,
        [](u64 a, u64 b) { return canonical_bits(std::fma(f32(a), f32(b), f32(a))); });
  check("add.sat.f32 %d, %a, %b;", 4, 4, kFloats, [](u64 a, u64 b) {
    const float s = f32(a) + f32(b);
    return bits(s > 0 ? std::min(s, 1.0f) : 0.0f);
  });
}

TEST(Float, DirectedRoundingBracketsTheExactResult) {
  for (const char* op : {"add", "mul"}) {
    const auto columns = pairs({0x3F800001, 0x3EAAAAAB, 0xC0490FDB, 0x33800001, 0x4B7FFFFF},
                               {0x3F800003, 0x34000001, 0xBEAAAAAB, 0x42C80001});
    const auto down = evaluate(tw::format("{}.rm.f32 %d, %a, %b;", op), 4, 4, columns),
               up = evaluate(tw::format("{}.rp.f32 %d, %a, %b;", op), 4, 4, columns);
    const auto zero = evaluate(tw::format("{}.rz.f32 %d, %a, %b;", op), 4, 4, columns);
    for (size_t n = 0; n < down.size(); ++n) {
      const long double a = f32(columns[0][n]), b = f32(columns[1][n]), exact = op[0] == 'a' ? a + b : a * b;
      EXPECT_LE(f32(down[n]), exact);
      EXPECT_GE(f32(up[n]), exact);
      EXPECT_EQ(f32(up[n]), f32(down[n]) == exact ? f32(down[n]) : std::nextafter(f32(down[n]), INFINITY));
      EXPECT_EQ(f32(zero[n]), exact > 0 ? f32(down[n]) : f32(up[n]));
    }
  }
}

TEST(Float, MinMaxRules) {
  auto reference = [](float a, float b, bool is_max) -> u64 {
    if (std::isnan(a) && std::isnan(b)) return 0x7FFFFFFF;
    if (std::isnan(a)) return bits(b);
    if (std::isnan(b)) return bits(a);
    if (a == 0 && b == 0)
      return is_max ? (std::signbit(a) && std::signbit(b) ? 0x80000000 : 0)
                    : (std::signbit(a) || std::signbit(b) ? 0x80000000 : 0);
    return bits(is_max ? std::max(a, b) : std::min(a, b));
  };
  check("max.f32 %d, %a, %b;", 4, 4, kFloats, [&](u64 a, u64 b) { return reference(f32(a), f32(b), true); });
  check("min.f32 %d, %a, %b;", 4, 4, kFloats, [&](u64 a, u64 b) { return reference(f32(a), f32(b), false); });
  check("max.NaN.f32 %d, %a, %b;", 4, 4, kFloats, [&](u64 a, u64 b) {
    return std::isnan(f32(a)) || std::isnan(f32(b)) ? u64{0x7FFFFFFF} : reference(f32(a), f32(b), true);
  });
}

TEST(Float, HalfArithmeticIsRoundedOnce) {
  // long double sums and products of f16 values are exact; from_double rounds them once from the nearest
  // double, which is exact too for these (their span is below 53 bits), except fma's, where the long double
  // is the wider witness.
  auto h = [](u64 v) {
    return static_cast<long double>(to_double(DType::f16, static_cast<uint32_t>(v & 0xFFFF)));
  };
  auto round = [](long double v) -> u64 { return from_double(DType::f16, static_cast<double>(v)); };
  check("add.f16 %d, %a, %b;", 2, 2, kHalves, [&](u64 a, u64 b) { return round(h(a) + h(b)); });
  check("mul.f16 %d, %a, %b;", 2, 2, kHalves, [&](u64 a, u64 b) { return round(h(a) * h(b)); });
  check("fma.rn.f16 %d, %a, %b, %a;", 2, 2, kHalves, [&](u64 a, u64 b) { return round(h(a) * h(b) + h(a)); });
  check("fma.rn.relu.f16 %d, %a, %b, %a;", 2, 2, kHalves, [&](u64 a, u64 b) {
    const u64 r = round(h(a) * h(b) + h(a));
    return (r & 0x8000) && (r & 0x7FFF) <= 0x7C00 ? 0 : r;
  });
}

TEST(Float, HalfFmaDoesNotRoundTwice) {
  // 2^-24 * 2^-1 lies far below half a unit of 2048 + 1: a tie that only the tiny product breaks. In f16:
  // 2049 is half way between 2048 and 2050, so c = 2048, a * b = 1 + 2^-10 must give 2050, a * b = 1 must
  // give 2048.
  EXPECT_EQ(evaluate("mov.b16 %h0, 0x6800; fma.rn.f16 %d, %a, %b, %h0;", 2, 2, {{0x3C01}, {0x3C00}})[0],
            0x6801u);
  EXPECT_EQ(evaluate("mov.b16 %h0, 0x6800; fma.rn.f16 %d, %a, %b, %h0;", 2, 2, {{0x3C00}, {0x3C00}})[0],
            0x6800u);
  // bf16: 1 + 2^-8 is half way between 1 and 1 + 2^-7; adding 2^-100 must break the tie upwards although a
  // double of the sum cannot hold it.
  EXPECT_EQ(evaluate("mov.b16 %h0, 0x3F80; mov.b32 %t0, 0x0D803B80; mov.b32 {%h1, %h2}, %t0; fma.rn.bf16 %d, "
                     "%a, %b, %h0;",
                     2, 2, {{0x3B80}, {0x3F81}})[0],
            0x3F81u);
}

TEST(Float, PackedForms) {
  check("add.f32 %d, %a, %b;", 4, 4, {0x3F800000}, [](u64, u64) { return bits(2.0f); });
  const auto got = evaluate(
      "mov.b64 %l0, {%a, %b}; mov.b64 %l1, {%b, %a}; fma.rn.f32x2 %l2, %l0, %l1, %l0; mov.b64 {%t0, %d}, "
      "%l2;",
      4, 4, {{bits(3.0f)}, {bits(5.0f)}}, "sm_100a");
  EXPECT_EQ(f32(got[0]), 20.0f);
  // f16x2: low 1 + 2, high 3 + 4.
  EXPECT_EQ(evaluate("add.f16x2 %d, %a, %b;", 4, 4, {{0x42003C00}, {0x44004000}})[0], 0x47004200u);
}

TEST(Float, Compare) {
  struct Case {
    const char* op;
    bool (*f)(float, float);
  };
  const auto nan = [](float a, float b) { return std::isnan(a) || std::isnan(b); };
  (void)nan;
  const Case cases[] = {{"lt", [](float a, float b) { return a < b; }},
                        {"ne", [](float a, float b) { return a < b || a > b; }},
                        {"geu", [](float a, float b) { return !(a < b); }},
                        {"neu", [](float a, float b) { return a != b; }},
                        {"equ", [](float a, float b) { return !(a < b || a > b); }},
                        {"num", [](float a, float b) { return !std::isnan(a) && !std::isnan(b); }},
                        {"nan", [](float a, float b) { return std::isnan(a) || std::isnan(b); }}};
  for (const Case& c : cases) {
    check(tw::format("setp.{}.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", c.op), 4, 4, kFloats,
          [&](u64 a, u64 b) { return c.f(f32(a), f32(b)); });
  }
}

TEST(Convert, FloatToIntegerClampsAndNan) {
  auto check1 = [](std::string_view text, int out, int in, const std::vector<u64>& values, auto reference) {
    const auto got = evaluate(text, out, in, {values});
    for (size_t n = 0; n < got.size(); ++n)
      ASSERT_EQ(got[n], static_cast<u64>(reference(values[n]))) << text << " of " << std::hex << values[n];
  };
  std::vector<u64> v = kFloats;
  for (float f :
       {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2147483647.0f, -2147483648.0f, 4294967295.0f, 300.7f, -300.7f, 1e20f})
    v.push_back(bits(f));
  check1("cvt.rzi.s32.f32 %d, %a;", 4, 4, v, [](u64 a) {
    const float f = f32(a);
    return std::isnan(f) ? 0u
                         : static_cast<uint32_t>(f >= 0x1p31f   ? INT32_MAX
                                                 : f < -0x1p31f ? INT32_MIN
                                                                : static_cast<int32_t>(f));
  });
  check1("cvt.rni.s32.f32 %d, %a;", 4, 4, v, [](u64 a) {
    const double f = std::nearbyint(double{f32(a)});
    return std::isnan(f) ? 0u
                         : static_cast<uint32_t>(f >= 0x1p31   ? INT32_MAX
                                                 : f < -0x1p31 ? INT32_MIN
                                                               : static_cast<int32_t>(f));
  });
  check1("cvt.rzi.u64.f32 %d, %a;", 8, 4, v, [](u64 a) {
    const float f = f32(a);
    return std::isnan(f)  ? u64{1} << 63
           : f <= 0       ? 0
           : f >= 0x1p64f ? ~u64{0}
                          : static_cast<u64>(f);  // "Integer Notes": NaN to 64 bits
  });
  check1("cvt.sat.s8.s32 %t0, %a; cvt.u32.u8 %d, %t0;", 4, 4,
         {0, 127, 128, 0xFFFFFF80, 0xFFFFFF7F, 0x7FFFFFFF},
         [](u64 a) { return static_cast<uint8_t>(std::clamp<int32_t>(static_cast<int32_t>(a), -128, 127)); });
  check1("cvt.rn.f32.s64 %d, %a;", 4, 8,
         {0, 1, ~u64{0}, u64{1} << 63, 0x7FFFFFFFFFFFFFFF, 0x8000008000000001, 0x0100000100000001},
         [](u64 a) { return bits(static_cast<float>(static_cast<int64_t>(a))); });
  check1("cvt.rn.f16.f32 %d, %a;", 2, 4, v, [](u64 a) { return from_double(DType::f16, f32(a)); });
  check1("cvt.rz.bf16.f32 %d, %a;", 2, 4, v,
         [](u64 a) { return from_double(DType::bf16, f32(a), Rounding::rz); });
  check1("cvt.f64.f32 %d, %a;", 8, 4, {bits(1.5f), bits(-0.0f), 1, 0x7F800000},
         [](u64 a) { return bits64(double{f32(a)}); });
  check1("cvt.s32.s16 %d, %a;", 4, 2, {0, 1, 0x8000, 0xFFFF},
         [](u64 a) { return static_cast<uint32_t>(int32_t{static_cast<int16_t>(a)}); });
}

TEST(Convert, PackedNarrowFormats) {
  EXPECT_EQ(evaluate("cvt.rn.f16x2.f32 %d, %a, %b;", 4, 4, {{bits(1.0f)}, {bits(2.0f)}})[0],
            0x3C004000u);  // a in the upper half
  EXPECT_EQ(evaluate("cvt.rn.satfinite.e4m3x2.f32 %h0, %a, %b; cvt.u32.u16 %d, %h0;", 4, 4,
                     {{bits(1.0f)}, {bits(1e6f)}})[0],
            0x387Eu);
  EXPECT_EQ(evaluate("cvt.rn.satfinite.e5m2x2.f32 %h0, %a, %b; cvt.rn.f16x2.e5m2x2 %d, %h0;", 4, 4,
                     {{bits(1.5f)}, {bits(-2.0f)}})[0],
            0x3E00C000u);
}

TEST(Math, ApproximationsAreWithinOneUnit) {
  std::vector<u64> v;
  for (float x : {-150.0f, -126.5f, -20.25f, -1.0f, -0.3f, 0.0f, 0.1f, 0.5f, 1.0f, 3.7f, 100.9f, 127.99f,
                  128.0f, 1000.0f, -1000.0f})
    v.push_back(bits(x));
  const auto got = evaluate("ex2.approx.f32 %d, %a;", 4, 4, {v});
  for (size_t n = 0; n < v.size(); ++n)
    EXPECT_EQ(f32(got[n]), static_cast<float>(std::exp2(double{f32(v[n])}))) << f32(v[n]);
  EXPECT_EQ(evaluate("ex2.approx.ftz.f32 %d, %a;", 4, 4, {{bits(-130.0f)}})[0], 0u);
  EXPECT_EQ(f32(evaluate("rsqrt.approx.f32 %d, %a;", 4, 4, {{bits(4.0f)}})[0]), 0.5f);
  EXPECT_EQ(f32(evaluate("rcp.rn.f32 %d, %a;", 4, 4, {{bits(3.0f)}})[0]), 1.0f / 3.0f);
  EXPECT_EQ(f32(evaluate("div.rn.f32 %d, %a, %b;", 4, 4, {{bits(1.0f)}, {bits(10.0f)}})[0]), 0.1f);
  EXPECT_EQ(f32(evaluate("sqrt.rp.f32 %d, %a;", 4, 4, {{bits(2.0f)}})[0]),
            std::nextafter(std::sqrt(2.0f), 2.0f));  // sqrt(2) is rounded down
}

}  // namespace
}  // namespace tw::sim::testing
