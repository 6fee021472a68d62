#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "tilewright/sim/float_math.h"

// The functions behind ex2, lg2, sin, cos, tanh and rsqrt .approx of f32, without branches, so that a loop
// over lanes becomes vector code. Each lies within two units in the last place of the exact value (sin and
// cos: within 2^-23), where the ISA allows more, so a GPU's own approximation may differ from them by what
// the ISA allows. Polynomials by a Remez exchange.
namespace tw::sim {

// c0 + c1 x + c2 x^2 + ...
template <class... C>
[[gnu::always_inline]] inline float polynomial(float x, float c0, C... rest) {
  if constexpr (sizeof...(rest) == 0) return c0;
  else return __builtin_fmaf(polynomial(x, rest...), x, c0);
}

// A float near an integer of less than 2^22, as `rounded` and in the low bits of `bits`.
struct Nearest {
  float rounded;
  uint32_t bits;
};
[[gnu::always_inline]] inline Nearest nearest_integer(float x) {
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: the sum's last place is one
  const float shifted = x + magic;
  return {shifted - magic, as_bits(shifted)};
}
[[gnu::always_inline]] inline float power_of_two(uint32_t exponent) {  // of the low bits, in [-126, 127]
  return as_float((exponent + 127) << 23);
}

// How good a function has to be: to its last place, or to the few bits of a 16-bit format.
enum class Precision : uint8_t { f32, half };

// 2^f - 1 for |f| <= 1/2, relative error of 2^f below 2^-28, or 2^-18.
template <Precision precision>
[[gnu::always_inline]] inline float exp2_fraction(float f) {
  if constexpr (precision == Precision::half)
    return f * polynomial(f, 0.693124235f, 0.240240946f, 0.0559062995f, 0.0095830299f);
  return f * polynomial(f, 0.693147182f, 0.240226477f, 0.0555033237f, 0.00961843599f, 0.00133988517f,
                        0.000153536006f);
}

// With ftz, zero instead of a subnormal result.
template <bool ftz>
[[gnu::always_inline]] inline float approximate_exp2(float x) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const bool low = ftz ? x < -126.0f : x <= -150.0f, high = x >= 128.0f;
  // The host is slow where results or operands are subnormal.
  const float limited = (low | high | !(std::fabs(x) > 0x1p-30f)) ? 0.0f : x;
  const Nearest n = nearest_integer(limited);
  const float p = 1.0f + exp2_fraction<Precision::f32>(limited - n.rounded);
  float r;
  if constexpr (ftz) {
    r = as_float(as_bits(p) + (n.bits << 23));
  } else {  // in two steps, so that a subnormal result comes out of the last product
    const auto e = static_cast<int32_t>(n.bits << 10) >> 10;
    const int32_t half = e >> 1;
    r = p * power_of_two(static_cast<uint32_t>(half)) * power_of_two(static_cast<uint32_t>(e - half));
  }
  r = high ? infinity : low ? 0.0f : r;
  return x == x ? r : as_float(kNanF32);
}

// Of a number of a 16-bit format: right to that format's precision, and where 2^x is subnormal in f32
// something that small.
[[gnu::always_inline]] inline float approximate_exp2_of_half(float x) {
  const float above = x < -127.0f ? -127.0f : x, limited = above > 128.0f ? 128.0f : above;
  const Nearest n = nearest_integer(limited);
  const float p = 1.0f + exp2_fraction<Precision::half>(limited - n.rounded);
  return as_float(as_bits(p) + (n.bits << 23));
}

[[gnu::always_inline]] inline float approximate_log2(float x) {
  const bool subnormal = std::fabs(x) < 0x1p-126f;
  const uint32_t bits = as_bits(subnormal ? x * 0x1p24f : x);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const auto e = static_cast<int32_t>(bits - 0x3F3504F3) >> 23;
  const float f = as_float(bits - (static_cast<uint32_t>(e) << 23)) - 1.0f;
  const float p =
      polynomial(f, 1.44269502f, -0.721347511f, 0.480897903f, -0.360674143f, 0.288576186f, -0.240467206f,
                 0.205043495f, -0.178908721f, 0.172056854f, -0.1690633f, 0.0970337689f);
  const float r = __builtin_fmaf(f, p, static_cast<float>(e - (subnormal ? 24 : 0)));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float positive = x < infinity ? r : x;
  const float edge = x == 0.0f ? -infinity : as_float(kNanF32);
  return x > 0.0f ? positive : edge;
}

// Beyond this the reduction below loses its bits.
inline constexpr float kLargestAngle = 1048576.0f;

// sin(x), or cos(x) with quarter 1; |x| <= kLargestAngle or not finite. x = n pi/2 + r by W. Cody and W.
// Waite's steps, the first of which is exact.
template <uint32_t quarter>
[[gnu::always_inline]] inline float approximate_sine(float x) {
  const Nearest n = nearest_integer(x * 0.636619747f);
  float r = __builtin_fmaf(-n.rounded, 1.57079637f, x);
  r = __builtin_fmaf(-n.rounded, -4.37113883e-08f, r);
  r = __builtin_fmaf(-n.rounded, -1.71512451e-15f, r);
  const float square = r * r;
  const float sine =
      __builtin_fmaf(square * r, polynomial(square, -0.166666552f, 0.00833217613f, -0.000195169501f), r);
  const float cosine = polynomial(square, 1.0f, -0.5f, 0.0416666456f, -0.00138873723f, 2.44387593e-05f);
  const uint32_t q = n.bits + quarter;
  const float size = (q & 1) ? cosine : sine;
  const float signed_size = as_float(as_bits(size) ^ (q & 2) << 30);
  const float value = quarter == 0 && x == 0.0f ? x : signed_size;  // keeps the sign of zero
  return std::fabs(x) < std::numeric_limits<float>::infinity() ? value : as_float(kNanF32);
}

// Of a magnitude of at most kTanhIsOne.
inline constexpr float kTanhIsOne = 20.0f;
[[gnu::always_inline]] inline float approximate_tanh_of_size(float size) {
  const float square = size * size;
  // (tanh(x) / x - 1) / x^2 on [0, 0.625]
  const float odd = polynomial(square, -0.333333313f, 0.133332118f, -0.0539474599f, 0.0217041597f,
                               -0.0081852749f, 0.00214967807f);
  const float small = __builtin_fmaf(square * size, odd, size);
  // (1 - t) / (1 + t) with t = e^-2|x| < 0.29.
  const float power = -2.88539004f * size;
  const Nearest n = nearest_integer(power);
  const float t = as_float(as_bits(1.0f + exp2_fraction<Precision::f32>(power - n.rounded)) + (n.bits << 23));
  const float large = (1.0f - t) / (1.0f + t);
  return size < 0.625f ? small : large;
}
[[gnu::always_inline]] inline float approximate_tanh(float x) {
  const float size = std::fabs(x), limited = size < kTanhIsOne ? size : kTanhIsOne;
  const float r = approximate_tanh_of_size(limited);
  return as_float(x == x ? as_bits(r) | (as_bits(x) & 0x80000000) : kNanF32);
}

// For a 16-bit format: over / under is tanh(size) with a relative error below 2^-19.6, for sizes up to 4.63,
// where the nearest number of either format is 1.
struct Ratio {
  float over, under;
};
[[gnu::always_inline]] inline Ratio tanh_ratio(float size) {
  const float square = size * size;
  return {size * polynomial(square, 0.999998808f, 0.117218181f, 0.00168130035f),
          polynomial(square, 1.0f, 0.450541556f, 0.0185426045f, 6.76058844e-05f)};
}

[[gnu::always_inline]] inline float approximate_rsqrt(float x) {
  return 1.0f / __builtin_sqrtf(x);  // two roundings: within 2^-23
}

}  // namespace tw::sim
