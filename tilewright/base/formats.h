#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tilewright/base/dtype.h"

// Number formats as bit-exact conversions. A code is the bit pattern of one element, right-aligned in an
// integer: f16 and bf16 in 16 bits, e4m3, e5m2 and e8m0 in 8, e2m3 and e3m2 in 6, e2m1 in 4, f32 and tf32 in
// 32 (tf32 keeps the place of an f32: its 13 lowest bits carry nothing and are ignored when read). Sources:
// PTX ISA "Alternate Floating-Point Data Formats" and "cvt"; OCP MX v1.0 for the element formats.
namespace tw {

enum class Rounding : uint8_t {
  rn,   // to nearest, ties to even
  rna,  // to nearest, ties away from zero
  rz,   // toward zero
  rm,   // toward minus infinity
  rp,   // toward plus infinity
};

enum class Specials : uint8_t {
  ieee,      // the highest exponent holds infinity and NaN
  nan_only,  // one NaN, no infinity: e4m3 (all ones), e8m0 (0xff)
  none,      // every code is finite: e2m3, e3m2, e2m1
};

struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
  bool has_sign;
  uint32_t max_norm;  // code of the largest finite value
  uint32_t nan;       // code every conversion gives for a NaN (0 where the format has none)
  uint32_t sign;      // the sign's bit in the code
  int low_bits;       // unused bits below the mantissa: 13 in tf32
};
const FloatFormat& float_format(DType t);  // internal error if `t` is not a float of at most 32 bits

// The exact value of a code. A NaN becomes the canonical NaN 0x7fffffff, but bf16 and tf32, whose place in an
// f32 is plain, keep their bits.
double to_double(DType t, uint32_t code);
float to_float(DType t, uint32_t code);

// The nearest code in the given direction. Overflow goes to infinity (or stops at the largest finite value
// when the direction points away from infinity); with `satfinite` always to the largest finite value. Formats
// without infinity give NaN instead, and those without NaN saturate always; there NaN becomes +max_norm
// ("cvt", .satfinite). e8m0 has no sign, zero or subnormals: it takes the magnitude, its smallest value is
// 2^-127, and it rounds only rz and rp (what PTX has).
uint32_t from_double(DType t, double value, Rounding rounding = Rounding::rn, bool satfinite = false);
inline uint32_t from_float(DType t, float value, Rounding rounding = Rounding::rn, bool satfinite = false) {
  return from_double(t, value, rounding, satfinite);
}
// Stochastic rounding ("cvt", .rs): away from zero if adding the `count` random bits to the discarded bits,
// aligned at their top, carries out. f16 takes 13 random bits and bf16 16, one for each bit an f32 loses.
uint32_t from_float_stochastic(DType t, float value, uint32_t random, int count, bool satfinite = false);

// Short names for the two formats everybody needs.
inline float f16_to_float(uint16_t code) { return to_float(DType::f16, code); }
inline uint16_t float_to_f16(float v) { return static_cast<uint16_t>(from_float(DType::f16, v)); }
inline float bf16_to_float(uint16_t code) { return std::bit_cast<float>(uint32_t{code} << 16); }
inline uint16_t float_to_bf16(float v) { return static_cast<uint16_t>(from_float(DType::bf16, v)); }

// Bytes one code takes in the arrays below: 1, 2 or 4; codes of fewer than 8 bits take a byte each.
int code_bytes(DType t);

// Bulk conversion at memory speed, equal to the scalar functions on every element. `codes` holds `n` codes of
// code_bytes(t) bytes each, at any alignment. Integer types up to 32 bits convert by value.
void to_float(DType t, const void* codes, float* values, size_t n);
// Rounds to nearest even. Integer types round likewise and saturate; NaN gives 0.
void from_float(DType t, const float* values, void* codes, size_t n, bool satfinite = false);

// Between one code a byte and the packed form in memory: bits(t) bits each, the first code in the lowest
// bits.
void pack_codes(DType t, const uint8_t* codes, void* packed, size_t n);
void unpack_codes(DType t, const void* packed, uint8_t* codes, size_t n);

}  // namespace tw
