#include "tilewright/base/formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tilewright/base/error.h"

namespace tw {
namespace {

constexpr DType kNarrow[] = {DType::f16,  DType::bf16, DType::e4m3, DType::e5m2,
                             DType::e2m3, DType::e3m2, DType::e2m1};

// The definition of rounding, by search: all finite non-negative values of a format in increasing order (by
// their defining fields, not by the code under test), and the neighbours of a real number among them.
struct Reference {
  std::vector<double> values;  // values[c] is the value of code c; the finite non-negative codes are 0..max
  double step_beyond = 0;      // what the value after the largest would be, were there one

  Reference(int mantissa_bits, int bias, size_t count) {
    for (size_t c = 0; c <= count; ++c) {
      int e = static_cast<int>(c >> mantissa_bits);
      double m = static_cast<double>(c & ((size_t{1} << mantissa_bits) - 1)) / (1 << mantissa_bits);
      double v = e == 0 ? m * std::pow(2.0, 1 - bias) : (1 + m) * std::pow(2.0, e - bias);
      if (c < count) values.push_back(v);
      else step_beyond = v;
    }
  }

  // Index of the code a positive value rounds to; values.size() means beyond the largest.
  size_t round(double v, Rounding mode, bool negative) const {
    size_t above = std::lower_bound(values.begin(), values.end(), v) - values.begin();
    if (above < values.size() && values[above] == v) return above;
    size_t below = above - 1;
    double high = above < values.size() ? values[above] : step_beyond, low = values[below];
    bool up = false;
    switch (mode) {
      case Rounding::rn: up = v - low > high - v || (v - low == high - v && below % 2 == 1); break;
      case Rounding::rna: up = v - low >= high - v; break;
      case Rounding::rz: break;
      case Rounding::rm: up = negative; break;
      case Rounding::rp: up = !negative; break;
    }
    return up ? above : below;
  }
};

Reference reference(DType t) {
  switch (t) {
    case DType::f16: return {10, 15, 0x7c00};
    case DType::bf16: return {7, 127, 0x7f80};
    case DType::e4m3: return {3, 7, 0x7f};
    case DType::e5m2: return {2, 15, 0x7c};
    case DType::e2m3: return {3, 1, 0x20};
    case DType::e3m2: return {2, 3, 0x20};
    case DType::tf32: return {10, 127, 0xff << 10};
    default: return {1, 1, 8};
  }
}

TEST(Formats, EveryCodeHasTheValueItsFieldsSay) {
  for (DType t : kNarrow) {
    Reference r = reference(t);
    uint32_t sign = 1u << (bits(t) - 1);
    for (uint32_t c = 0; c < r.values.size(); ++c) {
      ASSERT_EQ(to_double(t, c), r.values[c]) << name(t) << " " << c;
      ASSERT_EQ(to_double(t, c | sign), -r.values[c]) << name(t) << " " << c;
      ASSERT_EQ(to_float(t, c), static_cast<float>(r.values[c]));
      ASSERT_EQ(std::signbit(to_float(t, c | sign)), true);
    }
  }
}

TEST(Formats, SpecialCodes) {
  EXPECT_EQ(to_float(DType::f16, 0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float(DType::e5m2, 0x7c), std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float(DType::e4m3, 0x7e), 448.0f);
  EXPECT_EQ(to_float(DType::e5m2, 0x7b), 57344.0f);
  EXPECT_EQ(to_float(DType::e2m3, 0x1f), 7.5f);
  EXPECT_EQ(to_float(DType::e3m2, 0x1f), 28.0f);
  EXPECT_EQ(to_float(DType::e2m1, 0x7), 6.0f);
  for (auto [t, c] : {std::pair{DType::f16, 0x7c01},
                      {DType::f16, 0xffff},
                      {DType::bf16, 0x7f81},
                      {DType::e4m3, 0x7f},
                      {DType::e4m3, 0xff},
                      {DType::e5m2, 0x7d},
                      {DType::e5m2, 0xfe},
                      {DType::e8m0, 0xff}}) {
    EXPECT_TRUE(std::isnan(to_double(t, c))) << name(t) << " " << c;
    EXPECT_TRUE(std::isnan(to_float(t, c))) << name(t) << " " << c;
  }
  EXPECT_EQ(to_double(DType::e8m0, 0), 0x1p-127);
  EXPECT_EQ(to_double(DType::e8m0, 127), 1.0);
  EXPECT_EQ(to_double(DType::e8m0, 0xfe), 0x1p127);
  EXPECT_EQ(to_float(DType::tf32, 0x3f801fff), 1.0f);  // the 13 lowest bits are not read
}

// Values at, just beside and between all pairs of neighbours of a format: every tie and every interval.
std::vector<double> probes(const Reference& r) {
  std::vector<double> all;
  for (size_t c = 0; c < r.values.size(); ++c) {
    double low = r.values[c], high = c + 1 < r.values.size() ? r.values[c + 1] : r.step_beyond,
           mid = (low + high) / 2;
    for (double v : {low, std::nextafter(low, high), low + (high - low) / 8, std::nextafter(mid, low), mid,
                     std::nextafter(mid, high), std::nextafter(high, low)}) {
      all.push_back(v);
    }
  }
  return all;
}

TEST(Formats, EveryTieAndIntervalRoundsByDefinition) {
  for (DType t : {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2,
                  DType::e2m1}) {
    Reference r = reference(t);
    int low_bits = t == DType::tf32 ? 13 : 0;
    uint32_t sign = t == DType::tf32 ? 0x80000000u : 1u << (bits(t) - 1);
    uint32_t max = static_cast<uint32_t>(r.values.size() - 1) << low_bits;
    bool has_inf = t == DType::f16 || t == DType::bf16 || t == DType::e5m2 || t == DType::tf32;
    uint32_t beyond = has_inf ? max + (1u << low_bits) : t == DType::e4m3 ? 0x7f : max;
    for (double v : probes(r)) {
      if (v == 0) continue;
      for (bool negative : {false, true}) {
        for (Rounding mode : {Rounding::rn, Rounding::rna, Rounding::rz, Rounding::rm, Rounding::rp}) {
          size_t index = r.round(v, mode, negative);
          bool over = index == r.values.size();
          uint32_t plain = (over ? beyond : static_cast<uint32_t>(index) << low_bits) | (negative ? sign : 0);
          uint32_t clamped = (over ? max : static_cast<uint32_t>(index) << low_bits) | (negative ? sign : 0);
          double x = negative ? -v : v;
          ASSERT_EQ(from_double(t, x, mode), plain) << name(t) << " " << x << " mode " << int(mode);
          ASSERT_EQ(from_double(t, x, mode, true), clamped) << name(t) << " " << x << " mode " << int(mode);
        }
      }
    }
  }
}

TEST(Formats, FarOutsideTheRange) {
  EXPECT_EQ(from_double(DType::f16, 1e300), 0x7c00u);
  EXPECT_EQ(from_double(DType::f16, 1e300, Rounding::rz), 0x7bffu);
  EXPECT_EQ(from_double(DType::f16, -1e300, Rounding::rp), 0xfbffu);
  EXPECT_EQ(from_double(DType::f16, -1e300, Rounding::rm), 0xfc00u);
  EXPECT_EQ(from_double(DType::f16, 1e-300), 0u);
  EXPECT_EQ(from_double(DType::f16, -1e-300), 0x8000u);
  EXPECT_EQ(from_double(DType::f16, 1e-300, Rounding::rp), 1u);
  EXPECT_EQ(from_double(DType::f16, -1e-300, Rounding::rm), 0x8001u);
  EXPECT_EQ(from_double(DType::f32, 1e300), 0x7f800000u);
  EXPECT_EQ(from_double(DType::f32, 1e300, Rounding::rm), 0x7f7fffffu);
  EXPECT_EQ(from_float(DType::e4m3, INFINITY), 0x7fu);
  EXPECT_EQ(from_float(DType::e4m3, -INFINITY, Rounding::rn, true), 0xfeu);
  EXPECT_EQ(from_float(DType::e5m2, -INFINITY), 0xfcu);
  EXPECT_EQ(from_float(DType::e2m1, INFINITY), 7u);
}

// "cvt": with .satfinite NaN stays NaN, but becomes positive MAX_NORM in the formats that have none.
TEST(Formats, NaN) {
  EXPECT_EQ(from_float(DType::f16, -NAN), 0x7fffu);
  EXPECT_EQ(from_float(DType::bf16, NAN, Rounding::rz, true), 0x7fffu);
  EXPECT_EQ(from_float(DType::e4m3, NAN, Rounding::rn, true), 0x7fu);
  EXPECT_EQ(from_float(DType::e5m2, NAN, Rounding::rn, true), 0x7fu);
  EXPECT_EQ(from_float(DType::e2m3, -NAN), 0x1fu);
  EXPECT_EQ(from_float(DType::e3m2, NAN), 0x1fu);
  EXPECT_EQ(from_float(DType::e2m1, -NAN), 0x7u);
  EXPECT_EQ(from_float(DType::e8m0, NAN, Rounding::rz, true), 0xffu);
}

TEST(Formats, E8m0TakesTheMagnitudeAndRoundsToPowersOfTwo) {
  for (int e = -126; e <= 127; ++e) {
    double v = std::ldexp(1.0, e);
    uint32_t code = static_cast<uint32_t>(e + 127);
    EXPECT_EQ(from_double(DType::e8m0, v, Rounding::rz), code);
    EXPECT_EQ(from_double(DType::e8m0, -v, Rounding::rp), code);
    EXPECT_EQ(from_double(DType::e8m0, std::nextafter(v, 0), Rounding::rz), code - 1);
    EXPECT_EQ(from_double(DType::e8m0, std::nextafter(v, 0), Rounding::rp), code);
  }
  EXPECT_EQ(from_double(DType::e8m0, 0, Rounding::rp), 0u);
  EXPECT_EQ(from_double(DType::e8m0, 0x1p-149, Rounding::rp), 0u);
  EXPECT_EQ(from_double(DType::e8m0, 0x1.8p127, Rounding::rz), 0xfeu);
  EXPECT_EQ(from_double(DType::e8m0, 0x1.8p127, Rounding::rp, true), 0xfeu);
  EXPECT_EQ(from_double(DType::e8m0, INFINITY, Rounding::rz, true), 0xfeu);
  EXPECT_THROW(from_double(DType::e8m0, 1, Rounding::rn), Error);
}

// "cvt", .rs: the carry out of adding the random bits to the discarded ones decides.
TEST(Formats, StochasticRoundingCarriesExactlyAsTheIntegerSum) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    uint32_t u = random(), bits16 = random() & 0xffff;
    if ((u >> 23 & 0xff) < 1 || (u >> 23 & 0xff) > 253) continue;
    EXPECT_EQ(from_float_stochastic(DType::bf16, std::bit_cast<float>(u), bits16, 16), (u + bits16) >> 16);
    uint32_t h = 0x38800000 + (random() % 0x0e000000), bits13 = random() & 0x1fff;
    EXPECT_EQ(from_float_stochastic(DType::f16, std::bit_cast<float>(h), bits13, 13),
              (h + bits13 - (uint32_t{112} << 23)) >> 13);
  }
}

TEST(Formats, BulkConversionsEqualTheScalarOnes) {
  std::vector<float> in;
  std::mt19937 random(11);
  for (int i = 0; i < 300000; ++i) in.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (DType t : kNarrow) {
    for (double v : probes(reference(t))) {
      in.push_back(static_cast<float>(v));
      in.push_back(-static_cast<float>(v));
    }
  }
  for (float v :
       {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 0x1p-149f, 65519.99f, 65520.0f, 464.0f, 465.0f})
    in.push_back(v);
  for (DType t : kNarrow) {
    for (bool satfinite : {false, true}) {
      std::vector<uint8_t> codes(in.size() * 2 + 1);
      from_float(t, in.data(), codes.data() + 1, in.size(), satfinite);  // unaligned on purpose
      for (size_t i = 0; i < in.size(); ++i) {
        uint32_t code = 0;
        std::memcpy(&code, codes.data() + 1 + i * code_bytes(t), code_bytes(t));
        ASSERT_EQ(code, from_float(t, in[i], Rounding::rn, satfinite))
            << name(t) << " " << in[i] << " " << satfinite;
      }
    }
  }
}

TEST(Formats, BulkWideningEqualsTheScalarOne) {
  for (DType t : {DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::e8m0, DType::e2m3, DType::e3m2,
                  DType::e2m1}) {
    size_t n = size_t{1} << bits(t);
    std::vector<uint16_t> wide(n);
    std::vector<uint8_t> bytes(n);
    for (size_t i = 0; i < n; ++i) wide[i] = static_cast<uint16_t>(i), bytes[i] = static_cast<uint8_t>(i);
    std::vector<float> out(n);
    to_float(t, code_bytes(t) == 2 ? static_cast<const void*>(wide.data()) : bytes.data(), out.data(), n);
    for (uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(to_float(t, i)))
          << name(t) << " " << i;
      if (std::isnan(out[i])) continue;
      ASSERT_EQ(double{out[i]}, to_double(t, i)) << name(t) << " " << i;
    }
  }
}

TEST(Formats, IntegersConvertByValueAndSaturate) {
  const float in[] = {-3.5f, 2.5f, 300.0f, -300.0f, NAN, 1e10f};
  int8_t i8[6];
  uint8_t u8[6];
  int32_t i32[6];
  from_float(DType::i8, in, i8, 6);
  from_float(DType::u8, in, u8, 6);
  from_float(DType::i32, in, i32, 6);
  EXPECT_EQ(std::vector<int>(i8, i8 + 6), (std::vector<int>{-4, 2, 127, -128, 0, 127}));
  EXPECT_EQ(std::vector<int>(u8, u8 + 6), (std::vector<int>{0, 2, 255, 0, 0, 255}));
  EXPECT_EQ(std::vector<int>(i32, i32 + 6),
            (std::vector<int>{-4, 2, 300, -300, 0, std::numeric_limits<int>::max()}));
  float back[6];
  to_float(DType::i8, i8, back, 6);
  EXPECT_EQ(back[3], -128.0f);
}

TEST(Formats, PackedCodesFillTheirBitsFromTheLowest) {
  const uint8_t four[] = {0x1, 0x2, 0x3};
  uint8_t packed[4] = {0xff, 0xff, 0xff, 0xff};
  pack_codes(DType::e2m1, four, packed, 3);
  EXPECT_EQ(packed[0], 0x21);
  EXPECT_EQ(packed[1], 0x03);
  const uint8_t six[] = {0x3f, 0x00, 0x2a, 0x15, 0x01};
  pack_codes(DType::e3m2, six, packed, 5);  // 30 bits: 1 | 010101 | 101010 | 000000 | 111111
  uint32_t word = packed[0] | packed[1] << 8 | packed[2] << 16 | packed[3] << 24;
  EXPECT_EQ(word, 0x3fu | 0x2au << 12 | 0x15u << 18 | 1u << 24);
  uint8_t codes[5];
  unpack_codes(DType::e3m2, packed, codes, 5);
  EXPECT_EQ(std::vector<int>(codes, codes + 5), (std::vector<int>{0x3f, 0, 0x2a, 0x15, 1}));
}

}  // namespace
}  // namespace tw
