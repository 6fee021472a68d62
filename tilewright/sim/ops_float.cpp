#include <cmath>
#include <limits>

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

// The host computes what lies between two of these as it is written: `values` are in memory here.
[[gnu::always_inline]] inline void computed(const void* values) {
  asm volatile("" : : "r"(values) : "memory");
}

// Any direction. f32x2 as 64 lanes, both halves of each 64-bit element. aux: bits 0-1 direction, bit 2 ftz,
// bit 3 sat.
template <class F, class T, int operands, int elements = 32>
struct Directed {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const bool ftz = i.aux & 4, sat = i.aux & 8;
    const T *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]), *c = operands == 3 ? w.row<T>(i.s[3]) : a;
    T x[3][elements], value[elements];
    for (int l = 0; l < elements; ++l) {
      if constexpr (sizeof(T) == 4) {
        x[0][l] = ftz ? flush(a[l]) : a[l], x[1][l] = ftz ? flush(b[l]) : b[l],
        x[2][l] = ftz ? flush(c[l]) : c[l];
      } else {
        x[0][l] = a[l], x[1][l] = b[l], x[2][l] = c[l];
      }
    }
    computed(x);
    {
      const RoundingScope scope(static_cast<Round>(i.aux & 3));
      computed(x);
      for (int l = 0; l < elements; ++l) {
        if constexpr (operands == 3) value[l] = F::apply(x[0][l], x[1][l], x[2][l]);
        else value[l] = F::apply(x[0][l], x[1][l]);
      }
      computed(value);
    }
    if constexpr (sizeof(T) == 4) {
      for (T& v : value) v = sat ? saturate(v) : canonical(ftz ? flush(v) : v);
    }
    auto* d = w.row<T>(i.s[0]);
    constexpr int per_lane = elements / 32;
    for (int l = 0; l < elements; ++l) d[l] = (lanes >> (l / per_lane) & 1) ? value[l] : d[l];
  }
};

// f32x2, to nearest.
template <class F, int operands, bool ftz>
struct PairNearest {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<float>(i.s[1]), *b = w.row<float>(i.s[2]),
               *c = operands == 3 ? w.row<float>(i.s[3]) : a;
    float value[64];
    for (int l = 0; l < 64; ++l) {
      const float x = input<float, ftz>(a[l]), y = input<float, ftz>(b[l]);
      if constexpr (operands == 3)
        value[l] = result<float, ftz, false>(F::apply(x, y, input<float, ftz>(c[l])));
      else value[l] = result<float, ftz, false>(F::apply(x, y));
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
  if (m.round != Round::rn) {
    if (type == Type::f64) d.inst.run = handler<Directed<F, double, operands>>();
    else if (type == Type::f32) d.inst.run = handler<Directed<F, float, operands>>();
    else d.inst.run = handler<Directed<F, float, operands, 64>>();
  } else if (type == Type::f64) {
    d.inst.run = nearest_handler<F, double, false, false>();
  } else if (type == Type::f32x2) {
    d.inst.run =
        m.ftz ? handler<PairNearest<F, operands, true>>() : handler<PairNearest<F, operands, false>>();
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

// ---- min, max ----

template <bool is_max>
struct MinMaxF64 {
  [[gnu::always_inline]] static double apply(double a, double b) {
    const bool a_less = a < b || (a == b && std::signbit(a));  // -0 < +0
    const double number = a_less == is_max ? b : a;
    // A NaN of two stays as a GPU leaves it: canonical.
    return a != a ? (b != b ? std::numeric_limits<double>::quiet_NaN() : b) : b != b ? a : number;
  }
};

// f32, as vector code on the bits.
template <bool is_max, bool ftz, bool nan, bool xorsign>
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
    const uint32_t sign = xorsign ? (a ^ b) & 0x80000000 : 0;
    if constexpr (xorsign) a &= 0x7FFFFFFF, b &= 0x7FFFFFFF;
    const bool a_nan = (a & 0x7FFFFFFF) > 0x7F800000, b_nan = (b & 0x7FFFFFFF) > 0x7F800000;
    const uint32_t number = (order(a) < order(b)) == is_max ? b : a;
    const uint32_t r = a_nan ? b : b_nan ? a : number;
    return (nan ? a_nan | b_nan : a_nan & b_nan) ? kNanF32 : r | sign;
  }
  // Of two rows, or of three.
  template <bool three>
  struct Rows {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto *a = w.row<uint32_t>(i.s[1]), *b = w.row<uint32_t>(i.s[2]);
      if constexpr (!three) {
        each_lane(
            lanes,
            w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return apply(a[l], b[l]); });
      } else {
        uint32_t both[32];
        for (int l = 0; l < 32; ++l) both[l] = apply(a[l], b[l]);
        const auto* c = w.row<uint32_t>(i.s[3]);
        each_lane(
            lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
              return apply(both[l], c[l]);
            });
      }
    }
  };
};
template <bool is_max, bool ftz, bool nan, bool xorsign>
Handler min_max_f32(bool three) {
  using F = MinMaxF32<is_max, ftz, nan, xorsign>;
  return three ? handler<typename F::template Rows<true>>() : handler<typename F::template Rows<false>>();
}
template <bool is_max, bool ftz>
Handler min_max_f32(bool nan, bool xorsign, bool three) {
  if (xorsign)
    return nan ? min_max_f32<is_max, ftz, true, true>(three) : min_max_f32<is_max, ftz, false, true>(three);
  return nan ? min_max_f32<is_max, ftz, true, false>(three) : min_max_f32<is_max, ftz, false, false>(three);
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
  if (type == Type::f64) d.inst.run = handler<Binary<MinMaxF64<is_max>, double>>();
  else
    d.inst.run = ftz ? min_max_f32<is_max, true>(nan, xorsign, operands == 4)
                     : min_max_f32<is_max, false>(nan, xorsign, operands == 4);
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

// testp on the bits; zeros count as normal.
enum class TestKind : uint8_t { finite, infinite, number, notanumber, normal, subnormal };

template <TestKind kind, class Bits>
struct TestP {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    constexpr int digits = sizeof(Bits) == 4 ? 23 : 52;
    constexpr Bits infinity = sizeof(Bits) == 4 ? Bits{0x7F800000} : static_cast<Bits>(uint64_t{0x7FF} << 52);
    const auto* a = w.row<Bits>(i.s[1]);
    uint32_t& d = w.mask(i.s[0]);
    d = each_lane_mask(
        lanes, d, [&](int l) __attribute__((always_inline)) {
          const Bits size = a[l] & (~Bits{0} >> 1);
          const bool subnormal = size - 1 < (Bits{1} << digits) - 1;
          switch (kind) {
            case TestKind::finite: return size < infinity;
            case TestKind::infinite: return size == infinity;
            case TestKind::number: return size <= infinity;
            case TestKind::notanumber: return size > infinity;
            case TestKind::normal: return size < infinity && !subnormal;
            case TestKind::subnormal: return subnormal;
          }
          return false;
        });
  }
};
template <class Bits>
Handler testp_handler(TestKind kind) {
  switch (kind) {
    case TestKind::finite: return handler<TestP<TestKind::finite, Bits>>();
    case TestKind::infinite: return handler<TestP<TestKind::infinite, Bits>>();
    case TestKind::number: return handler<TestP<TestKind::number, Bits>>();
    case TestKind::notanumber: return handler<TestP<TestKind::notanumber, Bits>>();
    case TestKind::normal: return handler<TestP<TestKind::normal, Bits>>();
    default: return handler<TestP<TestKind::subnormal, Bits>>();
  }
}

void decode_testp(Decoding& d) {
  constexpr std::string_view names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  auto kind = TestKind::finite;
  for (size_t n = 0; n < 6; ++n) {
    if (d.take(names[n])) kind = static_cast<TestKind>(n);
  }
  const Type type = d.take_type();
  d.inst.s[0] = d.predicate_destination(d.operand(0));
  d.inst.s[1] = d.float_source(d.operand(1), type);
  d.inst.run = type == Type::f64 ? testp_handler<uint64_t>(kind) : testp_handler<uint32_t>(kind);
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
