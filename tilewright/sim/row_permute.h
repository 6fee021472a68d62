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
#endif

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
