#pragma once
#include <cstdint>
#include <cstring>

#include "tilewright/base/formats.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/vector_level.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// 16-bit formats over rows of lanes: 32 codes, or 64 when they are packed in pairs.
namespace tw::sim {

inline constexpr uint16_t kNanHalf = 0x7FFF;  // what conversions to both formats give for a NaN

template <DType format>
[[gnu::always_inline]] inline bool is_nan(uint16_t code) {
  return (code & 0x7FFF) > (format == DType::f16 ? 0x7C00 : 0x7F80);
}

// The nearest bf16 code of f32 bits, in the low half.
[[gnu::always_inline]] inline uint32_t bf16_code_of_number(uint32_t bits) {
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
[[gnu::always_inline]] inline uint32_t bf16_code(uint32_t bits) {
  return (bits & 0x7FFFFFFF) > 0x7F800000 ? kNanHalf : bf16_code_of_number(bits);
}

// Whether there may be NaNs among the values.
enum class Nans : uint8_t { some, none };
// What becomes of subnormal f16 codes: with ".ftz" zero of their sign.
enum class Subnormals : uint8_t { kept, flushed };

[[gnu::always_inline]] inline uint16_t flush_code(uint16_t code) {
  const uint16_t keep = (code & 0x7C00) == 0 ? 0x8000 : 0xFFFF;
  return static_cast<uint16_t>(code & keep);
}

#if defined(__x86_64__)
[[gnu::target("avx2,f16c")]] inline void f16_to_float_f16c(const uint16_t* codes, float* values, int n) {
  for (int e = 0; e < n; e += 8) {
    const __m128i code = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + e));
    _mm256_storeu_ps(values + e, _mm256_cvtph_ps(code));
  }
}
// A NaN of all ones, as `canonical` makes it, becomes 0x7fff.
[[gnu::target("avx2,f16c")]] inline void float_to_f16_f16c(const float* values, uint16_t* codes, int n) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(kNanF32));
  for (int e = 0; e < n; e += 8) {
    const __m256 v = _mm256_loadu_ps(values + e);
    const __m256 clean = _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + e),
                     _mm256_cvtps_ph(clean, _MM_FROUND_TO_NEAREST_INT));
  }
}
// Zeros and subnormals among 32 codes.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline __mmask32 small_codes(__m512i codes) {
  return _mm512_testn_epi16_mask(codes, _mm512_set1_epi16(0x7C00));
}
template <Subnormals subnormals>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline __m512i flush_codes(__m512i codes) {
  if constexpr (subnormals == Subnormals::kept) return codes;
  const __m512i sign = codes & _mm512_set1_epi16(INT16_MIN);
  return _mm512_mask_mov_epi16(codes, small_codes(codes), sign);
}
template <Subnormals subnormals>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline void f16_to_float_avx512(const uint16_t* codes,
                                                                                      float* values, int n) {
  for (int e = 0; e < n; e += 32) {
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + e)),
            high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + e + 16));
    if constexpr (subnormals == Subnormals::flushed) {
      const __m512i both = _mm512_loadu_si512(codes + e);
      if (small_codes(both) != 0) [[unlikely]] {  // to look is cheaper than to flush
        const __m512i flushed = flush_codes<subnormals>(both);
        low = __builtin_shufflevector(flushed, flushed, 0, 1, 2, 3);
        high = __builtin_shufflevector(flushed, flushed, 4, 5, 6, 7);
      }
    }
    _mm512_storeu_ps(values + e, _mm512_maskz_cvtph_ps(0xFFFF, low));
    _mm512_storeu_ps(values + e + 16, _mm512_maskz_cvtph_ps(0xFFFF, high));
  }
}
// n is a multiple of 32: whole vectors are stored, which a later load of one finds in the store buffer.
template <Nans nans>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline __m256i float_to_f16_half(const float* values) {
  __m512 v = _mm512_loadu_ps(values);
  if constexpr (nans == Nans::some) {
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(kNanF32));
    v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
  }
  return _mm512_maskz_cvtps_ph(0xFFFF, v, _MM_FROUND_TO_NEAREST_INT);
}
template <Nans nans, Subnormals subnormals>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline void float_to_f16_avx512(const float* values,
                                                                                      uint16_t* codes,
                                                                                      int n) {
  for (int e = 0; e < n; e += 32) {
    const __m256i low = float_to_f16_half<nans>(values + e), high = float_to_f16_half<nans>(values + e + 16);
    _mm512_storeu_si512(codes + e,
                        flush_codes<subnormals>(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7)));
  }
}
#endif

// n codes, a multiple of 32. A NaN is some NaN afterwards.
template <DType format, VectorLevel level, Subnormals subnormals = Subnormals::kept>
[[gnu::always_inline]] inline void widen_codes(const uint16_t* codes, float* values, int n) {
  if constexpr (format == DType::bf16) {
    for (int e = 0; e < n; ++e) values[e] = as_float(uint32_t{codes[e]} << 16);
    return;
  }
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx512) return f16_to_float_avx512<subnormals>(codes, values, n);
#endif
  uint16_t flushed[64];
  if constexpr (subnormals == Subnormals::flushed) {
    for (int e = 0; e < n; ++e) flushed[e] = flush_code(codes[e]);
    codes = flushed;
  }
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx2) return f16_to_float_f16c(codes, values, n);
#endif
  to_float(format, codes, values, static_cast<size_t>(n));
}

// To nearest, ties to even; a NaN becomes 0x7fff.
template <DType format, VectorLevel level, Nans nans = Nans::some, Subnormals subnormals = Subnormals::kept>
[[gnu::always_inline]] inline void narrow_values(const float* values, uint16_t* codes, int n) {
  if constexpr (format == DType::bf16) {
    for (int e = 0; e < n; ++e) {
      const uint32_t bits = as_bits(values[e]);
      codes[e] = static_cast<uint16_t>(nans == Nans::some ? bf16_code(bits) : bf16_code_of_number(bits));
    }
    return;
  }
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx512) return float_to_f16_avx512<nans, subnormals>(values, codes, n);
#endif
  if constexpr (level == VectorLevel::avx2) float_to_f16_f16c(values, codes, n);
  else from_float(format, values, codes, static_cast<size_t>(n));
  if constexpr (subnormals == Subnormals::flushed)
    for (int e = 0; e < n; ++e) codes[e] = flush_code(codes[e]);
}

// A row of 32-bit elements is an array of 64 codes: each lane's low half, then its high half, which is zero
// when a lane holds one code.
inline constexpr int kCodes = 64;

// Such a row as values, in an order of their own that narrow_row takes back. bf16 needs no packing then: low
// halves, then high ones.
template <DType format, VectorLevel level, Subnormals subnormals = Subnormals::kept>
[[gnu::always_inline]] inline void widen_row(const uint16_t* codes, float* values) {
  if constexpr (format == DType::bf16) {
    uint32_t words[kCodes / 2];
    std::memcpy(words, codes, sizeof words);
    for (int l = 0; l < kCodes / 2; ++l) {
      values[l] = as_float(words[l] << 16);
      values[l + kCodes / 2] = as_float(words[l] & 0xFFFF0000);
    }
  } else {
    widen_codes<format, level, subnormals>(codes, values, kCodes);
  }
}
template <DType format, VectorLevel level, Nans nans = Nans::some, Subnormals subnormals = Subnormals::kept>
[[gnu::always_inline]] inline void narrow_row(const float* values, uint16_t* codes) {
  if constexpr (format == DType::bf16) {
    const auto code = [](float v) __attribute__((always_inline)) {
      return nans == Nans::some ? bf16_code(as_bits(v)) : bf16_code_of_number(as_bits(v));
    };
    uint32_t words[kCodes / 2];
    for (int l = 0; l < kCodes / 2; ++l)
      words[l] = (code(values[l]) & 0xFFFF) | code(values[l + kCodes / 2]) << 16;
    std::memcpy(codes, words, sizeof words);
  } else {
    narrow_values<format, level, nans, subnormals>(values, codes, kCodes);
  }
}

}  // namespace tw::sim
