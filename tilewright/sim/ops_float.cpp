#include <cmath>

#include "tilewright/sim/arithmetic.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Floating-Point Instructions": add, sub, mul, fma, mad, min, max, abs, neg, copysign, testp.
namespace tw::sim {

namespace {

using ptx::Type;

struct FloatAdd {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return a + b;
  }
};
struct FloatSub {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return a - b;
  }
};
struct FloatMul {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) {
    return a * b;
  }
};
struct FloatFma {
  [[gnu::always_inline]] static float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  [[gnu::always_inline]] static double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

template <class T, bool ftz>
[[gnu::always_inline]] inline T input(T v) {
  if constexpr (ftz && sizeof(T) == 4) return flush(v);
  else return v;
}
template <class T, bool ftz, bool sat>
[[gnu::always_inline]] inline T result(T v) {
  if constexpr (sizeof(T) == 8) return v;
  else if constexpr (sat) return saturate(v);
  else if constexpr (ftz) return canonical(flush(v));
  else return canonical(v);
}

// |x * y| < 2^-126 exactly, for x and y that are no subnormals: one factor below 1 is scaled by 2^100, so
// that nothing underflows, and fma keeps the sign of the difference.
[[gnu::always_inline]] inline bool tiny_product(float x, float y) {
  const float a = std::fabs(x), b = std::fabs(y);
  const bool first = a < 1.0f;
  return __builtin_fmaf(first ? a * 0x1p100f : a, first ? b : b * 0x1p100f, -0x1p-26f) < 0.0f;
}

// Two or three operands, to nearest. Packed f32x2 has 64 lanes instead of 32, two in each 64-bit element.
template <class F, class T, bool ftz, bool sat>
struct FloatBinary {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]);
    each_lane(
        lanes, w.row<T>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const T x = input<T, ftz>(a[l]), y = input<T, ftz>(b[l]);
          T r = F::apply(x, y);
          // A product is flushed when it is tiny before rounding, as an H200 does.
          if constexpr (std::is_same_v<F, FloatMul> && ftz && sizeof(T) == 4)
            r = tiny_product(x, y) ? r * 0.0f : r;
          return result<T, ftz, sat>(r);
        });
  }
};
template <class T, bool ftz, bool sat>
struct FloatTernary {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]), *c = w.row<T>(i.s[3]);
    each_lane(
        lanes, w.row<T>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return result<T, ftz, sat>(
              FloatFma::apply(input<T, ftz>(a[l]), input<T, ftz>(b[l]), input<T, ftz>(c[l])));
        });
  }
};

// Any direction, scalar. aux: bits 0-1 direction, bit 2 ftz, bit 3 sat. Volatile keeps the operation between
// the changes of the rounding direction.
template <class F, class T, int operands>
Flow run_directed(Warp& w, const Inst& i, uint32_t lanes) {
  const bool ftz = i.aux & 4, sat = i.aux & 8;
  const T* row[3] = {w.row<T>(i.s[1]), w.row<T>(i.s[2]), operands == 3 ? w.row<T>(i.s[3]) : nullptr};
  T value[32];
  {
    const RoundingScope scope(static_cast<Round>(i.aux & 3));
    for (int l = 0; l < 32; ++l) {
      volatile T x[3] = {};
      for (int n = 0; n < operands; ++n) {
        T v = row[n][l];
        if constexpr (sizeof(T) == 4) v = ftz ? flush(v) : v;
        x[n] = v;
      }
      const T a = x[0], b = x[1], c = x[2];
      volatile T r;
      if constexpr (operands == 3) {
        r = F::apply(a, b, c);
      } else {
        r = F::apply(a, b);
        (void)c;
      }
      value[l] = r;
    }
  }
  if constexpr (sizeof(T) == 4) {
    for (T& v : value) v = sat ? saturate(v) : canonical(ftz ? flush(v) : v);
  }
  each_lane(lanes, w.row<T>(i.s[0]), [&](int l) { return value[l]; });
  return Flow::next;
}

// f32x2: both halves of each 64-bit element.
template <class F, int operands>
Flow run_pair(Warp& w, const Inst& i, uint32_t lanes) {
  const bool ftz = i.aux & 4;
  const float* row[3] = {w.row<float>(i.s[1]), w.row<float>(i.s[2]),
                         operands == 3 ? w.row<float>(i.s[3]) : nullptr};
  float value[64];
  const RoundingScope scope(static_cast<Round>(i.aux & 3));
  for (int l = 0; l < 64; ++l) {
    volatile float x[3] = {};
    for (int n = 0; n < operands; ++n) x[n] = ftz ? flush(row[n][l]) : row[n][l];
    volatile float r;
    if constexpr (operands == 3) r = F::apply(x[0], x[1], x[2]);
    else r = F::apply(float{x[0]}, float{x[1]});
    value[l] = canonical(ftz ? flush(r) : float{r});
  }
  auto* d = w.row<float>(i.s[0]);
  for (int l = 0; l < 64; ++l) {
    if (lanes >> (l / 2) & 1) d[l] = value[l];
  }
  return Flow::next;
}
template <class F, int operands>
struct PairNearest {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<float>(i.s[1]), *b = w.row<float>(i.s[2]),
               *c = operands == 3 ? w.row<float>(i.s[3]) : a;
    float value[64];
    for (int l = 0; l < 64; ++l) {
      if constexpr (operands == 3) value[l] = canonical(F::apply(a[l], b[l], c[l]));
      else value[l] = canonical(F::apply(a[l], b[l]));
    }
    auto* d = w.row<float>(i.s[0]);
    if (lanes == kAllLanes) {
      for (int l = 0; l < 64; ++l) d[l] = value[l];
    } else {
      for (int l = 0; l < 64; ++l) d[l] = (lanes >> (l / 2) & 1) ? value[l] : d[l];
    }
  }
};

struct FloatModifiers {
  Round round = Round::rn;
  bool ftz = false, sat = false;
};
FloatModifiers take_float_modifiers(Decoding& d) {
  FloatModifiers m;
  const auto r = d.take_one_of({"rn", "rz", "rm", "rp"});
  m.round = r == "rz" ? Round::rz : r == "rm" ? Round::rm : r == "rp" ? Round::rp : Round::rn;
  m.ftz = d.take("ftz");
  m.sat = d.take("sat");
  return m;
}

void float_operands(Decoding& d, Type type, size_t count) {
  d.inst.s[0] = d.destination(0, ptx::bytes(type));
  for (size_t n = 1; n < count; ++n) d.inst.s[n] = d.float_source(d.operand(n), type);
}

template <class F, class T, bool ftz, bool sat>
Handler nearest_handler() {
  if constexpr (std::is_same_v<F, FloatFma>) return handler<FloatTernary<T, ftz, sat>>();
  else return handler<FloatBinary<F, T, ftz, sat>>();
}

template <class F>
void decode_float(Decoding& d, const FloatModifiers& m, Type type) {
  constexpr int operands = std::is_same_v<F, FloatFma> ? 3 : 2;
  float_operands(d, type, operands + 1);
  d.inst.aux = static_cast<uint32_t>(m.round) | (m.ftz ? 4u : 0u) | (m.sat ? 8u : 0u);
  if (type == Type::f64) {
    d.inst.run = m.round == Round::rn ? nearest_handler<F, double, false, false>()
                                      : &run_directed<F, double, operands>;
  } else if (type == Type::f32x2) {
    d.inst.run =
        m.round == Round::rn && !m.ftz ? handler<PairNearest<F, operands>>() : &run_pair<F, operands>;
  } else if (m.round != Round::rn) {
    d.inst.run = &run_directed<F, float, operands>;
  } else if (m.sat) {
    d.inst.run = m.ftz ? nearest_handler<F, float, true, true>() : nearest_handler<F, float, false, true>();
  } else {
    d.inst.run = m.ftz ? nearest_handler<F, float, true, false>() : nearest_handler<F, float, false, false>();
  }
}

bool is_wide_float(Type t) { return t == Type::f32 || t == Type::f64 || t == Type::f32x2; }
bool is_half(Type t) { return t == Type::f16 || t == Type::f16x2 || t == Type::bf16 || t == Type::bf16x2; }

void decode_add(Decoding& d) {
  if (d.ptx.has("cc")) return decode_add_cc(d);
  const Type type = type_of(d);
  if (is_half(type)) return decode_half(d, HalfOp::add);
  if (!is_wide_float(type)) return decode_integer_add(d, d.take_type());
  const FloatModifiers m = take_float_modifiers(d);
  d.take_type();
  if (is_half(type_of(d))) return decode_mixed(d, HalfOp::add, m.round, m.sat);
  decode_float<FloatAdd>(d, m, type);
}

void decode_sub(Decoding& d) {
  if (d.ptx.has("cc")) return decode_sub_cc(d);
  const Type type = type_of(d);
  if (is_half(type)) return decode_half(d, HalfOp::sub);
  if (!is_wide_float(type)) return decode_integer_sub(d, d.take_type());
  const FloatModifiers m = take_float_modifiers(d);
  d.take_type();
  if (is_half(type_of(d))) return decode_mixed(d, HalfOp::sub, m.round, m.sat);
  decode_float<FloatSub>(d, m, type);
}

void decode_mul(Decoding& d) {
  const Type type = type_of(d);
  if (is_half(type)) return decode_half(d, HalfOp::mul);
  if (!is_wide_float(type)) return decode_integer_mul(d, d.take_type());
  const FloatModifiers m = take_float_modifiers(d);
  d.take_type();
  decode_float<FloatMul>(d, m, type);
}

void decode_fma(Decoding& d) {
  const Type type = type_of(d);
  if (is_half(type)) return decode_half(d, HalfOp::fma);
  const FloatModifiers m = take_float_modifiers(d);
  d.take_type();
  if (is_half(type_of(d))) return decode_mixed(d, HalfOp::fma, m.round, m.sat);
  if (!is_wide_float(type)) d.unsupported("this type");
  decode_float<FloatFma>(d, m, type);
}

void decode_mad(Decoding& d) {
  if (d.ptx.has("cc")) return decode_mad_cc(d);
  const Type type = type_of(d);
  if (is_wide_float(type)) return decode_fma(d);  // "mad.f32" is fma on sm_20 and later
  const auto half = d.take_one_of({"lo", "hi", "wide"});
  decode_integer_mad(d, d.take_type(), half);
}

// ---- min, max: aux bit 0 max, 1 ftz, 2 NaN, 3 xorsign.abs, 4 three operands ----

template <class T>
T min_max(T a, T b, uint32_t aux) {
  const bool sign = std::signbit(a) != std::signbit(b);
  if (aux & 8) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  const T nan = sizeof(T) == 4 ? static_cast<T>(as_float(kNanF32)) : std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a) || std::isnan(b)) {
    if ((aux & 4) || (std::isnan(a) && std::isnan(b))) return nan;
    const T r = std::isnan(a) ? b : a;
    return (aux & 8) ? std::copysign(r, sign ? T{-1} : T{1}) : r;
  }
  const bool a_less = a < b || (a == b && std::signbit(a));  // -0 < +0
  T r = (aux & 1) ? (a_less ? b : a) : (a_less ? a : b);
  if (aux & 8) r = std::copysign(r, sign ? T{-1} : T{1});
  return r;
}

template <class T>
Flow run_min_max(Warp& w, const Inst& i, uint32_t lanes) {
  const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]), *c = w.row<T>(i.s[3]);
  each_lane(lanes, w.row<T>(i.s[0]), [&](int l) {
    T x = a[l], y = b[l], z = (i.aux & 16) ? c[l] : T{};
    if constexpr (sizeof(T) == 4) {
      if (i.aux & 2) x = flush(x), y = flush(y), z = flush(z);
    }
    const T r = min_max(x, y, i.aux);
    return (i.aux & 16) ? min_max(r, z, i.aux) : r;
  });
  return Flow::next;
}

// The two-operand forms of f32, as vector code on the bits.
template <bool is_max, bool ftz, bool nan>
struct MinMaxF32 {
  [[gnu::always_inline]] static uint32_t input(uint32_t v) {
    return ftz && (v & 0x7F800000) == 0 ? v & 0x80000000 : v;
  }
  // In the order of the values, -0 before +0.
  [[gnu::always_inline]] static int32_t order(uint32_t v) {
    const auto s = static_cast<int32_t>(v);
    return s ^ (s >> 31 & 0x7FFFFFFF);
  }
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b) {
    a = input(a), b = input(b);
    const bool a_nan = (a & 0x7FFFFFFF) > 0x7F800000, b_nan = (b & 0x7FFFFFFF) > 0x7F800000;
    const uint32_t number = (order(a) < order(b)) == is_max ? b : a;
    const uint32_t r = a_nan ? b : b_nan ? a : number;
    return (nan ? a_nan | b_nan : a_nan & b_nan) ? kNanF32 : r;
  }
};
template <bool is_max, bool ftz, bool nan>
Handler min_max_f32() {
  return handler<Binary<MinMaxF32<is_max, ftz, nan>, uint32_t>>();
}

template <bool is_max>
void decode_min_max(Decoding& d) {
  const Type type = type_of(d);
  if (is_half(type)) return decode_half(d, is_max ? HalfOp::max : HalfOp::min);
  if (type != Type::f32 && type != Type::f64) return decode_integer_min_max(d, d.take_type(), is_max);
  const bool ftz = d.take("ftz"), nan = d.take("NaN"), xorsign = d.take("xorsign");
  d.take("abs");
  d.take_type();
  const size_t operands = d.operand_count();
  float_operands(d, type, operands);
  d.inst.aux = (is_max ? 1u : 0u) | (ftz ? 2u : 0u) | (nan ? 4u : 0u) | (xorsign ? 8u : 0u) |
               (operands == 4 ? 16u : 0u);
  if (type == Type::f64) d.inst.run = &run_min_max<double>;
  else if (xorsign || operands == 4) d.inst.run = &run_min_max<float>;
  else if (ftz) d.inst.run = nan ? min_max_f32<is_max, true, true>() : min_max_f32<is_max, true, false>();
  else d.inst.run = nan ? min_max_f32<is_max, false, true>() : min_max_f32<is_max, false, false>();
}

// ---- signs ----

// A NaN becomes the canonical one, as an H200 does.
template <bool is_abs, bool ftz>
struct SignF32 {
  static uint32_t apply(uint32_t a) {
    const uint32_t v = ftz ? as_bits(flush(as_float(a))) : a;
    const uint32_t r = is_abs ? v & 0x7FFFFFFF : v ^ 0x80000000;
    return (a & 0x7FFFFFFF) > 0x7F800000 ? kNanF32 : r;
  }
};
struct AbsF64 {
  static uint64_t apply(uint64_t a) { return a & ~(uint64_t{1} << 63); }
};
struct NegF64 {
  static uint64_t apply(uint64_t a) {
    return (a << 1) > 0xFFE0000000000000u ? a : a ^ (uint64_t{1} << 63);  // a NaN stays as it is
  }
};

template <bool is_abs>
void decode_abs_neg(Decoding& d) {
  const Type type = type_of(d);
  if (is_half(type)) return decode_half(d, is_abs ? HalfOp::abs : HalfOp::neg);
  if (type != Type::f32 && type != Type::f64) return decode_integer_abs_neg(d, d.take_type(), is_abs);
  const bool ftz = d.take("ftz");
  d.take_type();
  float_operands(d, type, 2);
  if (type == Type::f64)
    d.inst.run = is_abs ? handler<Unary<AbsF64, uint64_t>>() : handler<Unary<NegF64, uint64_t>>();
  else
    d.inst.run = ftz ? handler<Unary<SignF32<is_abs, true>, uint32_t>>()
                     : handler<Unary<SignF32<is_abs, false>, uint32_t>>();
}

struct CopySign32 {
  static uint32_t apply(uint32_t a, uint32_t b) { return (b & 0x7FFFFFFF) | (a & 0x80000000); }
};
struct CopySign64 {
  static uint64_t apply(uint64_t a, uint64_t b) {
    constexpr uint64_t sign = uint64_t{1} << 63;
    return (b & ~sign) | (a & sign);
  }
};
void decode_copysign(Decoding& d) {
  const Type type = d.take_type();
  float_operands(d, type, 3);
  d.inst.run =
      type == Type::f64 ? handler<Binary<CopySign64, uint64_t>>() : handler<Binary<CopySign32, uint32_t>>();
}

enum class TestKind : int64_t { finite, infinite, number, notanumber, normal, subnormal };

template <class T>
Flow run_testp(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* a = w.row<T>(i.s[1]);
  uint32_t& d = w.mask(i.s[0]);
  d = each_lane_mask(lanes, d, [&](int l) {
    const T v = a[l];
    switch (static_cast<TestKind>(i.imm)) {
      case TestKind::finite: return std::isfinite(v);
      case TestKind::infinite: return std::isinf(v);
      case TestKind::number: return !std::isnan(v);
      case TestKind::notanumber: return std::isnan(v);
      case TestKind::normal: return std::isnormal(v) || v == 0;  // zeros count as normal ("testp")
      case TestKind::subnormal: break;
    }
    return std::fpclassify(v) == FP_SUBNORMAL;
  });
  return Flow::next;
}

void decode_testp(Decoding& d) {
  constexpr std::string_view names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (size_t n = 0; n < 6; ++n) {
    if (d.take(names[n])) d.inst.imm = static_cast<int64_t>(n);
  }
  const Type type = d.take_type();
  d.inst.s[0] = d.predicate_destination(d.operand(0));
  d.inst.s[1] = d.float_source(d.operand(1), type);
  d.inst.run = type == Type::f64 ? &run_testp<double> : &run_testp<float>;
}

}  // namespace

Type type_of(const Decoding& d) {
  for (size_t n = 1; n < d.ptx.tokens.size(); ++n) {
    if (auto type = ptx::type_from_name(d.ptx.tokens[n]); type && !d.taken(n)) return *type;
  }
  return Type::none;
}

void register_float(Registry& r) {
  r.add("add", &decode_add);
  r.add("sub", &decode_sub);
  r.add("mul", &decode_mul);
  r.add("fma", &decode_fma);
  r.add("mad", &decode_mad);
  r.add("min", &decode_min_max<false>);
  r.add("max", &decode_min_max<true>);
  r.add("abs", &decode_abs_neg<true>);
  r.add("neg", &decode_abs_neg<false>);
  r.add("copysign", &decode_copysign);
  r.add("testp", &decode_testp);
}

}  // namespace tw::sim
