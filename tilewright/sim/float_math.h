#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

// Pieces of IEEE 754 arithmetic as PTX asks for it: subnormals flushed, NaN canonical, one rounding in any
// direction.
namespace tw::sim {

inline constexpr uint32_t kNanF32 = 0x7FFFFFFF;  // what f32 instructions give for a NaN

[[gnu::always_inline]] inline float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
[[gnu::always_inline]] inline uint32_t as_bits(float v) { return std::bit_cast<uint32_t>(v); }

// ".ftz": a subnormal becomes zero with its sign.
[[gnu::always_inline]] inline float flush(float v) {
  const uint32_t bits = as_bits(v), keep = (bits & 0x7F800000) == 0 ? 0x80000000 : ~0u;
  return as_float(bits & keep);
}
[[gnu::always_inline]] inline float canonical(float v) { return as_float(v == v ? as_bits(v) : kNanF32); }
[[gnu::always_inline]] inline double canonical(double v) {
  return v;
}  // f64 results keep what the operation gives
// ".sat": into [0, 1], NaN to +0.
[[gnu::always_inline]] inline float saturate(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

// Rounding to odd: `x` is the nearest double to an exact value that lies on the side of `error`. Rounding the
// result to a format with at least two bits less than a double rounds the exact value correctly (S. Boldo, G.
// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
[[gnu::always_inline]] inline double to_odd(double x, double error) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const bool adjust = error != 0.0 && (bits & 1) == 0;
  const bool grows = (error > 0.0) == (x > 0.0);  // away from zero
  return std::bit_cast<double>(adjust ? bits + (grows ? 1 : ~uint64_t{0}) : bits);
}
// The same, from a double to a float.
[[gnu::always_inline]] inline float to_odd_float(double x) {
  const auto f = static_cast<float>(x);
  const double error = x - static_cast<double>(f);
  const uint32_t bits = as_bits(f);
  // An overflow to infinity comes back to the largest finite value, which is odd; the next rounding overflows
  // again.
  const bool adjust = error != 0.0 && error == error && (bits & 1) == 0;
  const bool grows = (error > 0.0) == (x > 0.0);
  return as_float(adjust ? bits + (grows ? 1 : ~uint32_t{0}) : bits);
}
// a * b + c, rounded to odd. The product of two floats of at most 24 bits is exact in a double.
[[gnu::always_inline]] inline double fma_to_odd(float a, float b, float c) {
  const double p = static_cast<double>(a) * static_cast<double>(b), q = static_cast<double>(c);
  const double s = p + q;
  const double back = s - p;
  const double error = (p - (s - back)) + (q - back);  // D. Knuth's TwoSum; NaN when s is not finite
  return to_odd(s, error == error ? error : 0.0);
}

enum class Round : uint8_t { rn, rz, rm, rp };

// Sets the host's rounding direction for a scope: of x86-64 only that of vector and scalar SSE instructions,
// which takes a fraction of the time of fesetround.
class RoundingScope {
 public:
  explicit RoundingScope(Round r) { set(r); }
  ~RoundingScope() { set(Round::rn); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  static void set(Round r) {
#if defined(__x86_64__)
    constexpr uint32_t modes[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN, _MM_ROUND_UP};
    _mm_setcsr(_MM_MASK_MASK | modes[static_cast<int>(r)]);
#else
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(modes[static_cast<int>(r)]);
#endif
  }
};

}  // namespace tw::sim
