#include "tilewright/sim/vector_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"

namespace tw::sim::testing {
namespace {

using Columns = std::vector<std::vector<uint64_t>>;

// Random words, with edge cases of f32, f16 and bf16 mixed in.
Columns inputs(uint64_t seed, size_t n) {
  std::mt19937_64 random(seed);
  constexpr uint32_t edges[] = {0,          0x80000000, 0x3F800000, 0x00800000, 0x007FFFFF, 0x7F7FFFFF,
                                0x7F800000, 0xFFC12345, 0x7C003C00, 0xFE01FC00, 0x04000001, 0x03FF8000,
                                0x7BFF7BFF, 0x7F807F81, 0x00800001, 0x7F7F0080};
  Columns columns(3, std::vector<uint64_t>(n));
  for (auto& column : columns) {
    for (uint64_t& v : column) {
      const uint64_t r = random();
      v = r & 0xFFFFFFFF;
      if (r >> 60 == 0) v = edges[r >> 32 & 15];
      if (r >> 60 == 1) v = (v & 0x807FFFFF) | 0x3F000000;  // f32 near 1
      if (r >> 60 == 2) v = (v & 0x83FF83FF) | 0x38003C00;  // f16 near 1
    }
  }
  return columns;
}

TEST(VectorLevel, EveryLevelGivesTheSameBits) {
  const char* texts[] = {
      "lop3.b32 %d, %a, %b, %c, 0xD8;",
      "prmt.b32 %d, %a, %b, 0x1650;",
      "mad.hi.u32 %d, %a, %b, %c;",
      "shfl.sync.bfly.b32 %d, %a, 5, 0x1F, -1;",
      "shfl.sync.idx.b32 %d|%q, %a, %b, 0x81F, -1; selp.b32 %d, %d, 7, %q;",
      "shfl.sync.up.b32 %d|%q, %a, %b, 0, -1; selp.b32 %d, %d, 7, %q;",
      "shfl.sync.down.b32 %d|%q, %a, 3, 0x181F, -1; selp.b32 %d, %d, 7, %q;",
      "add.f32 %d, %a, %b;",
      "mul.ftz.f32 %d, %a, %b;",
      "fma.rn.ftz.f32 %d, %a, %b, %c;",
      "max.f32 %d, %a, %b;",
      "min.ftz.f32 %d, %a, %b;",
      "max.NaN.f32 %d, %a, %b;",
      "ex2.approx.ftz.f32 %d, %a;",
      "rcp.approx.f32 %d, %a;",
      "sqrt.approx.ftz.f32 %d, %a;",
      "cvt.rzi.s32.f32 %d, %a;",
      "cvt.rn.f16x2.f32 %d, %a, %b;",
      "cvt.rn.bf16x2.f32 %d, %a, %b;",
      "mov.b32 {%h0, %h1}, %a; cvt.f32.f16 %d, %h1;",
      "add.f16x2 %d, %a, %b;",
      "add.bf16x2 %d, %a, %b;",
      "sub.sat.f16x2 %d, %a, %b;",
      "mul.ftz.f16x2 %d, %a, %b;",
      "mul.bf16x2 %d, %a, %b;",
      "fma.rn.f16x2 %d, %a, %b, %c;",
      "fma.rn.ftz.f16x2 %d, %a, %b, %c;",
      "fma.rn.relu.bf16x2 %d, %a, %b, %c;",
      "max.NaN.f16x2 %d, %a, %b;",
      "min.xorsign.abs.bf16x2 %d, %a, %b;",
      "abs.f16x2 %d, %a;",
      "prmt.b32 %d, %a, %b, %c;",
      "prmt.b32.ecl %d, %a, %b, %c;",
      "bfe.s32 %d, %a, %b, %c;",
      "bmsk.clamp.b32 %d, %a, %b;",
      "brev.b32 %d, %a;",
      "dp4a.u32.s32 %d, %a, %b, %c;",
      "dp2a.hi.s32.u32 %d, %a, %b, %c;",
      "slct.s32.f32 %d, %a, %b, %c;",
      "add.cc.u32 %d, %a, %b; addc.u32 %d, %d, %c;",
      "sub.cc.u32 %d, %a, %b; subc.u32 %d, %d, %c;",
      "redux.sync.max.s32 %d, %a, -1;",
      "testp.subnormal.f32 %q, %a; selp.b32 %d, %a, %b, %q;",
      "setp.gtu.f16x2 %p|%q, %a, %b; selp.b32 %d, %a, %b, %p;",
      "add.rz.f32 %d, %a, %b;",
      "fma.rm.ftz.f32 %d, %a, %b, %c;",
      "max.f32 %d, %a, %b, %c;",
      "min.xorsign.abs.f32 %d, %a, %b;",
      "div.rn.f32 %d, %a, %b;",
      "ex2.approx.f32 %d, %a;",
      "lg2.approx.f32 %d, %a;",
      "sin.approx.f32 %d, %a;",
      "cos.approx.ftz.f32 %d, %a;",
      "tanh.approx.f32 %d, %a;",
      "rsqrt.approx.f32 %d, %a;",
      "ex2.approx.f16x2 %d, %a;",
      "tanh.approx.bf16x2 %d, %a;",
      "cvt.s32.s8 %d, %a;",
      "cvt.sat.u16.s32 %d, %a;",
      "cvt.rmi.u32.f32 %d, %a;",
      "cvt.rpi.ftz.s8.f32 %d, %a;",
      "cvt.rni.ftz.sat.f32.f32 %d, %a;",
      "cvt.f64.f32 %l0, %a; cvt.rn.f32.f64 %d, %l0;",
      "cvt.rna.tf32.f32 %d, %a;",
      "cvt.rn.satfinite.relu.bf16x2.f32 %d, %a, %b;",
      "cvt.rn.satfinite.e4m3x2.f32 %h0, %a, %b; cvt.rn.f16x2.e4m3x2 %d, %h0;",
      "cvt.rn.satfinite.e5m2x2.f16x2 %h0, %a; cvt.rn.relu.f16x2.e5m2x2 %d, %h0;",
      "cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;",
  };
  const Columns columns = inputs(1, 4096);
  for (const char* text : texts) {
    const auto best = evaluate(text, 4, 4, columns, "sm_100a");
    for (VectorLevel level : {VectorLevel::plain, VectorLevel::avx2}) {
      const VectorLevelLimit limit(level);
      ASSERT_EQ(evaluate(text, 4, 4, columns, "sm_100a"), best)
          << text << ", level " << static_cast<int>(level);
    }
  }
}

TEST(VectorLevel, FunctionsOfEvery16BitCodeAreTheSame) {
  Columns codes(1, std::vector<uint64_t>(65536));
  for (uint64_t n = 0; n < codes[0].size(); ++n) codes[0][n] = n | (0xFFFF - n) << 16;
  for (const char* text : {"ex2.approx.f16x2 %d, %a;", "ex2.approx.ftz.bf16x2 %d, %a;",
                           "tanh.approx.f16x2 %d, %a;", "tanh.approx.bf16x2 %d, %a;"}) {
    const auto best = evaluate(text, 4, 4, codes, "sm_100a");
    for (VectorLevel level : {VectorLevel::plain, VectorLevel::avx2}) {
      const VectorLevelLimit limit(level);
      ASSERT_EQ(evaluate(text, 4, 4, codes, "sm_100a"), best)
          << text << ", level " << static_cast<int>(level);
    }
  }
}

// The double with an odd last bit stands for everything between its neighbours.
double rounded_to_odd(long double exact) {
  const auto d = static_cast<double>(exact);
  if (d == exact || !std::isfinite(d) || (std::bit_cast<uint64_t>(d) & 1)) return d;
  return std::nextafter(d, exact > d ? INFINITY : -INFINITY);
}

// a * b + c, exact (long double holds the product) and then rounded to odd.
double exact_fma(double a, double b, double c) {
  const long double p = static_cast<long double>(a) * b, s = p + c;
  const long double back = s - p, error = (p - (s - back)) + (c - back);
  const double d = rounded_to_odd(s);
  if (!(std::fabs(error) > 0) || d != s || (std::bit_cast<uint64_t>(d) & 1)) return d;
  return std::nextafter(d, error > 0 ? INFINITY : -INFINITY);
}

// "Half Precision Floating-Point Instructions": fma, add and mul round once, to nearest even.
TEST(VectorLevel, HalfArithmeticRoundsOnce) {
  for (const DType format : {DType::f16, DType::bf16}) {
    std::mt19937_64 random(7);
    Columns columns(3, std::vector<uint64_t>(100'000));
    for (size_t n = 0; n < columns[0].size(); ++n) {
      for (auto& column : columns) column[n] = random() & 0xFFFF;
      if (n % 2) continue;
      // c close to the negated product, or close to half a unit away from it: cancellation and near-ties.
      const double product = to_double(format, static_cast<uint32_t>(columns[0][n])) *
                             to_double(format, static_cast<uint32_t>(columns[1][n]));
      const double scale = n % 4 ? -1.0 : std::ldexp(1.0, static_cast<int>(random() % 30));
      columns[2][n] = from_double(format, product * scale);
    }
    for (const std::string op : {"fma.rn", "add", "mul"}) {
      const std::string text = tw::format("{}.{} %d, %a, %b{};", op, format == DType::f16 ? "f16" : "bf16",
                                          op == "fma.rn" ? ", %c" : "");
      const auto got = evaluate(text, 2, 2, columns, "sm_100a");
      for (size_t n = 0; n < got.size(); ++n) {
        const double a = to_double(format, static_cast<uint32_t>(columns[0][n])),
                     b = to_double(format, static_cast<uint32_t>(columns[1][n])),
                     c = to_double(format, static_cast<uint32_t>(columns[2][n]));
        const double exact = op == "fma.rn" ? exact_fma(a, b, c)
                             : op == "add"  ? rounded_to_odd(static_cast<long double>(a) + b)
                                            : a * b;
        const uint32_t wanted = std::isnan(exact) ? 0x7FFF : from_double(format, exact);
        ASSERT_EQ(got[n], wanted) << text << " of " << a << ", " << b << ", " << c;
      }
    }
  }
}

// PTX ISA, "mul": subnormal results flush; an H200 decides before rounding.
TEST(VectorLevel, ProductsAreFlushedWhenTinyBeforeRounding) {
  std::mt19937_64 random(11);
  Columns columns(2, std::vector<uint64_t>(100'000));
  for (size_t n = 0; n < columns[0].size(); ++n) {
    // Exponents that sum to about -126.
    const auto ea = static_cast<uint32_t>(1 + random() % 253);
    const auto eb = static_cast<uint32_t>(
        std::clamp<int64_t>(128 - int64_t{ea} + static_cast<int64_t>(random() % 3) - 1, 1, 254));
    columns[0][n] = (random() & 0x807FFFFF) | ea << 23;
    columns[1][n] = (random() & 0x807FFFFF) | eb << 23;
    if (n % 2) {  // close to 2^k on both sides
      columns[0][n] = (columns[0][n] & 0xFF800000) + (random() % 4);
      columns[1][n] = (columns[1][n] & 0xFF800000) + 0x800000 - 1 - (random() % 4);
    }
  }
  const auto got = evaluate("mul.ftz.f32 %d, %a, %b;", 4, 4, columns, "sm_100a");
  for (size_t n = 0; n < got.size(); ++n) {
    const double a = std::bit_cast<float>(static_cast<uint32_t>(columns[0][n])),
                 b = std::bit_cast<float>(static_cast<uint32_t>(columns[1][n]));
    const double exact = a * b;
    const float wanted = std::fabs(exact) < 0x1p-126 ? std::copysign(0.0f, static_cast<float>(exact))
                                                     : static_cast<float>(exact);
    ASSERT_EQ(got[n], std::bit_cast<uint32_t>(wanted)) << a << " * " << b;
  }
}

}  // namespace
}  // namespace tw::sim::testing
