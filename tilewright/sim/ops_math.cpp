#include <cmath>

#include "tilewright/base/formats.h"
#include "tilewright/sim/arithmetic.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Floating-Point Instructions": div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh. The .approx forms
// are computed in double and rounded to nearest: they lie within the errors the ISA allows, but a GPU's own
// approximation may differ from them by those errors (for f32: ex2, lg2, rcp, rsqrt, sqrt a few units in the
// last place; sin, cos 2^-20.5 absolute; tanh 2^-11 relative).
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
  bool ftz = false;
};

Flow run_approx_f32(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const MathSpec*>(i.extra);
  const auto* a = w.row<float>(i.s[1]);
  float value[32] = {};
  for (int l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    const auto r = static_cast<float>(evaluate(s.function, s.ftz ? flush(a[l]) : a[l]));
    value[l] = canonical(s.ftz ? flush(r) : r);
  }
  each_lane(lanes, w.row<float>(i.s[0]), [&](int l) { return value[l]; });
  return Flow::next;
}

// 2^x as vector code: x = n + f with |f| <= 1/2; 2^f = 1 + f q(f) in double, q by a Remez exchange (relative
// error of 2^f below 5e-11, none at f = 0), scaled by the exponent; one rounding to f32 at the end.
template <bool ftz>
struct Exp2 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    constexpr double magic =
        6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    const auto* a = w.row<float>(i.s[1]);
    float x[32], r[32];
    for (int l = 0; l < 32; ++l) {
      const float v = ftz ? flush(a[l]) : a[l];
      x[l] = v > -200.0f ? (v < 200.0f ? v : 200.0f) : -200.0f;
    }
    for (int l = 0; l < 32; ++l) {
      const double wide = x[l], shifted = wide + magic;
      const double f = wide - (shifted - magic);
      const uint64_t exponent = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
      double p = __builtin_fma(0.0000151961562713935712, f, 0.000154667563059500542);
      p = __builtin_fma(p, f, 0.0013333935056542881);
      p = __builtin_fma(p, f, 0.00961803813211011838);
      p = __builtin_fma(p, f, 0.0555041036599077211);
      p = __builtin_fma(p, f, 0.240226510665606161);
      p = __builtin_fma(p, f, 0.693147180704532088);
      r[l] = static_cast<float>(__builtin_fma(p, f, 1.0) * std::bit_cast<double>(exponent));
    }
    each_lane(
        lanes, w.row<float>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return as_float(a[l] == a[l] ? as_bits(ftz ? flush(r[l]) : r[l]) : kNanF32);
        });
  }
};

// 1 / x and sqrt(x), to nearest: the same as from double, whose 53 bits are more than 2 * 24 + 2.
template <Function f, bool ftz>
struct NearestF32 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<float>(i.s[1]);
    each_lane(
        lanes, w.row<float>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const float x = ftz ? flush(a[l]) : a[l];
          const float r = f == Function::rcp ? 1.0f / x : __builtin_sqrtf(x);
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

struct HalfMath {
  Function function;
  DType format;
  bool packed, ftz;
};
Flow run_approx_half(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const HalfMath*>(i.extra);
  const auto* a = w.row<uint32_t>(i.s[1]);
  auto one = [&](uint32_t code) {
    if (s.ftz && (code & 0x7F80) == 0) code &= 0x8000;  // bf16
    uint32_t r = from_double(s.format, evaluate(s.function, to_double(s.format, code)));
    if (s.ftz && (r & 0x7F80) == 0) r &= 0x8000;
    return r;
  };
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int l) {
    const uint32_t low = one(a[l] & 0xFFFF);
    return s.packed ? one(a[l] >> 16) << 16 | low : low;
  });
  return Flow::next;
}

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

void decode_exact(Decoding& d, Exact what, Type type, std::string_view round, bool ftz) {
  d.inst.imm = static_cast<int64_t>(what);
  d.inst.aux = (round == "rz" ? 1u : round == "rm" ? 2u : round == "rp" ? 3u : 0u) | (ftz ? 4u : 0u);
  d.inst.s[0] = d.destination(0, ptx::bytes(type));
  d.inst.s[1] = d.float_source(d.operand(1), type);
  if (what == Exact::div) d.inst.s[2] = d.float_source(d.operand(2), type);
  d.inst.run = type == Type::f64 ? &run_exact<double> : &run_exact<float>;
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
      d.inst.extra = d.keep(MathSpec{f, ftz});
      d.inst.run = &run_approx_f32;
      if constexpr (f == Function::ex2) d.inst.run = ftz ? handler<Exp2<true>>() : handler<Exp2<false>>();
      if constexpr (f == Function::rcp || f == Function::sqrt)
        d.inst.run = ftz ? handler<NearestF32<f, true>>() : handler<NearestF32<f, false>>();
      return;
    case Type::f64:
      d.inst.s[0] = d.destination(0, 8);
      d.inst.s[1] = d.float_source(d.operand(1), type);
      d.inst.extra = d.keep(MathSpec{f, true});
      d.inst.run = &run_approx_f64;
      return;
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2: {
      const bool packed = type == Type::f16x2 || type == Type::bf16x2;
      const DType format = type == Type::f16 || type == Type::f16x2 ? DType::f16 : DType::bf16;
      d.inst.s[0] = d.destination(0, packed ? 4 : 2);
      d.inst.s[1] = d.source(1, packed ? 4 : 2);
      d.inst.extra = d.keep(HalfMath{f, format, packed, ftz});
      d.inst.run = &run_approx_half;
      return;
    }
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
