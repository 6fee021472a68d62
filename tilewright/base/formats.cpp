#include "tilewright/base/formats.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/base/error.h"

namespace tw {
namespace {

constexpr FloatFormat kF16{5, 10, 15, Specials::ieee, true, 0x7bff, 0x7fff, 0x8000, 0};
constexpr FloatFormat kBf16{8, 7, 127, Specials::ieee, true, 0x7f7f, 0x7fff, 0x8000, 0};
constexpr FloatFormat kTf32{8, 10, 127, Specials::ieee, true, 0x7f7fe000, 0x7fffffff, 0x80000000, 13};
constexpr FloatFormat kF32{8, 23, 127, Specials::ieee, true, 0x7f7fffff, 0x7fffffff, 0x80000000, 0};
constexpr FloatFormat kE4m3{4, 3, 7, Specials::nan_only, true, 0x7e, 0x7f, 0x80, 0};
constexpr FloatFormat kE5m2{5, 2, 15, Specials::ieee, true, 0x7b, 0x7f, 0x80, 0};
constexpr FloatFormat kE8m0{8, 0, 127, Specials::nan_only, false, 0xfe, 0xff, 0, 0};
constexpr FloatFormat kE2m3{2, 3, 1, Specials::none, true, 0x1f, 0, 0x20, 0};
constexpr FloatFormat kE3m2{3, 2, 3, Specials::none, true, 0x1f, 0, 0x20, 0};
constexpr FloatFormat kE2m1{2, 1, 1, Specials::none, true, 0x07, 0, 0x08, 0};

constexpr uint32_t kCanonicalNan = 0x7fffffff;

// Whether a magnitude with discarded bits `rest` (of which the half-way point is `half`) moves away from
// zero.
bool rounds_away(Rounding rounding, bool negative, bool odd, uint64_t rest, uint64_t half) {
  switch (rounding) {
    case Rounding::rn: return rest > half || (rest == half && odd);
    case Rounding::rna: return rest >= half;
    case Rounding::rz: return false;
    case Rounding::rm: return negative && rest != 0;
    case Rounding::rp: return !negative && rest != 0;
  }
  return false;
}

// A finite non-zero magnitude as mantissa * 2^exponent with the mantissa's top bit at position 52.
struct Magnitude {
  uint64_t mantissa;
  int exponent;
};

Magnitude magnitude(double value) {
  int exponent = 0;
  double fraction = std::frexp(std::fabs(value), &exponent);
  return {static_cast<uint64_t>(std::ldexp(fraction, 53)), exponent - 53};
}

// Splits a magnitude at the format's last place: `kept` whole units, and what is discarded scaled to 64 bits.
struct Split {
  uint64_t kept;  // in units of the last place at `exponent`
  int exponent;   // unbiased exponent of the leading digit, not below the smallest normal one
  uint64_t rest;  // discarded bits as a fraction of one unit, times 2^63, sticky in the lowest bit
};

Split split(const FloatFormat& f, Magnitude m) {
  int lead = m.exponent + 52;
  int exponent = lead < 1 - f.bias ? 1 - f.bias : lead;
  int shift = exponent - f.mantissa_bits - m.exponent;  // >= 52 - mantissa_bits > 0
  if (shift > 63) return {0, exponent, shift < 127 ? m.mantissa >> (shift - 63) | 1 : 1};
  uint64_t rest = m.mantissa & ((uint64_t{1} << shift) - 1);
  return {m.mantissa >> shift, exponent, rest << (63 - shift)};
}

uint32_t overflow_code(const FloatFormat& f, bool negative, Rounding rounding, bool satfinite,
                       bool infinite) {
  bool stops = !infinite && (rounding == Rounding::rz || (rounding == Rounding::rm && !negative) ||
                             (rounding == Rounding::rp && negative));
  uint32_t code = f.max_norm;
  if (!satfinite && !stops) {
    if (f.specials == Specials::ieee) code = f.max_norm + (1u << f.low_bits);
    if (f.specials == Specials::nan_only) code = f.nan;
  }
  return code | (negative ? f.sign : 0);
}

uint32_t nan_code(const FloatFormat& f) { return f.specials == Specials::none ? f.max_norm : f.nan; }

// The code of `kept` units in the binade of `exponent`; a carry into the next binade falls out of the
// addition.
uint32_t assemble(const FloatFormat& f, const Split& s, bool away) {
  uint64_t kept = s.kept + (away ? 1 : 0);
  uint64_t biased = static_cast<uint64_t>(s.exponent + f.bias - 1);
  return static_cast<uint32_t>(((biased << f.mantissa_bits) + kept) << f.low_bits);
}

uint32_t to_e8m0(double value, Rounding rounding, bool satfinite) {
  require(rounding == Rounding::rz || rounding == Rounding::rp,
          "e8m0 rounds only toward zero or plus infinity");
  if (std::isnan(value)) return kE8m0.nan;
  value = std::fabs(value);
  if (value <= 0x1p-127) return 0;
  bool beyond = rounding == Rounding::rp ? value > 0x1p127 : value >= 0x1p128;
  if (beyond) return satfinite ? kE8m0.max_norm : kE8m0.nan;
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
  bool exact = fraction == 0.5;
  return static_cast<uint32_t>(exponent - 1 + 127 + (rounding == Rounding::rp && !exact ? 1 : 0));
}

// Zero, NaN, infinity; true if `code` is decided.
bool special_code(const FloatFormat& f, double value, bool satfinite, uint32_t& code) {
  bool negative = std::signbit(value);
  if (std::isnan(value)) code = nan_code(f);
  else if (std::isinf(value)) code = overflow_code(f, negative, Rounding::rn, satfinite, true);
  else if (value == 0) code = negative ? f.sign : 0;
  else return false;
  return true;
}

// Round-to-nearest-even into a narrow format, written so that a compiler vectorises it: every step is a
// select. Subnormals use the classic addition of a power of two whose last place is the format's smallest
// step.
template <const FloatFormat& F, class Code>
inline Code narrow(float value, bool satfinite) {
  constexpr int shift = 23 - F.mantissa_bits;
  constexpr uint32_t rebias = static_cast<uint32_t>(127 - F.bias) << 23;
  constexpr uint32_t smallest_normal = static_cast<uint32_t>(127 + 1 - F.bias) << 23;
  constexpr uint32_t magic = static_cast<uint32_t>(127 + 23 + 1 - F.bias - F.mantissa_bits) << 23;
  constexpr uint32_t infinity = F.specials == Specials::ieee       ? F.max_norm + 1
                                : F.specials == Specials::nan_only ? F.nan
                                                                   : F.max_norm;
  uint32_t u = std::bit_cast<uint32_t>(value), a = u & 0x7fffffff;
  uint32_t normal = (a - rebias + (1u << (shift - 1)) - 1 + (a >> shift & 1)) >> shift;
  uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(magic)) - magic;
  uint32_t code = a < smallest_normal ? subnormal : normal;
  uint32_t limit = satfinite ? F.max_norm : infinity;
  code = a >= smallest_normal && (normal > F.max_norm || a >= 0x7f800000) ? limit : code;
  code |= (u >> 31) * F.sign;
  code = a > 0x7f800000 ? (F.specials == Specials::none ? F.max_norm : F.nan) : code;
  return static_cast<Code>(code);
}

template <const FloatFormat& F, class Code>
void narrow_all(const float* values, void* codes, size_t n, bool satfinite) {
  auto* out = static_cast<unsigned char*>(codes);
  for (size_t i = 0; i < n; ++i) {
    Code code = narrow<F, Code>(values[i], satfinite);
    std::memcpy(out + i * sizeof(Code), &code, sizeof(Code));
  }
}

inline float widen_f16(uint16_t h) {
  uint32_t body = static_cast<uint32_t>(h & 0x7fff) << 13;
  uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(body) * 0x1p112f);
  uint32_t special = (h & 0x3ff) != 0 ? kCanonicalNan : 0x7f800000u | static_cast<uint32_t>(h & 0x8000) << 16;
  uint32_t bits = finite | static_cast<uint32_t>(h & 0x8000) << 16;
  return std::bit_cast<float>((h & 0x7c00) == 0x7c00 ? special : bits);
}

// Values of all codes of an 8-bit (or narrower) format; codes beyond the format's bits ignore the excess.
struct ByteTable {
  float values[256];
  explicit ByteTable(DType t) {
    uint32_t mask = (1u << bits(t)) - 1;
    for (uint32_t c = 0; c < 256; ++c) values[c] = static_cast<float>(to_double(t, c & mask));
    for (float& v : values) v = std::isnan(v) ? std::bit_cast<float>(kCanonicalNan) : v;
  }
};

const ByteTable& byte_table(DType t) {
  static const ByteTable e4m3(DType::e4m3), e5m2(DType::e5m2), e8m0(DType::e8m0), e2m3(DType::e2m3),
      e3m2(DType::e3m2), e2m1(DType::e2m1);
  switch (t) {
    case DType::e4m3: return e4m3;
    case DType::e5m2: return e5m2;
    case DType::e8m0: return e8m0;
    case DType::e2m3: return e2m3;
    case DType::e3m2: return e3m2;
    default: return e2m1;
  }
}

template <class T>
T load(const void* base, size_t i) {
  T v;
  std::memcpy(&v, static_cast<const unsigned char*>(base) + i * sizeof(T), sizeof(T));
  return v;
}

template <class T>
void integers_to_float(const void* codes, float* values, size_t n) {
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(load<T>(codes, i));
}

template <class T>
void float_to_integers(const float* values, void* codes, size_t n) {
  constexpr double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  for (size_t i = 0; i < n; ++i) {
    double v = std::isnan(values[i]) ? 0 : std::nearbyint(double{values[i]});
    T code = static_cast<T>(v < low ? low : v > high ? high : v);
    std::memcpy(static_cast<unsigned char*>(codes) + i * sizeof(T), &code, sizeof(T));
  }
}

}  // namespace

const FloatFormat& float_format(DType t) {
  switch (t) {
    case DType::f16: return kF16;
    case DType::bf16: return kBf16;
    case DType::tf32: return kTf32;
    case DType::f32: return kF32;
    case DType::e4m3: return kE4m3;
    case DType::e5m2: return kE5m2;
    case DType::e8m0: return kE8m0;
    case DType::e2m3: return kE2m3;
    case DType::e3m2: return kE3m2;
    case DType::e2m1: return kE2m1;
    default: internal_error({}, "{} is not a floating-point format of at most 32 bits", name(t));
  }
}

double to_double(DType t, uint32_t code) {
  const FloatFormat& f = float_format(t);
  if (t == DType::e8m0)
    return code == f.nan ? std::nan("") : std::ldexp(1.0, static_cast<int>(code) - f.bias);
  uint32_t mantissa_mask = (1u << f.mantissa_bits) - 1, exponent_mask = (1u << f.exponent_bits) - 1;
  uint32_t mantissa = code >> f.low_bits & mantissa_mask;
  uint32_t exponent = code >> (f.low_bits + f.mantissa_bits) & exponent_mask;
  double sign = (code & f.sign) != 0 ? -1.0 : 1.0;
  bool top = exponent == exponent_mask;
  if (f.specials == Specials::ieee && top) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (f.specials == Specials::nan_only && top && mantissa == mantissa_mask) return std::nan("");
  int e = exponent == 0 ? 1 : static_cast<int>(exponent);
  double whole = static_cast<double>(mantissa + (exponent == 0 ? 0 : mantissa_mask + 1));
  return sign * std::ldexp(whole, e - f.bias - f.mantissa_bits);
}

float to_float(DType t, uint32_t code) {
  switch (t) {
    case DType::f32: return std::bit_cast<float>(code);
    case DType::tf32: return std::bit_cast<float>(code & 0xffffe000);
    case DType::bf16: return std::bit_cast<float>(code << 16);
    case DType::f16: return widen_f16(static_cast<uint16_t>(code));
    default: break;
  }
  float_format(t);
  return byte_table(t).values[code & 0xff];
}

uint32_t from_double(DType t, double value, Rounding rounding, bool satfinite) {
  if (t == DType::e8m0) return to_e8m0(value, rounding, satfinite);
  const FloatFormat& f = float_format(t);
  uint32_t code = 0;
  if (special_code(f, value, satfinite, code)) return code;
  bool negative = std::signbit(value);
  Split s = split(f, magnitude(value));
  if (s.exponent > 1 << f.exponent_bits) return overflow_code(f, negative, rounding, satfinite, false);
  code = assemble(f, s, rounds_away(rounding, negative, (s.kept & 1) != 0, s.rest, uint64_t{1} << 62));
  if (code > f.max_norm) return overflow_code(f, negative, rounding, satfinite, false);
  return code | (negative ? f.sign : 0);
}

uint32_t from_float_stochastic(DType t, float value, uint32_t random, int count, bool satfinite) {
  require(t != DType::e8m0 && t != DType::f32, "stochastic rounding needs a narrower signed format");
  const FloatFormat& f = float_format(t);
  uint32_t code = 0;
  if (special_code(f, value, satfinite, code)) return code;
  bool negative = std::signbit(value);
  Split s = split(f, magnitude(value));
  if (s.exponent > 1 << f.exponent_bits) return overflow_code(f, negative, Rounding::rn, satfinite, false);
  uint64_t fraction = static_cast<uint64_t>(random & ((1u << count) - 1)) << (63 - count);
  code = assemble(f, s, (s.rest + fraction) >> 63 != 0);
  if (code > f.max_norm) return overflow_code(f, negative, Rounding::rn, satfinite, false);
  return code | (negative ? f.sign : 0);
}

int code_bytes(DType t) { return bits(t) <= 8 ? 1 : bits(t) / 8; }

void to_float(DType t, const void* codes, float* values, size_t n) {
  switch (t) {
    case DType::f32: std::memcpy(values, codes, n * 4); return;
    case DType::tf32:
      for (size_t i = 0; i < n; ++i) values[i] = std::bit_cast<float>(load<uint32_t>(codes, i) & 0xffffe000);
      return;
    case DType::f16:
      for (size_t i = 0; i < n; ++i) values[i] = widen_f16(load<uint16_t>(codes, i));
      return;
    case DType::bf16:
      for (size_t i = 0; i < n; ++i) values[i] = bf16_to_float(load<uint16_t>(codes, i));
      return;
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0:
    case DType::e2m3:
    case DType::e3m2:
    case DType::e2m1: {
      const float* table = byte_table(t).values;
      for (size_t i = 0; i < n; ++i) values[i] = table[load<uint8_t>(codes, i)];
      return;
    }
    case DType::u8: return integers_to_float<uint8_t>(codes, values, n);
    case DType::i8: return integers_to_float<int8_t>(codes, values, n);
    case DType::u16: return integers_to_float<uint16_t>(codes, values, n);
    case DType::i16: return integers_to_float<int16_t>(codes, values, n);
    case DType::u32: return integers_to_float<uint32_t>(codes, values, n);
    case DType::i32: return integers_to_float<int32_t>(codes, values, n);
    default: internal_error({}, "no bulk conversion from {} to f32", name(t));
  }
}

void from_float(DType t, const float* values, void* codes, size_t n, bool satfinite) {
  switch (t) {
    case DType::f32: std::memcpy(codes, values, n * 4); return;
    case DType::tf32:
      for (size_t i = 0; i < n; ++i) {
        uint32_t code = from_float(t, values[i], Rounding::rn, satfinite);
        std::memcpy(static_cast<unsigned char*>(codes) + i * 4, &code, 4);
      }
      return;
    case DType::f16: return narrow_all<kF16, uint16_t>(values, codes, n, satfinite);
    case DType::bf16: return narrow_all<kBf16, uint16_t>(values, codes, n, satfinite);
    case DType::e4m3: return narrow_all<kE4m3, uint8_t>(values, codes, n, satfinite);
    case DType::e5m2: return narrow_all<kE5m2, uint8_t>(values, codes, n, satfinite);
    case DType::e2m3: return narrow_all<kE2m3, uint8_t>(values, codes, n, satfinite);
    case DType::e3m2: return narrow_all<kE3m2, uint8_t>(values, codes, n, satfinite);
    case DType::e2m1: return narrow_all<kE2m1, uint8_t>(values, codes, n, satfinite);
    case DType::u8: return float_to_integers<uint8_t>(values, codes, n);
    case DType::i8: return float_to_integers<int8_t>(values, codes, n);
    case DType::u16: return float_to_integers<uint16_t>(values, codes, n);
    case DType::i16: return float_to_integers<int16_t>(values, codes, n);
    case DType::u32: return float_to_integers<uint32_t>(values, codes, n);
    case DType::i32: return float_to_integers<int32_t>(values, codes, n);
    default: internal_error({}, "no bulk conversion from f32 to {}", name(t));
  }
}

void pack_codes(DType t, const uint8_t* codes, void* packed, size_t n) {
  const size_t width = static_cast<size_t>(bits(t));
  require(width <= 8, "only codes of at most 8 bits are packed");
  auto* out = static_cast<uint8_t*>(packed);
  std::memset(out, 0, (n * width + 7) / 8);
  for (size_t i = 0; i < n; ++i) {
    size_t at = i * width;
    uint32_t code = static_cast<uint32_t>(codes[i] & ((1u << width) - 1)) << at % 8;
    out[at / 8] |= static_cast<uint8_t>(code);
    if (at % 8 + width > 8) out[at / 8 + 1] |= static_cast<uint8_t>(code >> 8);
  }
}

void unpack_codes(DType t, const void* packed, uint8_t* codes, size_t n) {
  const size_t width = static_cast<size_t>(bits(t));
  require(width <= 8, "only codes of at most 8 bits are packed");
  const auto* in = static_cast<const uint8_t*>(packed);
  for (size_t i = 0; i < n; ++i) {
    size_t at = i * width;
    uint32_t word = in[at / 8];
    if (at % 8 + width > 8) word |= static_cast<uint32_t>(in[at / 8 + 1]) << 8;
    codes[i] = static_cast<uint8_t>(word >> at % 8 & ((1u << width) - 1));
  }
}

}  // namespace tw
