#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"
#include "tilewright/sim/vector_level.h"

// PTX ISA, "cvt" and "cvt.pack", on random values and edges.
namespace tw::sim::testing {
namespace {

using u64 = uint64_t;

float f32(u64 v) { return std::bit_cast<float>(static_cast<uint32_t>(v)); }
u64 bits(float v) { return std::bit_cast<uint32_t>(v); }

// Integers of every size, near the ends of every narrower type.
std::vector<u64> integers() {
  std::vector<u64> v;
  for (const int width : {0, 4, 7, 8, 15, 16, 31, 32, 63})
    for (const int64_t offset : {-1, 0, 1}) {
      v.push_back((u64{1} << width) + static_cast<u64>(offset));
      v.push_back(u64{0} - (u64{1} << width) + static_cast<u64>(offset));
    }
  std::mt19937_64 random(1);
  for (int n = 0; n < 2000; ++n) v.push_back(random() >> (random() % 64));
  return v;
}

// A number of a PTX integer type.
struct Integer {
  const char* name;
  int width;
  bool is_signed;
  int64_t low() const { return is_signed ? std::numeric_limits<int64_t>::min() >> (64 - width) : 0; }
  // 2^63 and more do not occur below: u64 never converts to itself with .sat.
  u64 high() const { return ~u64{0} >> (64 - width + (is_signed ? 1 : 0)); }
  u64 extended(u64 v) const {
    const int shift = 64 - width;
    return is_signed ? static_cast<u64>(static_cast<int64_t>(v << shift) >> shift) : v << shift >> shift;
  }
};
constexpr Integer kIntegers[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                 {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                 {"u64", 64, false}, {"s64", 64, true}};

int register_bytes(const Integer& t) { return std::max(t.width, 16) / 8; }

TEST(Convert, IntegersExtendTruncateAndSaturate) {
  const auto values = integers();
  for (const Integer& from : kIntegers) {
    for (const Integer& to : kIntegers) {
      for (const bool sat : {false, true}) {
        const int in = register_bytes(from), out = register_bytes(to);
        std::vector<u64> column;
        for (const u64 v : values) column.push_back(in == 8 ? v : v & ((u64{1} << (8 * in)) - 1));
        const std::string text = tw::format("cvt{}.{}.{} %d, %a;", sat ? ".sat" : "", to.name, from.name);
        const auto got = evaluate(text, out, in, {column});
        for (size_t n = 0; n < column.size(); ++n) {
          u64 v = from.extended(column[n]);
          if (sat) {
            const bool negative = from.is_signed && static_cast<int64_t>(v) < 0;
            if (negative) v = static_cast<u64>(std::max(static_cast<int64_t>(v), to.low()));
            else v = std::min(v, to.high());
          }
          const u64 wanted = to.extended(v) & (~u64{0} >> (64 - 8 * out));
          ASSERT_EQ(got[n], wanted) << text << " of " << std::hex << column[n];
        }
      }
    }
  }
}

// "The destination register may be wider than the type": the result is extended to it.
TEST(Convert, WiderRegistersHoldTheExtendedResult) {
  EXPECT_EQ(evaluate("cvt.s8.s32 %d, %a;", 4, 4, {{0x180}})[0], 0xFFFFFF80u);
  EXPECT_EQ(evaluate("cvt.u8.s32 %d, %a;", 4, 4, {{0x180}})[0], 0x80u);
  EXPECT_EQ(evaluate("cvt.sat.s8.s32 %d, %a;", 4, 4, {{0x180}})[0], 0x7Fu);
  EXPECT_EQ(evaluate("cvt.s16.s32 %d, %a;", 8, 4, {{0x8001}})[0], 0xFFFFFFFFFFFF8001u);
  EXPECT_EQ(evaluate("cvt.rni.s16.f32 %d, %a;", 4, 4, {{bits(-7.5f)}})[0], 0xFFFFFFF8u);
}

std::vector<u64> floats(size_t n) {
  std::vector<u64> v;
  for (const float edge : {0.0f,          0.5f,
                           1.0f,          1.5f,
                           2.5f,          127.5f,
                           128.0f,        255.5f,
                           256.0f,        32767.5f,
                           32768.0f,      65535.5f,
                           65536.0f,      2147483520.0f,
                           2147483648.0f, 4294967040.0f,
                           4294967296.0f, 1e20f,
                           0x1p-130f,     0.49999997f,
                           8388609.0f,    std::numeric_limits<float>::infinity()}) {
    v.push_back(bits(edge));
    v.push_back(bits(-edge));
  }
  v.push_back(0x7FC00000);
  v.push_back(0xFF812345);
  std::mt19937_64 random(2);
  while (v.size() < n)
    v.push_back(
        bits(static_cast<float>(std::ldexp(static_cast<double>(static_cast<int64_t>(random())) * 0x1p-63,
                                           static_cast<int>(random() % 40) - 4))));
  return v;
}

double rounded(double v, std::string_view how) {
  if (how == "rni") return std::nearbyint(v);
  if (how == "rzi") return std::trunc(v);
  return how == "rmi" ? std::floor(v) : std::ceil(v);
}

// "Float-to-integer": clamped to the range, NaN to 0; with .ftz a subnormal counts as zero.
TEST(Convert, FloatsToIntegersRoundAndClamp) {
  const auto column = floats(4000);
  for (const Integer& to : kIntegers) {
    if (to.width == 64) continue;
    for (const char* how : {"rni", "rzi", "rmi", "rpi"}) {
      for (const char* ftz : {"", ".ftz"}) {
        const int out = register_bytes(to);
        const std::string text = tw::format("cvt.{}{}.{}.f32 %d, %a;", how, ftz, to.name);
        const auto got = evaluate(text, out, 4, {column});
        for (size_t n = 0; n < column.size(); ++n) {
          const float f = f32(column[n]);
          const bool zero = ftz[0] && std::fpclassify(f) == FP_SUBNORMAL;
          double v = zero ? 0.0 : rounded(f, how);
          v = std::min(std::max(v, static_cast<double>(to.low())), static_cast<double>(to.high()));
          const u64 wanted = f != f ? 0 : static_cast<u64>(static_cast<int64_t>(v));
          ASSERT_EQ(got[n], wanted & (~u64{0} >> (64 - 8 * out))) << text << " of " << f;
        }
      }
    }
  }
}

TEST(Convert, FloatsToIntegralFloats) {
  const auto column = floats(4000);
  for (const char* how : {"rni", "rzi", "rmi", "rpi"}) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        const std::string text =
            tw::format("cvt.{}{}{}.f32.f32 %d, %a;", how, ftz ? ".ftz" : "", sat ? ".sat" : "");
        const auto got = evaluate(text, 4, 4, {column});
        for (size_t n = 0; n < column.size(); ++n) {
          const float f = f32(column[n]);
          const bool zero = ftz && std::fpclassify(f) == FP_SUBNORMAL;
          auto v = static_cast<float>(zero ? std::copysign(0.0, double{f}) : rounded(f, how));
          if (sat) v = v > 0 ? std::min(v, 1.0f) : 0.0f;
          ASSERT_EQ(got[n], v != v ? 0x7FFFFFFF : bits(v)) << text << " of " << f;
        }
      }
    }
  }
}

TEST(Convert, BetweenSingleAndDouble) {
  const auto column = floats(2000);
  const auto wide = evaluate("cvt.f64.f32 %d, %a;", 8, 4, {column});
  const auto back = evaluate("cvt.rn.f32.f64 %d, %a;", 4, 8, {wide});
  for (size_t n = 0; n < column.size(); ++n) {
    const double d = std::bit_cast<double>(wide[n]);
    if (std::isnan(f32(column[n]))) {
      EXPECT_TRUE(std::isnan(d));
      continue;
    }
    ASSERT_EQ(d, double{f32(column[n])});
    ASSERT_EQ(back[n], column[n]);
  }
  std::mt19937_64 random(5);
  std::vector<u64> doubles(2000);
  for (u64& v : doubles)
    v = std::bit_cast<u64>(std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                                      static_cast<int>(random() % 300) - 210));
  const auto nearest = evaluate("cvt.rn.f32.f64 %d, %a;", 4, 8, {doubles}),
             flushed = evaluate("cvt.rn.ftz.f32.f64 %d, %a;", 4, 8, {doubles});
  for (size_t n = 0; n < doubles.size(); ++n) {
    const auto f = static_cast<float>(std::bit_cast<double>(doubles[n]));
    ASSERT_EQ(nearest[n], bits(f));
    ASSERT_EQ(flushed[n], std::fpclassify(f) == FP_SUBNORMAL ? bits(std::copysign(0.0f, f)) : bits(f));
  }
}

struct Narrow {
  const char* name;
  DType dtype;
  int bits;
};
constexpr Narrow kNarrow[] = {{"e4m3x2", DType::e4m3, 8},
                              {"e5m2x2", DType::e5m2, 8},
                              {"e2m3x2", DType::e2m3, 8},
                              {"e3m2x2", DType::e3m2, 8}};

// Values around every code of a format and around the middles between them, NaN and infinities.
std::vector<u64> near_codes(DType t) {
  std::vector<u64> v;
  for (uint32_t code = 0; code < 256; ++code) {
    const float a = to_float(t, code & (2 * float_format(t).sign - 1));
    const float b = to_float(t, (code + 1) & (2 * float_format(t).sign - 1));
    for (const float x :
         {a, (a + b) / 2, std::nextafter((a + b) / 2, 1e9f), std::nextafter((a + b) / 2, -1e9f)})
      v.push_back(std::isnan(x) ? 0x7FC00000 : bits(x));
  }
  for (const u64 x : floats(200)) v.push_back(x);
  return v;
}

TEST(Convert, NarrowFormatsRoundToNearestAndSaturate) {
  for (const Narrow& to : kNarrow) {
    const auto column = near_codes(to.dtype);
    std::vector<u64> other(column.rbegin(), column.rend());
    for (const bool relu : {false, true}) {
      const std::string text =
          tw::format("cvt.rn.satfinite{}.{}.f32 %d, %a, %b;", relu ? ".relu" : "", to.name);
      const auto got = evaluate("mov.b16 %h0, 0; " + text, 2, 4, {column, other}, "sm_100a");
      for (size_t n = 0; n < column.size(); ++n) {
        const auto code = [&](u64 v) -> u64 {
          const float f = f32(v);
          return from_float(to.dtype, relu && std::signbit(f) && f == f ? 0.0f : f, Rounding::rn, true);
        };
        ASSERT_EQ(got[n], code(column[n]) << 8 | code(other[n]))
            << text << " of " << f32(column[n]) << ", " << f32(other[n]);
      }
    }
  }
}

// Any bits of an f32, by the conversion through doubles.
TEST(Convert, NarrowFormatsOfAnyFloatAtEveryLevel) {
  std::mt19937 random(5);
  std::vector<std::vector<u64>> columns(2, std::vector<u64>(100'000));
  for (auto& column : columns)
    for (u64& v : column) {  // three of four in the range of the formats
      v = random();
      if (v % 4) v = (v & 0x807FFFFF) | (127 - 20 + v % 40) << 23;
    }
  for (const VectorLevel level : {VectorLevel::plain, VectorLevel::avx2, VectorLevel::avx512}) {
    const VectorLevelLimit limit(level);
    for (const Narrow& to : kNarrow) {
      const std::string text = tw::format("cvt.rn.satfinite.{}.f32 %d, %a, %b;", to.name);
      const auto got = evaluate(text, 2, 4, columns, "sm_100a");
      for (size_t n = 0; n < got.size(); ++n) {
        const auto code = [&](u64 v) -> u64 { return from_float(to.dtype, f32(v), Rounding::rn, true); };
        ASSERT_EQ(got[n], code(columns[0][n]) << 8 | code(columns[1][n]))
            << text << " of " << f32(columns[0][n]) << ", " << f32(columns[1][n]);
      }
    }
  }
}

TEST(Convert, FourBitFormatPacksTwoInAByte) {
  const auto column = near_codes(DType::e2m1);
  const std::string text =
      "{ .reg .b8 %e; cvt.rn.satfinite.e2m1x2.f32 %e, %a, %b; cvt.rn.f16x2.e2m1x2 %d, %e; }";
  std::vector<u64> other(column.rbegin(), column.rend());
  const auto got = evaluate(text, 4, 4, {column, other}, "sm_100a");
  for (size_t n = 0; n < column.size(); ++n) {
    const auto half = [&](u64 v) -> u64 {
      return float_to_f16(to_float(DType::e2m1, from_float(DType::e2m1, f32(v), Rounding::rn, true)));
    };
    ASSERT_EQ(got[n], half(column[n]) << 16 | half(other[n])) << f32(column[n]) << ", " << f32(other[n]);
  }
}

TEST(Convert, NarrowFormatsToAndFromHalves) {
  std::vector<u64> codes(65536), halves(65536);
  for (size_t n = 0; n < 65536; ++n) codes[n] = n, halves[n] = n | (n * 40503 & 0xFFFF) << 16;
  for (const Narrow& f : kNarrow) {
    for (const bool relu : {false, true}) {
      const std::string widen = tw::format("cvt.rn{}.f16x2.{} %d, %a;", relu ? ".relu" : "", f.name);
      const auto wide = evaluate(widen, 4, 2, {codes}, "sm_100a");
      const uint32_t mask = 2 * float_format(f.dtype).sign - 1;
      for (size_t n = 0; n < codes.size(); ++n) {
        const auto half = [&](u64 code) -> u64 {
          const float v = to_float(f.dtype, static_cast<uint32_t>(code) & mask);
          return v != v ? 0x7FFF : relu && std::signbit(v) ? 0 : float_to_f16(v);
        };
        ASSERT_EQ(wide[n], half(n >> 8) << 16 | half(n & 0xFF)) << widen << " of " << std::hex << n;
      }
    }
    const std::string narrow = tw::format("cvt.rn.satfinite.{}.f16x2 %d, %a;", f.name);
    if (f.dtype != DType::e4m3 && f.dtype != DType::e5m2) continue;
    const auto got = evaluate(narrow, 2, 4, {halves}, "sm_100a");
    for (size_t n = 0; n < halves.size(); ++n) {
      const auto code = [&](u64 h) -> u64 {
        return from_float(f.dtype, f16_to_float(static_cast<uint16_t>(h)), Rounding::rn, true);
      };
      ASSERT_EQ(got[n], code(halves[n] >> 16) << 8 | code(halves[n]))
          << narrow << " of " << std::hex << halves[n];
    }
  }
}

TEST(Convert, PairsOfHalvesWithReluAndSatfinite) {
  const auto column = floats(4000);
  std::vector<u64> other(column.rbegin(), column.rend());
  for (const DType t : {DType::f16, DType::bf16}) {
    for (const bool relu : {false, true}) {
      for (const bool satfinite : {false, true}) {
        const std::string text = tw::format("cvt.rn{}{}.{}x2.f32 %d, %a, %b;", satfinite ? ".satfinite" : "",
                                            relu ? ".relu" : "", t == DType::f16 ? "f16" : "bf16");
        const auto got = evaluate(text, 4, 4, {column, other}, "sm_100a");
        for (size_t n = 0; n < column.size(); ++n) {
          const auto code = [&](u64 v) -> u64 {
            const float f = f32(v);
            return f != f ? 0x7FFF
                          : from_float(t, relu && std::signbit(f) ? 0.0f : f, Rounding::rn, satfinite);
          };
          ASSERT_EQ(got[n], code(column[n]) << 16 | code(other[n])) << text << " of " << f32(column[n]);
        }
      }
    }
  }
}

// The semantics that "cvt.pack" writes out.
TEST(Convert, PackSaturatesIntoTheLowBits) {
  const auto values = integers();
  std::vector<std::vector<u64>> columns(3);
  for (size_t n = 0; n < values.size(); ++n) {
    columns[0].push_back(values[n] & 0xFFFFFFFF);
    columns[1].push_back(values[values.size() - 1 - n] & 0xFFFFFFFF);
    columns[2].push_back(values[n] * 0x9E3779B1 & 0xFFFFFFFF);
  }
  for (const int size : {2, 4, 8, 16}) {
    for (const bool is_signed : {false, true}) {
      const std::string text = tw::format("cvt.pack.sat.{}{}.s32{} %d, %a, %b{};", is_signed ? 's' : 'u',
                                          size, size == 16 ? "" : ".b32", size == 16 ? "" : ", %c");
      const auto got = evaluate(text, 4, 4, columns);
      const int64_t high = (int64_t{1} << (size - (is_signed ? 1 : 0))) - 1, low = is_signed ? -high - 1 : 0;
      for (size_t n = 0; n < values.size(); ++n) {
        const auto part = [&](u64 v) {
          const int64_t clamped = std::min(std::max(int64_t{static_cast<int32_t>(v)}, low), high);
          return static_cast<u64>(clamped) & ((u64{1} << size) - 1);
        };
        u64 wanted = part(columns[1][n]) | part(columns[0][n]) << size;
        if (size < 16) wanted |= columns[2][n] << (2 * size) & 0xFFFFFFFF;
        ASSERT_EQ(got[n], wanted) << text << std::hex << " of " << columns[0][n] << ", " << columns[1][n];
      }
    }
  }
}

}  // namespace
}  // namespace tw::sim::testing
