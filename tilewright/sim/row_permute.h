#pragma once
#include <cstdint>

#include "tilewright/sim/vector_level.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tw::sim {

#if defined(__x86_64__)
[[gnu::target("avx2")]] inline void permute_row_avx2(const uint32_t* row, const uint32_t* from,
                                                     uint32_t* out) {
  __m256i source[4];
  for (int k = 0; k < 4; ++k) source[k] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 8 * k));
  for (int n = 0; n < 4; ++n) {
    const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 8 * n));
    const __m256i eighth = _mm256_srli_epi32(index, 3);
    __m256i r = _mm256_permutevar8x32_epi32(source[0], index);
    for (int k = 1; k < 4; ++k) {
      r = _mm256_blendv_epi8(r, _mm256_permutevar8x32_epi32(source[k], index),
                             _mm256_cmpeq_epi32(eighth, _mm256_set1_epi32(k)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8 * n), r);
  }
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline void permute_row_avx512(const uint32_t* row,
                                                                                     const uint32_t* from,
                                                                                     uint32_t* out) {
  const __m512i low = _mm512_loadu_si512(row), high = _mm512_loadu_si512(row + 16);
  for (int n = 0; n < 32; n += 16)
    _mm512_storeu_si512(out + n, _mm512_permutex2var_epi32(low, _mm512_loadu_si512(from + n), high));
}

// A byte shuffle takes bytes of the same 128 bits: `places` are those of the lanes in them.
[[gnu::target("avx2")]] inline void permute_bytes_avx2(const uint32_t* a, const uint32_t* b,
                                                       const uint32_t* from, uint32_t* out) {
  const __m256i places =
      _mm256_set_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0, 0x0C0C0C0C, 0x08080808, 0x04040404, 0);
  const auto four = _mm256_set1_epi8(4), eight = _mm256_set1_epi8(8);
  for (int l = 0; l < 32; l += 8) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + l)),
                  y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + l)),
                  index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + l));
    const __m256i inside = _mm256_or_si256(_mm256_and_si256(index, _mm256_set1_epi8(3)), places);
    const __m256i of_b = _mm256_cmpeq_epi8(_mm256_and_si256(index, four), four),
                  of_sign = _mm256_cmpeq_epi8(_mm256_and_si256(index, eight), eight);
    const __m256i bytes =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(x, inside), _mm256_shuffle_epi8(y, inside), of_b);
    const __m256i signs = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + l), _mm256_blendv_epi8(bytes, signs, of_sign));
  }
}
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline void permute_bytes_avx512(const uint32_t* a,
                                                                                       const uint32_t* b,
                                                                                       const uint32_t* from,
                                                                                       uint32_t* out) {
  const __m512i places = _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0);
  for (int l = 0; l < 32; l += 16) {
    const __m512i index = _mm512_loadu_si512(from + l);
    const __m512i inside = _mm512_or_si512(_mm512_and_si512(index, _mm512_set1_epi8(3)), places);
    const __mmask64 of_b = _mm512_test_epi8_mask(index, _mm512_set1_epi8(4)),
                    of_sign = _mm512_test_epi8_mask(index, _mm512_set1_epi8(8));
    __m512i bytes = _mm512_shuffle_epi8(_mm512_loadu_si512(a + l), inside);
    bytes = _mm512_mask_shuffle_epi8(bytes, of_b, _mm512_loadu_si512(b + l), inside);
    const __m512i signs = _mm512_movm_epi8(_mm512_movepi8_mask(bytes));
    _mm512_storeu_si512(out + l, _mm512_mask_mov_epi8(bytes, of_sign, signs));
  }
}
#endif

// Byte n of out[l] is chosen by byte n of from[l]: bits 0 and 1 say which byte, bit 2 whether of b[l] instead
// of a[l], bit 3 whether its sign takes the place of all its bits. Other bits are zero.
template <VectorLevel level>
[[gnu::always_inline]] inline void permute_bytes(const uint32_t* a, const uint32_t* b, const uint32_t* from,
                                                 uint32_t* out) {
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx512) return permute_bytes_avx512(a, b, from, out);
  if constexpr (level == VectorLevel::avx2) return permute_bytes_avx2(a, b, from, out);
#endif
  for (int l = 0; l < 32; ++l) {
    uint32_t result = 0;
    for (int n = 0; n < 4; ++n) {
      const uint32_t index = from[l] >> (8 * n) & 15;
      const uint32_t byte = ((index & 4) ? b[l] : a[l]) >> (8 * (index & 3)) & 0xFF;
      const uint32_t sign = (byte >> 7) * 0xFF;
      result |= ((index & 8) ? sign : byte) << (8 * n);
    }
    out[l] = result;
  }
}

// out[l] = row[from[l]] for 32 lanes; from[l] < 32.
template <VectorLevel level>
[[gnu::always_inline]] inline void permute_row(const uint32_t* row, const uint32_t* from, uint32_t* out) {
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx512) return permute_row_avx512(row, from, out);
  if constexpr (level == VectorLevel::avx2) return permute_row_avx2(row, from, out);
#endif
  for (int l = 0; l < 32; ++l) out[l] = row[from[l]];
}

}  // namespace tw::sim
