#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/formats.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/half_rows.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "cvt" and "cvt.pack".
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

template <class To, class From>
struct IntegerConvert {
  static To apply(From v) { return static_cast<To>(v); }
};
struct SignedToFloat {
  static float apply(int32_t v) { return static_cast<float>(v); }
};
struct UnsignedToFloat {
  static float apply(uint32_t v) { return static_cast<float>(v); }
};
// f32 to s32, toward zero, clamped; NaN to 0.
struct FloatToSigned {
  static int32_t apply(float v) {
    const float limited = v < 2147483648.0f ? (v > -2147483648.0f ? v : -2147483648.0f) : 0.0f;
    const int32_t r = static_cast<int32_t>(limited);
    return v >= 2147483648.0f ? std::numeric_limits<int32_t>::max() : v == v ? r : 0;
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
// s[1] to the high half, s[2] to the low one.
template <DType format>
struct NarrowPair {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      uint16_t high[32], low[32];
      narrow_values<format, level>(w.row<float>(i.s[1]), high, 32);
      narrow_values<format, level>(w.row<float>(i.s[2]), low, 32);
      each_lane(
          lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
            return uint32_t{high[l]} << 16 | low[l];
          });
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

Handler common_pair(const Conversion& c) {
  if (c.sat || c.ftz || c.satfinite || c.relu) return nullptr;
  const bool plain = c.integral == Integral::none && c.rounding == Rounding::rn;
  if (c.from == Type::f32 && c.to == Type::f16 && plain) return level_handler<Narrow<DType::f16>::Kernel>();
  if (c.from == Type::f32 && c.to == Type::bf16 && plain) return level_handler<Narrow<DType::bf16>::Kernel>();
  if (c.from == Type::f16 && c.to == Type::f32 && plain) return level_handler<WidenF16>();
  if (c.from == Type::bf16 && c.to == Type::f32 && plain) return handler<Unary<WidenBf16, uint32_t>>();
  if (c.from == Type::f32 && c.to == Type::s32 && c.integral == Integral::rzi)
    return handler<Unary<FloatToSigned, float, int32_t>>();
  if (c.from == Type::s32 && c.to == Type::f32 && plain)
    return handler<Unary<SignedToFloat, int32_t, float>>();
  if (c.from == Type::u32 && c.to == Type::f32 && plain)
    return handler<Unary<UnsignedToFloat, uint32_t, float>>();
  const bool exact_registers = c.to_register == ptx::bytes(c.to) && c.from_register == ptx::bytes(c.from);
  if (!exact_registers || is_float_type(c.to) || is_float_type(c.from)) return nullptr;
  if (c.to == Type::u64 || c.to == Type::s64) {
    if (c.from == Type::u32) return handler<Unary<IntegerConvert<uint64_t, uint32_t>, uint32_t, uint64_t>>();
    if (c.from == Type::s32) return handler<Unary<IntegerConvert<int64_t, int32_t>, int32_t, int64_t>>();
  }
  if ((c.to == Type::u32 || c.to == Type::s32) && (c.from == Type::u64 || c.from == Type::s64))
    return handler<Unary<IntegerConvert<uint32_t, uint64_t>, uint64_t, uint32_t>>();
  if (c.to == Type::u32 || c.to == Type::s32) {
    if (c.from == Type::u16) return handler<Unary<IntegerConvert<uint32_t, uint16_t>, uint16_t, uint32_t>>();
    if (c.from == Type::s16) return handler<Unary<IntegerConvert<int32_t, int16_t>, int16_t, int32_t>>();
  }
  if ((c.to == Type::u16 || c.to == Type::s16) && (c.from == Type::u32 || c.from == Type::s32))
    return handler<Unary<IntegerConvert<uint16_t, uint32_t>, uint32_t, uint16_t>>();
  return nullptr;
}

// ---- packed and narrow formats ----

enum class Shape : uint8_t { x1, x2, x4 };

struct PackedConversion {
  DType to = DType::f16, from = DType::f32;
  int to_bits = 16, from_bits = 32;  // of one element in its register
  int count = 2;
  bool separate = true;  // sources are `count` f32 registers, the highest element first
  Rounding rounding = Rounding::rn;
  bool satfinite = false, relu = false, stochastic = false;
  Slot sources[4];
  Slot random;
};

uint32_t convert_element(double v, uint32_t random, const PackedConversion& c) {
  if (c.relu && !std::isnan(v) && std::signbit(v)) v = 0;
  if (c.to == DType::tf32) return from_double(c.to, v, c.rounding, c.satfinite) & 0xFFFFE000;
  if (!c.stochastic) return from_double(c.to, v, c.rounding, c.satfinite);
  const int bits = c.to == DType::f16 ? 13 : c.to_bits == 4 ? 8 : 16;
  return from_float_stochastic(c.to, static_cast<float>(v), random & ((1u << bits) - 1), bits, c.satfinite);
}

// The random bits of element n (0 is the lowest): PTX ISA, "cvt", on `rbits`.
uint32_t random_of(uint32_t rbits, int n, const PackedConversion& c) {
  if (c.count == 2) return n == 1 ? rbits >> 16 : rbits & 0xFFFF;
  if (c.to_bits != 4) return n >= 2 ? rbits >> 16 : rbits & 0xFFFF;  // a, b: upper half; e, f: lower half
  const uint32_t half = (n & 1) ? rbits >> 16 : rbits & 0xFFFF;
  return n >= 2 ? half >> 8 : half & 0xFF;
}

Flow run_packed(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& c = *static_cast<const PackedConversion*>(i.extra);
  const uint32_t from_mask = c.from_bits == 32 ? kAllLanes : (1u << c.from_bits) - 1;
  auto* d = w.row<uint32_t>(i.s[0]);
  for (int l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    const uint32_t rbits = c.stochastic ? w.row<uint32_t>(c.random)[l] : 0;
    uint32_t packed = 0;
    for (int n = 0; n < c.count; ++n) {
      const uint32_t raw = c.separate ? w.row<uint32_t>(c.sources[c.count - 1 - n])[l]
                                      : w.row<uint32_t>(c.sources[0])[l] >> (n * c.from_bits) & from_mask;
      if (c.to == DType::tf32 && c.rounding == Rounding::rna && (raw & 0x7F800000) == 0x7F800000) {
        // Infinity and NaN are plain bit patterns to this instruction on an H200.
        packed = (c.satfinite ? raw - 0x1000 : raw + 0x1000) & 0xFFFFE000;
        continue;
      }
      const double v = to_double(c.from, raw);
      packed |= convert_element(v, random_of(rbits, n, c), c) << (n * c.to_bits);
    }
    d[l] = packed;
  }
  return Flow::next;
}

struct NarrowName {
  std::string_view name;
  DType dtype;
  int bits;  // of one element in the register
  int count;
};
constexpr NarrowName kNarrow[] = {
    {"f16x2", DType::f16, 16, 2},  {"bf16x2", DType::bf16, 16, 2}, {"e4m3x2", DType::e4m3, 8, 2},
    {"e5m2x2", DType::e5m2, 8, 2}, {"e2m3x2", DType::e2m3, 8, 2},  {"e3m2x2", DType::e3m2, 8, 2},
    {"e2m1x2", DType::e2m1, 4, 2}, {"ue8m0x2", DType::e8m0, 8, 2}, {"e4m3x4", DType::e4m3, 8, 4},
    {"e5m2x4", DType::e5m2, 8, 4}, {"e2m3x4", DType::e2m3, 8, 4},  {"e3m2x4", DType::e3m2, 8, 4},
    {"e2m1x4", DType::e2m1, 4, 4}, {"tf32", DType::tf32, 32, 1},   {"f32", DType::f32, 32, 1},
};

const NarrowName* take_narrow(Decoding& d) {
  const auto word = d.take_next();
  for (const NarrowName& n : kNarrow) {
    if (n.name == word) return &n;
  }
  d.unsupported(tw::format("the format .{}", word));
}

void decode_packed(Decoding& d, PackedConversion c) {
  const NarrowName *to = take_narrow(d), *from = take_narrow(d);
  c.to = to->dtype;
  c.from = from->dtype;
  c.to_bits = to->bits;
  c.from_bits = from->bits;
  c.count = to->count;
  c.separate = from->dtype == DType::f32;
  const int to_bytes = to->bits * to->count <= 16 ? 2 : 4;
  d.inst.s[0] = d.destination(0, to_bytes);
  size_t next = 1;
  if (!c.separate) {
    c.sources[0] = d.source(next++, from->bits * from->count <= 16 ? 2 : 4);
  } else if (const auto* v = d.operand(1).as<ptx::Vector>()) {
    for (size_t n = 0; n < 4; ++n) c.sources[n] = d.float_source(v->elements.at(n), Type::f32);
    ++next;
  } else {
    for (int n = 0; n < c.count; ++n) c.sources[n] = d.float_source(d.operand(next++), Type::f32);
  }
  if (c.stochastic) c.random = d.source(next, 4);
  d.inst.run = &run_packed;
  const bool plain = c.rounding == Rounding::rn && !c.satfinite && !c.relu && !c.stochastic && c.separate;
  if (plain && (c.to == DType::f16 || c.to == DType::bf16)) {
    d.inst.s[1] = c.sources[0];
    d.inst.s[2] = c.sources[1];
    d.inst.run = c.to == DType::f16 ? level_handler<NarrowPair<DType::f16>::Kernel>()
                                    : level_handler<NarrowPair<DType::bf16>::Kernel>();
  }
  d.inst.extra = d.keep(c);
}

void decode_cvt(Decoding& d) {
  if (d.take("pack")) d.unsupported("cvt.pack");
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
      PackedConversion p;
      p.rounding = c.rounding;
      p.satfinite = c.satfinite;
      p.relu = c.relu;
      p.stochastic = round == "rs";
      return decode_packed(d, p);
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
  d.inst.run = common_pair(c);
  if (!d.inst.run) d.inst.run = &run_convert;
  d.inst.extra = d.keep(c);
}

}  // namespace

void register_convert(Registry& r) { r.add("cvt", &decode_cvt); }

}  // namespace tw::sim
