#include <cmath>
#include <cstring>

#include "tilewright/base/formats.h"
#include "tilewright/sim/approximate.h"
#include "tilewright/sim/arithmetic.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/half_rows.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Floating-Point Instructions": div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh. The .approx forms
// lie within the errors the ISA allows (approximate.h), but a GPU's own approximation may differ from them by
// those.
namespace tw::sim {

namespace {

using ptx::Type;

enum class Function : uint8_t { rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh };

double evaluate(Function f, double v) {
  switch (f) {
    case Function::rcp: return 1.0 / v;
    case Function::sqrt: return std::sqrt(v);
    case Function::rsqrt: return 1.0 / std::sqrt(v);
    case Function::sin: return std::sin(v);
    case Function::cos: return std::cos(v);
    case Function::lg2: return std::log2(v);
    case Function::ex2: return std::exp2(v);
    case Function::tanh: return std::tanh(v);
  }
  return v;
}

struct MathSpec {
  Function function;
};

template <Function f, bool ftz>
[[gnu::always_inline]] inline float approximate(float x) {
  if constexpr (f == Function::rcp) return 1.0f / x;
  if constexpr (f == Function::sqrt) return __builtin_sqrtf(x);
  if constexpr (f == Function::rsqrt) return approximate_rsqrt(x);
  if constexpr (f == Function::sin) return approximate_sine<0>(x);
  if constexpr (f == Function::cos) return approximate_sine<1>(x);
  if constexpr (f == Function::lg2) return approximate_log2(x);
  if constexpr (f == Function::ex2) return approximate_exp2<ftz>(x);
  return approximate_tanh(x);
}

template <Function f, bool ftz>
struct ApproximateF32 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<float>(i.s[1]);
    if constexpr (f == Function::sin || f == Function::cos) {
      uint32_t large = 0;
      for (int l = 0; l < 32; ++l) large |= std::fabs(a[l]) > kLargestAngle ? 1u : 0u;
      if (large) [[unlikely]]
        return one_by_one(w, i, lanes);
    }
    each_lane(
        lanes, w.row<float>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          if constexpr (f == Function::ex2) return approximate_exp2<ftz>(a[l]);
          const float r = approximate<f, ftz>(ftz ? flush(a[l]) : a[l]);
          if constexpr (f == Function::rcp) return canonical(ftz ? flush(r) : r);
          // Only the reciprocal of a normal number can be subnormal.
          if constexpr (f == Function::sqrt || f == Function::rsqrt) return canonical(r);
          return r;
        });
  }
  [[gnu::noinline]] static void one_by_one(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<float>(i.s[1]);
    each_lane(lanes, w.row<float>(i.s[0]), [&](int l) {
      const auto r = static_cast<float>(evaluate(f, ftz ? flush(a[l]) : a[l]));
      return canonical(ftz ? flush(r) : r);
    });
  }
};

Flow run_approx_f64(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const MathSpec*>(i.extra);
  const auto* a = w.row<double>(i.s[1]);
  // "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64": only the upper 32 bits of operand and result carry
  // anything.
  each_lane(lanes, w.row<uint64_t>(i.s[0]), [&](int l) {
    auto bits = std::bit_cast<uint64_t>(a[l]) & ~uint64_t{0xFFFFFFFF};
    if ((bits & 0x7FF0000000000000u) == 0) bits &= uint64_t{1} << 63;
    auto r = std::bit_cast<uint64_t>(evaluate(s.function, std::bit_cast<double>(bits)));
    if ((r & 0x7FF0000000000000u) == 0) r &= uint64_t{1} << 63;
    return r & ~uint64_t{0xFFFFFFFF};
  });
  return Flow::next;
}

// ex2 and tanh of a row of codes; `result` may be `codes`.
template <DType format, VectorLevel level>
[[gnu::always_inline]] inline void exp2_codes(const uint16_t* codes, uint16_t* result) {
  float value[kCodes];
  uint16_t nearest[kCodes];
  widen_row<format, level>(codes, value);
  for (float& v : value) v = approximate_exp2_of_half(v);
  narrow_row<format, level, Nans::none>(value, nearest);
#pragma GCC ivdep
  for (int e = 0; e < kCodes; ++e) {
    // There is only "ex2.approx.ftz.bf16". What is subnormal in an f32 is zero in f16.
    const bool zero = format == DType::bf16 && (nearest[e] & 0x7F80) == 0;
    const uint16_t r = zero ? uint16_t{0} : nearest[e];
    result[e] = is_nan<format>(codes[e]) ? kNanHalf : r;
  }
}

#if defined(__x86_64__)
// Within a last place of the quotient; a division takes three times as long.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] inline void divide_avx512(float* over,
                                                                                const float* under, int n) {
  for (int e = 0; e < n; e += 16) {
    const __m512 x = _mm512_loadu_ps(over + e), y = _mm512_loadu_ps(under + e);
    const __m512 inverse = _mm512_maskz_rcp14_ps(0xFFFF, y), near = _mm512_mul_ps(x, inverse);
    _mm512_storeu_ps(over + e, _mm512_fmadd_ps(_mm512_fnmadd_ps(near, y, x), inverse, near));
  }
}
#endif

// over[e] /= under[e], near enough for a 16-bit result.
template <VectorLevel level>
[[gnu::always_inline]] inline void divide(float* over, const float* under, int n) {
#if defined(__x86_64__)
  if constexpr (level == VectorLevel::avx512) return divide_avx512(over, under, n);
#endif
  for (int e = 0; e < n; ++e) over[e] /= under[e];
}

template <DType format, VectorLevel level>
[[gnu::always_inline]] inline void tanh_codes(const uint16_t* codes, uint16_t* result) {
  constexpr uint16_t one_from = format == DType::f16 ? 0x449A : 0x4094;  // 4.602 and 4.625
  uint16_t sizes[kCodes], nearest[kCodes];
  for (int e = 0; e < kCodes; ++e) {
    const auto size = static_cast<uint16_t>(codes[e] & 0x7FFF);
    sizes[e] = size < one_from ? size : one_from;
  }
  float value[kCodes], under[kCodes];
  widen_row<format, level>(sizes, value);
  for (int e = 0; e < kCodes; ++e) {
    const Ratio ratio = tanh_ratio(value[e]);
    value[e] = ratio.over, under[e] = ratio.under;
  }
  divide<level>(value, under, kCodes);
  narrow_row<format, level, Nans::none>(value, nearest);
#pragma GCC ivdep
  for (int e = 0; e < kCodes; ++e) {
    const auto r = static_cast<uint16_t>(nearest[e] | (codes[e] & 0x8000));
    result[e] = is_nan<format>(codes[e]) ? kNanHalf : r;
  }
}

// aux: the bits of the result's register.
template <Function f, DType format>
struct ApproximateHalf {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const uint32_t mask = i.aux;
      const bool whole = lanes == kAllLanes && mask == kAllLanes;
      uint32_t words[32];
      auto* result = whole ? w.row<uint16_t>(i.s[0]) : reinterpret_cast<uint16_t*>(words);
      if constexpr (f == Function::ex2) exp2_codes<format, level>(w.row<uint16_t>(i.s[1]), result);
      else tanh_codes<format, level>(w.row<uint16_t>(i.s[1]), result);
      if (whole) return;
      each_lane(
          lanes,
          w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return words[l] & mask; });
    }
  };
};

// ---- correctly rounded div, rcp and sqrt. aux: bits 0-1 direction, bit 2 ftz ----

enum class Exact : int64_t { div, rcp, sqrt };

template <class T>
Flow run_exact(Warp& w, const Inst& i, uint32_t lanes) {
  const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]);
  const auto what = static_cast<Exact>(i.imm);
  const bool ftz = (i.aux & 4) && sizeof(T) == 4;
  auto flushed = [&](T v) {
    if constexpr (sizeof(T) == 4) return ftz ? flush(v) : v;
    else return v;
  };
  T value[32] = {};
  {
    const RoundingScope scope(static_cast<Round>(i.aux & 3));
    for (int l = 0; l < 32; ++l) {
      if (!(lanes >> l & 1)) continue;
      volatile T x = flushed(a[l]);
      volatile T y = what == Exact::div ? flushed(b[l]) : T{1};
      volatile T r;
      if (what == Exact::div) r = x / y;
      else if (what == Exact::rcp) r = y / x;
      else r = std::sqrt(T{x});
      value[l] = r;
    }
  }
  each_lane(lanes, w.row<T>(i.s[0]), [&](int l) { return canonical(flushed(value[l])); });
  return Flow::next;
}

// To nearest, as vector code.
template <Exact what, class T, bool ftz>
struct NearestExact {
  [[gnu::always_inline]] static T flushed(T v) {
    if constexpr (ftz && sizeof(T) == 4) return flush(v);
    else return v;
  }
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[what == Exact::div ? 2 : 1]);
    each_lane(
        lanes, w.row<T>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const T x = flushed(a[l]), y = flushed(b[l]);
          T r;
          if constexpr (what == Exact::div) r = x / y;
          else if constexpr (what == Exact::rcp) r = T{1} / x;
          else if constexpr (sizeof(T) == 4) r = __builtin_sqrtf(x);
          else r = __builtin_sqrt(x);
          return canonical(flushed(r));
        });
  }
};
template <class T, bool ftz>
Handler nearest_exact(Exact what) {
  switch (what) {
    case Exact::div: return handler<NearestExact<Exact::div, T, ftz>>();
    case Exact::rcp: return handler<NearestExact<Exact::rcp, T, ftz>>();
    default: return handler<NearestExact<Exact::sqrt, T, ftz>>();
  }
}

void decode_exact(Decoding& d, Exact what, Type type, std::string_view round, bool ftz) {
  d.inst.imm = static_cast<int64_t>(what);
  d.inst.aux = (round == "rz" ? 1u : round == "rm" ? 2u : round == "rp" ? 3u : 0u) | (ftz ? 4u : 0u);
  d.inst.s[0] = d.destination(0, ptx::bytes(type));
  d.inst.s[1] = d.float_source(d.operand(1), type);
  if (what == Exact::div) d.inst.s[2] = d.float_source(d.operand(2), type);
  if (d.inst.aux & 3) d.inst.run = type == Type::f64 ? &run_exact<double> : &run_exact<float>;
  else if (type == Type::f64) d.inst.run = nearest_exact<double, false>(what);
  else d.inst.run = ftz ? nearest_exact<float, true>(what) : nearest_exact<float, false>(what);
}

void decode_div(Decoding& d) {
  const Type type = type_of(d);
  if (type != Type::f32 && type != Type::f64) return decode_integer_div(d, d.take_type());
  const auto round = d.take_one_of({"rn", "rz", "rm", "rp", "approx", "full"});
  const bool ftz = d.take("ftz");
  d.take_type();
  decode_exact(d, Exact::div, type, round, ftz);  // .approx and .full may be less exact on a GPU: 2 ulp
}

template <Function f>
void decode_math(Decoding& d) {
  const auto round = d.take_one_of({"rn", "rz", "rm", "rp", "approx"});
  const bool ftz = d.take("ftz");
  const Type type = d.take_type();
  if (round != "approx" && !round.empty()) {
    if (f != Function::rcp && f != Function::sqrt) d.unsupported("this rounding");
    return decode_exact(d, f == Function::rcp ? Exact::rcp : Exact::sqrt, type, round, ftz);
  }
  switch (type) {
    case Type::f32:
      d.inst.s[0] = d.destination(0, 4);
      d.inst.s[1] = d.float_source(d.operand(1), type);
      d.inst.run = ftz ? handler<ApproximateF32<f, true>>() : handler<ApproximateF32<f, false>>();
      return;
    case Type::f64:
      d.inst.s[0] = d.destination(0, 8);
      d.inst.s[1] = d.float_source(d.operand(1), type);
      d.inst.extra = d.keep(MathSpec{f});
      d.inst.run = &run_approx_f64;
      return;
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
      if constexpr (f == Function::ex2 || f == Function::tanh) {
        const bool packed = type == Type::f16x2 || type == Type::bf16x2;
        d.inst.s[0] = d.destination(0, packed ? 4 : 2);
        d.inst.s[1] = d.source(1, packed ? 4 : 2);
        d.inst.aux = packed ? kAllLanes : 0xFFFF;
        d.inst.run = type == Type::f16 || type == Type::f16x2
                         ? level_handler<ApproximateHalf<f, DType::f16>::template Kernel>()
                         : level_handler<ApproximateHalf<f, DType::bf16>::template Kernel>();
        return;
      }
      [[fallthrough]];
    default: d.unsupported("this type");
  }
}

}  // namespace

void register_math(Registry& r) {
  r.add("div", &decode_div);
  r.add("rcp", &decode_math<Function::rcp>);
  r.add("sqrt", &decode_math<Function::sqrt>);
  r.add("rsqrt", &decode_math<Function::rsqrt>);
  r.add("sin", &decode_math<Function::sin>);
  r.add("cos", &decode_math<Function::cos>);
  r.add("lg2", &decode_math<Function::lg2>);
  r.add("ex2", &decode_math<Function::ex2>);
  r.add("tanh", &decode_math<Function::tanh>);
}

}  // namespace tw::sim
