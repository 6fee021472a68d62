#include <cmath>
#include <cstring>

#include "tilewright/base/formats.h"
#include "tilewright/sim/arithmetic.h"
#include "tilewright/sim/half_rows.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Half Precision Floating-Point Instructions" and "Mixed Precision Floating-Point Instructions".
// Each result is the exact one rounded once, although sums and products are formed in f32:
//  - f16 and bf16 products have at most 22 bits: exact in f32 (a bf16 product below 2^-126 may lose bits, but
//    then it lies below half of the smallest bf16 or is exact);
//  - the rounding of a sum to 24 bits cannot disturb its rounding to p <= 11, by the 2p + 2 rule (S.
//  Figueroa,
//    "When is double rounding innocuous?", 1995), and sums of the subnormal range are exact;
//  - fma adds the exact product and rounds the sum to odd in between (float_math.h).
namespace tw::sim {

namespace {

using ptx::Type;

struct HalfSpec {
  HalfOp op;
  DType format = DType::f16;
  bool packed = false, ftz = false, sat = false, relu = false, nan = false, xorsign = false;
  int operands = 2;
};

[[gnu::always_inline]] inline const uint16_t* codes_of(const Warp& w, Slot s) { return w.row<uint16_t>(s); }

[[gnu::always_inline]] inline void write_codes(Warp& w, Slot slot, uint32_t lanes, bool packed,
                                               const uint16_t* codes) {
  uint32_t words[32];
  std::memcpy(words, codes, sizeof words);
  const uint32_t mask = packed ? kAllLanes : 0xFFFF;
  each_lane(
      lanes, w.row<uint32_t>(slot), [&](int l) __attribute__((always_inline)) { return words[l] & mask; });
}

// Codes in the order of their values, -0 before +0.
[[gnu::always_inline]] inline int16_t order(uint16_t code) {
  const auto c = static_cast<int16_t>(code);
  return static_cast<int16_t>(c ^ (c >> 15 & 0x7FFF));
}

// min and max choose one of the operands.
template <DType format, bool is_max>
[[gnu::always_inline]] inline uint16_t choose(uint16_t a, uint16_t b, bool nan, bool xorsign) {
  const auto sign = static_cast<uint16_t>(xorsign ? (a ^ b) & 0x8000 : 0);
  const auto keep = static_cast<uint16_t>(xorsign ? 0x7FFF : 0xFFFF);
  a &= keep, b &= keep;
  const bool a_nan = is_nan<format>(a), b_nan = is_nan<format>(b);
  const uint16_t number = (order(a) < order(b)) == is_max ? b : a;
  const uint16_t r = a_nan ? b : b_nan ? a : number;
  const bool no_number = nan ? a_nan | b_nan : a_nan & b_nan;
  return no_number ? kNanHalf : static_cast<uint16_t>(r | sign);
}

template <DType format, bool is_max>
struct HalfChoose {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto& s = *static_cast<const HalfSpec*>(i.extra);
    const bool nan = s.nan, xorsign = s.xorsign;
    uint16_t out[kCodes], next[kCodes];
    std::memcpy(out, codes_of(w, i.s[1]), sizeof out);
    if (s.ftz)
      for (uint16_t& c : out) c = flush_code(c);
    for (int k = 2; k <= s.operands; ++k) {
      std::memcpy(next, codes_of(w, i.s[k]), sizeof next);
      if (s.ftz)
        for (uint16_t& c : next) c = flush_code(c);
      for (int e = 0; e < kCodes; ++e) out[e] = choose<format, is_max>(out[e], next[e], nan, xorsign);
    }
    write_codes(w, i.s[0], lanes, s.packed, out);
  }
};

template <DType format, bool is_abs>
struct HalfSign {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto& s = *static_cast<const HalfSpec*>(i.extra);
    const uint16_t* a = codes_of(w, i.s[1]);
    uint16_t out[kCodes];
    for (int e = 0; e < kCodes; ++e) {
      const uint16_t c = s.ftz ? flush_code(a[e]) : a[e];
      const auto r = static_cast<uint16_t>(is_abs ? c & 0x7FFF : c ^ 0x8000);
      out[e] = is_nan<format>(c) ? kNanHalf : r;
    }
    write_codes(w, i.s[0], lanes, s.packed, out);
  }
};

// a * b + c of bf16 values in double, rounded to odd: for products that do not fit an f32's exponent.
void wide_fma(const float* a, const float* b, const float* c, float* r) {
  for (int e = 0; e < kCodes; ++e) r[e] = to_odd_float(fma_to_odd(a[e], b[e], c[e]));
}

// Written with integers instead of conditions, as vector code.
template <DType format>
[[gnu::always_inline]] inline void half_fma(const float* a, const float* b, const float* c, float* r) {
  uint32_t inexact = 0;
  for (int e = 0; e < kCodes; ++e) {
    const float p = a[e] * b[e], s = p + c[e];
    const float back = s - p;
    const float error = (p - (s - back)) + (c[e] - back);  // as fma_to_odd does; NaN when s is not finite
    const uint32_t bits = as_bits(s), error_bits = as_bits(error);
    const uint32_t off = (error_bits & 0x7FFFFFFF) - 1 < 0x7F800000 ? 1u : 0u;  // neither zero nor NaN
    const uint32_t adjust = off & ~bits, inward = (error_bits ^ bits) >> 31;
    r[e] = as_float(bits + adjust - 2 * (adjust & inward));
    if constexpr (format == DType::bf16) {
      const uint32_t size = as_bits(p) & 0x7FFFFFFF, a_size = as_bits(a[e]) & 0x7FFFFFFF,
                     b_size = as_bits(b[e]) & 0x7FFFFFFF;
      const uint32_t low = (size < 0x00800000 ? 1u : 0u) & (a_size ? 1u : 0u) & (b_size ? 1u : 0u);
      const uint32_t high = (size == 0x7F800000 ? 1u : 0u) & (a_size != 0x7F800000 ? 1u : 0u) &
                            (b_size != 0x7F800000 ? 1u : 0u);
      inexact |= low | high;
    }
  }
  if (format == DType::bf16 && inexact) [[unlikely]]
    wide_fma(a, b, c, r);
}

#if defined(__x86_64__)
// The same in one operation, rounded in two directions: when they differ, the one toward zero with its last
// bit set is the odd one. Nothing is lost on the way, whatever the exponent of the product.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline void half_fma_avx512(const float* a,
                                                                                  const float* b,
                                                                                  const float* c, float* r) {
  constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
                up = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC, zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  for (int e = 0; e < kCodes; e += 16) {
    const __m512 x = _mm512_loadu_ps(a + e), y = _mm512_loadu_ps(b + e), z = _mm512_loadu_ps(c + e);
    const __m512 low = _mm512_fmadd_round_ps(x, y, z, down), high = _mm512_fmadd_round_ps(x, y, z, up);
    const __m512i cut = _mm512_castps_si512(_mm512_fmadd_round_ps(x, y, z, zero));
    // Overflow: the largest finite value, whose last bit is set. Exact cancellation: +0, as to nearest.
    const __mmask16 between = _mm512_cmp_ps_mask(low, high, _CMP_LT_OQ);
    const __m512i odd = _mm512_mask_or_epi32(cut, between, cut, _mm512_set1_epi32(1));
    _mm512_storeu_ps(r + e, _mm512_castsi512_ps(odd));
  }
}
#endif

template <DType format, VectorLevel level>
[[gnu::always_inline]] inline void fma_rows(const float* a, const float* b, const float* c, float* r) {
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx512) return half_fma_avx512(a, b, c, r);
#endif
  half_fma<format>(a, b, c, r);
}

template <HalfOp op, DType format, bool ftz>
struct HalfArithmetic {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto& s = *static_cast<const HalfSpec*>(i.extra);
      constexpr int operands = op == HalfOp::fma ? 3 : 2;
      constexpr Subnormals subnormals = ftz ? Subnormals::flushed : Subnormals::kept;
      float value[3][kCodes], result[kCodes];
#pragma GCC unroll 3
      for (int k = 0; k < operands; ++k)
        widen_row<format, level, subnormals>(codes_of(w, i.s[1 + k]), value[k]);
      const float *x = value[0], *y = value[1], *z = value[2];
      if constexpr (op == HalfOp::add) {
        for (int e = 0; e < kCodes; ++e) result[e] = x[e] + y[e];
      } else if constexpr (op == HalfOp::sub) {
        for (int e = 0; e < kCodes; ++e) result[e] = x[e] - y[e];
      } else if constexpr (op == HalfOp::mul) {
        for (int e = 0; e < kCodes; ++e) result[e] = x[e] * y[e];
        if constexpr (ftz) {  // flushed when tiny before rounding, as an H200 does
          for (float& r : result) r = std::fabs(r) < 0x1p-14f ? as_float(as_bits(r) & 0x80000000) : r;
        }
      } else {
        fma_rows<format, level>(x, y, z, result);
      }
      if (s.sat) {
        for (float& r : result) r = saturate(r);
      }
      if (lanes == kAllLanes && s.packed && !s.relu) {
        narrow_row<format, level, Nans::some, subnormals>(result, w.row<uint16_t>(i.s[0]));
        return;
      }
      uint16_t out[kCodes];
      narrow_row<format, level, Nans::some, subnormals>(result, out);
      if (s.relu) {  // the NaN has no sign
        for (uint16_t& c : out) c = (c & 0x8000) ? uint16_t{0} : c;
      }
      write_codes(w, i.s[0], lanes, s.packed, out);
    }
  };
};

template <HalfOp op, DType format>
Handler half_arithmetic(bool ftz) {
  if constexpr (format == DType::f16)
    if (ftz) return level_handler<HalfArithmetic<op, format, true>::template Kernel>();
  return level_handler<HalfArithmetic<op, format, false>::template Kernel>();
}

template <DType format>
Handler half_operation(HalfOp op, bool ftz) {
  switch (op) {
    case HalfOp::add: return half_arithmetic<HalfOp::add, format>(ftz);
    case HalfOp::sub: return half_arithmetic<HalfOp::sub, format>(ftz);
    case HalfOp::mul: return half_arithmetic<HalfOp::mul, format>(ftz);
    case HalfOp::fma: return half_arithmetic<HalfOp::fma, format>(ftz);
    case HalfOp::min: return handler<HalfChoose<format, false>>();
    case HalfOp::max: return handler<HalfChoose<format, true>>();
    case HalfOp::abs: return handler<HalfSign<format, true>>();
    case HalfOp::neg: return handler<HalfSign<format, false>>();
  }
  return nullptr;
}

// s[1] (and s[2] of fma): 16-bit operands; the last operand is f32. aux: bits 0-1 direction, 3 sat; imm:
// HalfOp.
template <DType format>
Flow run_mixed(Warp& w, const Inst& i, uint32_t lanes) {
  const auto op = static_cast<HalfOp>(i.imm);
  const bool fma = op == HalfOp::fma;
  float value[32];
  {
    const RoundingScope scope(static_cast<Round>(i.aux & 3));
    for (int l = 0; l < 32; ++l) {
      volatile float a = to_float(format, w.row<uint32_t>(i.s[1])[l] & 0xFFFF);
      volatile float b = fma ? to_float(format, w.row<uint32_t>(i.s[2])[l] & 0xFFFF) : 1.0f;
      volatile float c = w.row<float>(i.s[fma ? 3 : 2])[l];
      if (op == HalfOp::sub) c = -c;
      volatile float r = fma ? std::fma(float{a}, float{b}, float{c}) : a + c;
      value[l] = r;
    }
  }
  each_lane(lanes, w.row<float>(i.s[0]),
            [&](int l) { return (i.aux & 8) ? saturate(value[l]) : canonical(value[l]); });
  return Flow::next;
}

}  // namespace

void decode_half(Decoding& d, HalfOp op) {
  HalfSpec s{op};
  d.take("rn");
  s.ftz = d.take("ftz");
  s.sat = d.take("sat");
  s.relu = d.take("relu");
  s.nan = d.take("NaN");
  s.xorsign = d.take("xorsign");
  if (op == HalfOp::min || op == HalfOp::max) d.take("abs");
  const Type type = d.take_type();
  s.format = type == Type::f16 || type == Type::f16x2 ? DType::f16 : DType::bf16;
  s.packed = type == Type::f16x2 || type == Type::bf16x2;
  s.operands = static_cast<int>(d.operand_count()) - 1;
  const int bytes = ptx::bytes(type);
  d.inst.s[0] = d.destination(0, bytes);
  for (int k = 0; k < s.operands; ++k) {
    d.inst.s[1 + k] = d.float_source(d.operand(static_cast<size_t>(1 + k)), s.packed ? Type::b32 : type);
  }
  d.inst.extra = d.keep(s);
  d.inst.run =
      s.format == DType::f16 ? half_operation<DType::f16>(op, s.ftz) : half_operation<DType::bf16>(op, s.ftz);
}

void decode_mixed(Decoding& d, HalfOp op, Round round, bool saturated) {
  const Type type = d.take_type();
  const size_t operands = op == HalfOp::fma ? 3 : 2;
  d.inst.s[0] = d.destination(0, 4);
  for (size_t n = 1; n < operands; ++n) d.inst.s[n] = d.float_source(d.operand(n), type);
  d.inst.s[operands] = d.float_source(d.operand(operands), Type::f32);
  d.inst.aux = static_cast<uint32_t>(round) | (saturated ? 8u : 0u);
  d.inst.imm = static_cast<int64_t>(op);
  d.inst.run = type == Type::f16 ? &run_mixed<DType::f16> : &run_mixed<DType::bf16>;
}

}  // namespace tw::sim
