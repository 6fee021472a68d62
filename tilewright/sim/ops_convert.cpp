#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/formats.h"
#include "tilewright/sim/convert.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/half_rows.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "cvt" between numbers; the packed forms are in ops_convert_packed.cpp.
namespace tw::sim {

namespace {

using ptx::Type;

enum class Integral : uint8_t { none, rni, rzi, rmi, rpi };

// A scalar conversion, described by data; the common pairs have kernels of their own below.
struct Conversion {
  Type to, from;
  int from_register = 4, to_register = 4;  // bytes of the rows' registers
  Integral integral = Integral::none;
  Rounding rounding = Rounding::rn;
  bool ftz = false, sat = false, satfinite = false, relu = false;
};

bool is_float_type(Type t) { return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64; }
bool is_signed_type(Type t) { return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64; }

DType float_dtype(Type t) { return t == Type::f16 ? DType::f16 : t == Type::bf16 ? DType::bf16 : DType::f32; }

double read_float(Type t, uint64_t bits, bool ftz) {
  if (t == Type::f64) return std::bit_cast<double>(bits);
  if (t == Type::f32) {
    const float v = as_float(static_cast<uint32_t>(bits));
    return ftz ? flush(v) : v;
  }
  return to_double(float_dtype(t), static_cast<uint32_t>(bits & 0xFFFF));
}

double round_integral(double v, Integral how) {
  switch (how) {
    case Integral::rni: return std::nearbyint(v);
    case Integral::rzi: return std::trunc(v);
    case Integral::rmi: return std::floor(v);
    case Integral::rpi: return std::ceil(v);
    case Integral::none: break;
  }
  return v;
}

// Float to integer: clamped to the range; NaN gives 0, or 2^(width-1) when a 64-bit type takes part.
uint64_t to_integer(double v, const Conversion& c) {
  const int width = 8 * ptx::bytes(c.to);
  if (std::isnan(v)) {
    const bool wide = c.from == Type::f64 || width == 64;
    return wide ? uint64_t{1} << (width - 1) : 0;
  }
  v = round_integral(v, c.integral);
  if (is_signed_type(c.to)) {
    const double limit = std::ldexp(1.0, width - 1);
    if (v >= limit) return (uint64_t{1} << (width - 1)) - 1;
    if (v < -limit) return uint64_t{0} - (uint64_t{1} << (width - 1));
    return static_cast<uint64_t>(static_cast<int64_t>(v));
  }
  if (v <= 0) return 0;
  if (v >= std::ldexp(1.0, width)) return width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  return static_cast<uint64_t>(v);
}

uint64_t write_float(Type t, double v, const Conversion& c) {
  if (c.sat) v = v > 0 ? (v < 1 ? v : 1.0) : 0.0;  // NaN to +0
  if (c.relu && !std::isnan(v) && (v < 0 || std::signbit(v))) v = 0;
  if (t == Type::f64) return std::bit_cast<uint64_t>(v);
  uint32_t bits = from_double(float_dtype(t), v, c.rounding, c.satfinite);
  if (c.ftz && t == Type::f32) bits = as_bits(flush(as_float(bits)));
  return bits;
}

// Integer to float: exact in double up to 53 bits; a 64-bit integer is rounded to odd first.
double integer_to_double(uint64_t bits, bool is_signed_source, const Conversion& c) {
  if (c.to == Type::f64) {
    const RoundingScope scope(c.rounding == Rounding::rz   ? Round::rz
                              : c.rounding == Rounding::rm ? Round::rm
                              : c.rounding == Rounding::rp ? Round::rp
                                                           : Round::rn);
    volatile uint64_t u = bits;
    volatile double r =
        is_signed_source ? static_cast<double>(static_cast<int64_t>(u)) : static_cast<double>(u);
    return r;
  }
  const bool negative = is_signed_source && static_cast<int64_t>(bits) < 0;
  uint64_t magnitude = negative ? uint64_t{0} - bits : bits;
  int shift = 0;
  if (magnitude >> 52) {
    shift = 12;
    const bool sticky = (magnitude & 0xFFF) != 0;
    magnitude = magnitude >> 12 | (sticky ? 1 : 0);
  }
  const double v = std::ldexp(static_cast<double>(magnitude), shift);
  return negative ? -v : v;
}

uint64_t read_integer(uint64_t bits, Type t) {
  const int shift = 64 - 8 * ptx::bytes(t);
  return is_signed_type(t) ? static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift)
                           : bits << shift >> shift;
}

uint64_t integer_to_integer(uint64_t v, const Conversion& c) {
  if (!c.sat) return v;
  const int width = 8 * ptx::bytes(c.to);
  const bool from_signed = is_signed_type(c.from), to_signed = is_signed_type(c.to);
  const bool negative = from_signed && static_cast<int64_t>(v) < 0;
  const uint64_t top = to_signed     ? (uint64_t{1} << (width - 1)) - 1
                       : width == 64 ? ~uint64_t{0}
                                     : (uint64_t{1} << width) - 1;
  if (negative) {
    if (!to_signed) return 0;
    const int64_t low = -static_cast<int64_t>(top) - 1;
    return static_cast<uint64_t>(std::max(static_cast<int64_t>(v), low));
  }
  return std::min(v, top);
}

uint64_t convert(uint64_t raw, const Conversion& c) {
  const bool from_float_type = is_float_type(c.from), to_float_type = is_float_type(c.to);
  if (!from_float_type) {
    const uint64_t v = read_integer(raw, c.from);
    if (!to_float_type) return integer_to_integer(v, c);
    return write_float(c.to, integer_to_double(v, is_signed_type(c.from), c), c);
  }
  const double v = read_float(c.from, raw, c.ftz);
  if (!to_float_type) return to_integer(v, c);
  // NaNs keep sign and payload on the way to and from f64, as on an H200.
  if (std::isnan(v) && c.to == Type::f64 && c.from != Type::f64) {
    const int digits = c.from == Type::f16    ? 10
                       : c.from == Type::bf16 ? 7
                                              : 23,
              width = 8 * ptx::bytes(c.from);
    const uint64_t mantissa = raw & ((uint64_t{1} << digits) - 1);
    return (raw >> (width - 1) & 1) << 63 | 0x7FF8000000000000u | mantissa << (52 - digits);
  }
  if (std::isnan(v) && c.to == Type::f32 && c.from == Type::f64 && !c.sat)
    return (raw >> 32 & 0x80000000u) | 0x7FC00000u | (raw >> 29 & 0x3FFFFF);
  if (std::isnan(v) && c.to == Type::f16 && c.from == Type::f64 && !c.sat)
    return (raw >> 48 & 0x8000u) | 0x7E00u | (raw >> 42 & 0x1FF);
  return write_float(c.to, round_integral(v, c.integral), c);
}

Flow run_convert(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& c = *static_cast<const Conversion*>(i.extra);
  const int bytes = ptx::bytes(c.to);
  uint64_t value[32];
  for (int l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    const uint64_t raw = c.from_register == 8 ? w.row<uint64_t>(i.s[1])[l] : w.row<uint32_t>(i.s[1])[l];
    uint64_t v = convert(raw, c);
    // A wider register than the type: signed results are extended with their sign.
    if (bytes < 8 && !is_float_type(c.to)) {
      const int shift = 64 - 8 * bytes;
      v = is_signed_type(c.to) ? static_cast<uint64_t>(static_cast<int64_t>(v << shift) >> shift)
                               : v << shift >> shift;
    }
    value[l] = v;
  }
  if (c.to_register == 8) {
    for (int l = 0; l < 32; ++l)
      if (lanes >> l & 1) w.row<uint64_t>(i.s[0])[l] = value[l];
  } else {
    const uint32_t mask = c.to_register == 2 ? 0xFFFF : kAllLanes;
    for (int l = 0; l < 32; ++l)
      if (lanes >> l & 1) w.row<uint32_t>(i.s[0])[l] = static_cast<uint32_t>(value[l]) & mask;
  }
  return Flow::next;
}

// ---- kernels of the common pairs ----

struct SignedToFloat {
  static float apply(int32_t v) { return static_cast<float>(v); }
};
struct UnsignedToFloat {
  static float apply(uint32_t v) { return static_cast<float>(v); }
};

// Integers of any size: the value is extended to Wide (int32_t or int64_t, or unsigned when the source is),
// clamped, and extended again as a value of the result's type. Row types: uint32_t or uint64_t.
struct IntegerSpec {
  int from_shift = 0, to_shift = 0;  // bits of Wide that the types do not have
  uint64_t low = 0, high = 0;        // the clamp, as Wide
  uint32_t mask = kAllLanes;         // of a 16-bit result register
};
template <class Wide, class ToRow, class FromRow, bool to_signed>
struct IntegerConvert {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    using Plain = std::make_unsigned_t<Wide>;
    using Result = std::conditional_t<to_signed, std::make_signed_t<Wide>, Plain>;
    const auto& s = *static_cast<const IntegerSpec*>(i.extra);
    const auto low = static_cast<Wide>(s.low), high = static_cast<Wide>(s.high);
    const int from_shift = s.from_shift, to_shift = s.to_shift;
    const auto* a = w.row<FromRow>(i.s[1]);
    const uint32_t mask = s.mask;
    each_lane(
        lanes, w.row<ToRow>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          Wide v = static_cast<Wide>(static_cast<Plain>(a[l]) << from_shift) >> from_shift;
          v = v < low ? low : v;
          v = v > high ? high : v;
          const auto r =
              static_cast<ToRow>(static_cast<Result>(static_cast<Plain>(v) << to_shift) >> to_shift);
          return sizeof(ToRow) == 4 ? static_cast<ToRow>(r & mask) : r;
        });
  }
};

template <class Wide, class ToRow, class FromRow>
Handler integer_kernel(bool to_signed) {
  return to_signed ? handler<IntegerConvert<Wide, ToRow, FromRow, true>>()
                   : handler<IntegerConvert<Wide, ToRow, FromRow, false>>();
}
template <class Signed>
Handler integer_kernel(const Conversion& c) {
  using Unsigned = std::make_unsigned_t<Signed>;
  const bool from_signed = is_signed_type(c.from), to_signed = is_signed_type(c.to);
  auto by_rows = [&]<class ToRow, class FromRow>(ToRow, FromRow) {
    return from_signed ? integer_kernel<Signed, ToRow, FromRow>(to_signed)
                       : integer_kernel<Unsigned, ToRow, FromRow>(to_signed);
  };
  if constexpr (sizeof(Signed) == 4) return by_rows(uint32_t{}, uint32_t{});
  else if (c.from_register == 8)
    return c.to_register == 8 ? by_rows(uint64_t{}, uint64_t{}) : by_rows(uint32_t{}, uint64_t{});
  return by_rows(uint64_t{}, uint32_t{});
}

// What the target type can hold, as a value of `wide` bits that is signed if the source is.
void clamp_to_target(const Conversion& c, int wide, IntegerSpec& s) {
  const bool from_signed = is_signed_type(c.from), to_signed = is_signed_type(c.to);
  const int width = 8 * ptx::bytes(c.to);
  const uint64_t all = ~uint64_t{0} >> (64 - wide), largest = from_signed ? all >> 1 : all;
  s.low = from_signed ? largest + 1 : 0;
  s.high = largest;
  if (!c.sat) return;
  s.high = std::min(largest, ~uint64_t{0} >> (64 - width + (to_signed ? 1 : 0)));
  if (from_signed)
    s.low = !to_signed ? 0 : width >= wide ? s.low : uint64_t{0} - (uint64_t{1} << (width - 1));
}

Handler convert_integers(const Conversion& c, IntegerSpec& s) {
  const int wide = std::max(c.from_register, c.to_register) == 8 ? 64 : 32;
  if (8 * std::max(ptx::bytes(c.from), ptx::bytes(c.to)) > wide) return nullptr;
  s.from_shift = wide - 8 * ptx::bytes(c.from);
  s.to_shift = wide - 8 * ptx::bytes(c.to);
  if (c.to_register == 2) s.mask = 0xFFFF;
  clamp_to_target(c, wide, s);
  return wide == 64 ? integer_kernel<int64_t>(c) : integer_kernel<int32_t>(c);
}

template <Integral how>
[[gnu::always_inline]] inline float rounded_integral(float v) {
  if constexpr (how == Integral::rni) return __builtin_rintf(v);
  if constexpr (how == Integral::rzi) return __builtin_truncf(v);
  if constexpr (how == Integral::rmi) return __builtin_floorf(v);
  if constexpr (how == Integral::rpi) return __builtin_ceilf(v);
  return v;
}

// f32 to an integer of up to 32 bits, clamped; NaN to 0. (A subnormal becomes the zero of its sign with .ftz:
// only then rmi and rpi differ.)
struct FloatLimits {
  float low = 0, high = 0;  // of the values that convert as they are
  uint32_t highest = 0;     // what everything from `top` on becomes
  float top = 0;
  uint32_t mask = kAllLanes;
  bool ftz = false;
};
template <Integral how, bool to_signed>
struct FloatToInteger {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const FloatLimits s = *static_cast<const FloatLimits*>(i.extra);
    const auto* a = w.row<float>(i.s[1]);
    each_lane(
        lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const float v = rounded_integral<how>(s.ftz ? flush(a[l]) : a[l]);
          float limited = v > s.low ? v : s.low;
          limited = limited < s.high ? limited : s.high;
          uint32_t r;
          if constexpr (to_signed) {
            r = static_cast<uint32_t>(static_cast<int32_t>(limited));
          } else {  // the upper half of the range through the lower one
            const bool upper = limited >= 2147483648.0f;
            const auto low =
                static_cast<uint32_t>(static_cast<int32_t>(upper ? limited - 2147483648.0f : limited));
            r = low ^ (upper ? 0x80000000 : 0);
          }
          r = v >= s.top ? s.highest : r;
          return (v == v ? r : 0) & s.mask;
        });
  }
};
Handler float_to_integer(const Conversion& c, FloatLimits& s) {
  const bool to_signed = is_signed_type(c.to);
  const int digits = 8 * ptx::bytes(c.to) - (to_signed ? 1 : 0);
  s.highest = kAllLanes >> (32 - digits);
  s.top = std::ldexp(1.0f, digits);
  s.high = std::nextafter(s.top, 0.0f);
  s.low = to_signed ? -s.top : 0.0f;
  s.mask = c.to_register == 2 ? 0xFFFF : kAllLanes;
  s.ftz = c.ftz;
  switch (c.integral) {
    case Integral::rni:
      return to_signed ? handler<FloatToInteger<Integral::rni, true>>()
                       : handler<FloatToInteger<Integral::rni, false>>();
    case Integral::rmi:
      return to_signed ? handler<FloatToInteger<Integral::rmi, true>>()
                       : handler<FloatToInteger<Integral::rmi, false>>();
    case Integral::rpi:
      return to_signed ? handler<FloatToInteger<Integral::rpi, true>>()
                       : handler<FloatToInteger<Integral::rpi, false>>();
    default:
      return to_signed ? handler<FloatToInteger<Integral::rzi, true>>()
                       : handler<FloatToInteger<Integral::rzi, false>>();
  }
}

// f32 to f32: rounded to an integer, flushed, saturated. aux: bit 0 ftz, bit 1 sat.
template <Integral how>
struct FloatToFloat {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const bool ftz = i.aux & 1, sat = i.aux & 2;
    const auto* a = w.row<float>(i.s[1]);
    each_lane(
        lanes, w.row<float>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const float v = rounded_integral<how>(ftz ? flush(a[l]) : a[l]);
          return sat ? saturate(v) : canonical(v);
        });
  }
};
Handler float_to_float(Integral how) {
  switch (how) {
    case Integral::rni: return handler<FloatToFloat<Integral::rni>>();
    case Integral::rzi: return handler<FloatToFloat<Integral::rzi>>();
    case Integral::rmi: return handler<FloatToFloat<Integral::rmi>>();
    case Integral::rpi: return handler<FloatToFloat<Integral::rpi>>();
    default: return handler<FloatToFloat<Integral::none>>();
  }
}

// Between f32 and f64, to nearest; a NaN keeps its sign and the upper bits of its payload, as on an H200.
// aux: bit 0 ftz, bit 1 sat.
struct WidenF32 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const bool ftz = i.aux & 1;
    const auto* a = w.row<float>(i.s[1]);
    each_lane(
        lanes, w.row<double>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return static_cast<double>(ftz ? flush(a[l]) : a[l]);
        });
  }
};
struct NarrowF64 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const bool ftz = i.aux & 1, sat = i.aux & 2;
    const auto* a = w.row<double>(i.s[1]);
    each_lane(
        lanes, w.row<float>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const auto r = static_cast<float>(a[l]);
          return sat ? saturate(r) : ftz ? flush(r) : r;
        });
  }
};

// f32 to a 16-bit format, to nearest.
template <DType format>
struct Narrow {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      uint16_t codes[32];
      narrow_values<format, level>(w.row<float>(i.s[1]), codes, 32);
      each_lane(
          lanes,
          w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return uint32_t{codes[l]}; });
    }
  };
};
template <VectorLevel level>
struct WidenF16 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<uint32_t>(i.s[1]);
    uint16_t codes[32];
    for (int l = 0; l < 32; ++l) codes[l] = static_cast<uint16_t>(a[l]);
    float value[32];
    widen_codes<DType::f16, level>(codes, value, 32);
    each_lane(
        lanes,
        w.row<float>(i.s[0]), [&](int l) __attribute__((always_inline)) { return canonical(value[l]); });
  }
};
struct WidenBf16 {  // a NaN keeps its bits
  static uint32_t apply(uint32_t code) { return code << 16; }
};

// A kernel for the pair, if it has one; fills d.inst.
bool vector_kernel(Decoding& d, const Conversion& c) {
  const auto use = [&](Handler h) {
    d.inst.run = h;
    d.inst.aux = (c.ftz ? 1u : 0u) | (c.sat ? 2u : 0u);
    return h != nullptr;
  };
  const bool to_float = is_float_type(c.to), from_float = is_float_type(c.from);
  if (!to_float && !from_float) {
    IntegerSpec s;
    const Handler h = convert_integers(c, s);
    d.inst.extra = d.keep(s);
    return use(h);
  }
  if (c.from == Type::f32 && !to_float && ptx::bytes(c.to) <= 4 && c.to_register <= 4) {
    FloatLimits s;
    const Handler h = float_to_integer(c, s);
    d.inst.extra = d.keep(s);
    return use(h);
  }
  if (c.satfinite || c.relu || c.rounding != Rounding::rn) return false;
  if (c.from == Type::f32 && c.to == Type::f32) return use(float_to_float(c.integral));
  if (c.integral != Integral::none) return false;
  if (c.from == Type::f32 && c.to == Type::f64 && !c.sat) return use(handler<WidenF32>());
  if (c.from == Type::f64 && c.to == Type::f32) return use(handler<NarrowF64>());
  if (c.sat) return false;
  // An f32 of the size of a subnormal is zero in f16, and no f16 is a subnormal f32.
  if (c.from == Type::f32 && c.to == Type::f16) return use(level_handler<Narrow<DType::f16>::Kernel>());
  if (c.from == Type::f16 && c.to == Type::f32) return use(level_handler<WidenF16>());
  if (c.ftz) return false;
  if (c.from == Type::f32 && c.to == Type::bf16) return use(level_handler<Narrow<DType::bf16>::Kernel>());
  if (c.from == Type::bf16 && c.to == Type::f32) return use(handler<Unary<WidenBf16, uint32_t>>());
  if (c.from == Type::s32 && c.to == Type::f32) return use(handler<Unary<SignedToFloat, int32_t, float>>());
  if (c.from == Type::u32 && c.to == Type::f32)
    return use(handler<Unary<UnsignedToFloat, uint32_t, float>>());
  return false;
}

void decode_cvt(Decoding& d) {
  if (d.take("pack")) return decode_cvt_pack(d);
  const auto round = d.take_one_of({"rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi"});
  Conversion c{};
  c.rounding = round == "rz"    ? Rounding::rz
               : round == "rm"  ? Rounding::rm
               : round == "rp"  ? Rounding::rp
               : round == "rna" ? Rounding::rna
                                : Rounding::rn;
  c.integral = round == "rni"   ? Integral::rni
               : round == "rzi" ? Integral::rzi
               : round == "rmi" ? Integral::rmi
               : round == "rpi" ? Integral::rpi
                                : Integral::none;
  c.ftz = d.take("ftz");
  c.sat = d.take("sat");
  c.satfinite = d.take("satfinite");
  c.relu = d.take("relu");
  for (size_t n = 1; n < d.ptx.tokens.size(); ++n) {
    const auto word = d.ptx.tokens[n];
    if (!d.taken(n) && (word.ends_with("x2") || word.ends_with("x4") || word == "tf32")) {
      return decode_packed_cvt(d, {c.rounding, c.satfinite, c.relu, round == "rs"});
    }
  }
  c.to = d.take_type();
  c.from = d.take_type();
  if (c.to == Type::none || c.from == Type::none) d.unsupported("this pair of types");
  c.to_register = d.register_bytes(d.operand(0));
  c.from_register = d.register_bytes(d.operand(1));
  if (c.to_register == 0) c.to_register = ptx::bytes(c.to);
  if (c.from_register == 0) c.from_register = std::max(ptx::bytes(c.from), 4);
  d.inst.s[0] = d.destination(0, c.to_register);
  d.inst.s[1] =
      d.operand(1).is<ptx::Immediate>() ? d.float_source(d.operand(1), c.from) : d.source(1, c.from_register);
  if (vector_kernel(d, c)) return;
  d.inst.run = &run_convert;
  d.inst.extra = d.keep(c);
}

}  // namespace

void register_convert(Registry& r) { r.add("cvt", &decode_cvt); }

}  // namespace tw::sim
