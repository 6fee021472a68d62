#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "tilewright/sim/convert.h"
#include "tilewright/sim/half_rows.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "cvt" between f32 or f16 and the packed and narrow formats, and "cvt.pack".
namespace tw::sim {

namespace {

using ptx::Type;

struct PackedConversion : PackedModifiers {
  DType to = DType::f16, from = DType::f32;
  int to_bits = 16, from_bits = 32;  // of one element in its register
  int count = 2;
  bool separate = true;  // sources are `count` f32 registers, the highest element first
  Slot sources[4];
  Slot random;

  // The register with element n (0 is the lowest), and where in it.
  Slot source(int n) const { return sources[separate ? count - 1 - n : 0]; }
  int source_shift(int n) const { return separate ? 0 : n * from_bits; }
  uint32_t source_mask() const { return kAllLanes >> (32 - from_bits); }
};

// ---- any form, element by element ----

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
  auto* d = w.row<uint32_t>(i.s[0]);
  for (int l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    const uint32_t rbits = c.stochastic ? w.row<uint32_t>(c.random)[l] : 0;
    uint32_t packed = 0;
    for (int n = 0; n < c.count; ++n) {
      const uint32_t raw = w.row<uint32_t>(c.source(n))[l] >> c.source_shift(n) & c.source_mask();
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

// ---- vector code for the common forms ----

// Two f32 to f16x2 or bf16x2, to nearest.
template <DType format>
struct NarrowPair {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto& c = *static_cast<const PackedConversion*>(i.extra);
      uint16_t high[32], low[32];
      narrow_values<format, level>(w.row<float>(c.sources[0]), high, 32);
      narrow_values<format, level>(w.row<float>(c.sources[1]), low, 32);
      if (c.relu || c.satfinite) {
        adjust(high, c);
        adjust(low, c);
      }
      each_lane(
          lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
            return uint32_t{high[l]} << 16 | low[l];
          });
    }
    [[gnu::always_inline]] static void adjust(uint16_t* codes, const PackedConversion& c) {
      constexpr uint16_t infinity = format == DType::f16 ? 0x7C00 : 0x7F80;
      const uint16_t negative = c.relu ? 0x8000 : 0, limit = c.satfinite ? infinity : 0xFFFF;
      for (int l = 0; l < 32; ++l) {
        const uint16_t code = (codes[l] & negative) ? uint16_t{0} : codes[l];  // the NaN has no sign
        codes[l] = static_cast<uint16_t>((code & 0x7FFF) == limit ? code - 1 : code);
      }
    }
  };
};

// A format of up to 8 bits: its codes beside f32 bits and f16 codes.
template <int exponent_bits, int mantissa_bits>
struct NarrowFormat {
  explicit NarrowFormat(DType t) {
    const FloatFormat& f = float_format(t);
    largest = as_bits(to_float(t, f.max_norm));
    nan = f.specials == Specials::none ? f.max_norm : f.nan;
    first_nan = f.specials == Specials::nan_only ? f.nan : f.max_norm + 2;
  }
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr uint32_t sign = 1u << (exponent_bits + mantissa_bits);
  static constexpr int bits_in_register = exponent_bits + mantissa_bits < 4 ? 4 : 8;
  uint32_t largest;         // f32 bits of the largest finite value
  uint32_t nan, first_nan;  // what conversions give for a NaN; the lowest code of one, beyond all without

  // To nearest even, saturating.
  [[gnu::always_inline]] uint32_t narrowed(float v) const {
    constexpr int less = 23 - mantissa_bits;
    constexpr uint32_t least = (127 + 1 - bias) << 23;  // the binade that the subnormals share
    const uint32_t bits = as_bits(v), size = bits & 0x7FFFFFFF;
    const uint32_t limited = size < largest ? size : largest, own = limited & 0x7F800000;
    const uint32_t binade = own > least ? own : least;
    // Where the last place of an f32 is that of the code.
    const uint32_t grid = binade + (less << 23);
    const uint32_t units = as_bits(as_float(limited) + as_float(grid)) - grid;
    const uint32_t number = units + ((binade >> less) - (least >> less));
    constexpr int to_sign = 31 - exponent_bits - mantissa_bits;
    return size > 0x7F800000 ? nan : number | (bits >> to_sign & sign);
  }
  // Two codes in the halves of a word become f16 codes of the values times 2^(bias - 15): exponent and
  // mantissa are the upper bits of an f16 whose exponent has another bias.
  [[gnu::always_inline]] static uint32_t placed(uint32_t codes) {
    constexpr uint32_t both = 0x10001, sizes = (sign - 1) * both, signs = sign * both;
    return (codes & sizes) << (10 - mantissa_bits) | (codes & signs) << (15 - exponent_bits - mantissa_bits);
  }
};
template <class Format>
struct NarrowConversion : PackedConversion {
  NarrowConversion(const PackedConversion& c, DType t) : PackedConversion(c), format(t) {}
  Format format;
};

// From f32, f16 or bf16, saturating, to nearest.
template <class Format, DType from>
struct NarrowCodes {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto& c = *static_cast<const NarrowConversion<Format>*>(i.extra);
      const Format format = c.format;
      uint32_t packed[32];
      const int count = from == DType::f32 ? c.count : 2;
      for (int n = 0; n < count; ++n) {  // the highest element first
        float value[32];
        if constexpr (from == DType::f32) {
          std::memcpy(value, w.row<float>(c.sources[n]), sizeof value);
        } else {
          const auto* a = w.row<uint32_t>(c.sources[0]);
          uint16_t codes[32];
          for (int l = 0; l < 32; ++l) codes[l] = static_cast<uint16_t>(n == 0 ? a[l] >> 16 : a[l]);
          widen_codes<from, level>(codes, value, 32);
        }
        if (c.relu) {
          for (float& v : value) v = as_bits(v) < 0x80000000 || v != v ? v : 0.0f;
        }
        constexpr int apart = Format::bits_in_register;
        for (int l = 0; l < 32; ++l) packed[l] = (n ? packed[l] << apart : 0) | format.narrowed(value[l]);
      }
      each_lane(
          lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return packed[l]; });
    }
  };
};

// To f16x2, which holds every value.
template <class Format>
struct WidenCodes {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto& c = *static_cast<const NarrowConversion<Format>*>(i.extra);
      constexpr uint32_t mask = 2 * Format::sign - 1;
      constexpr int apart = 16 - Format::bits_in_register;
      const auto* a = w.row<uint32_t>(c.sources[0]);
      uint32_t words[32];
      uint16_t codes[64], result[64];
      for (int l = 0; l < 32; ++l) words[l] = (a[l] & mask) | (a[l] << apart & mask << 16);
      std::memcpy(codes, words, sizeof codes);
      for (uint32_t& word : words) word = Format::placed(word);
      std::memcpy(result, words, sizeof result);
      if constexpr (Format::bias != 15) {
        constexpr auto scale = static_cast<float>(1 << (15 - Format::bias));
        float value[64];
        widen_codes<DType::f16, level>(result, value, 64);
        for (float& v : value) v *= scale;
        narrow_values<DType::f16, level, Nans::none>(value, result, 64);
      }
      const auto first_nan = static_cast<uint16_t>(c.format.first_nan);
      if (c.relu) {
        for (uint16_t& r : result) r = (r & 0x8000) ? uint16_t{0} : r;
      }
      for (int e = 0; e < 64; ++e) {
        const auto size = static_cast<uint16_t>(codes[e] & (Format::sign - 1));
        result[e] = size >= first_nan ? kNanHalf : result[e];
      }
      std::memcpy(words, result, sizeof words);
      each_lane(
          lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return words[l]; });
    }
  };
};

// The handler of a conversion between a narrow format and another one.
template <int exponent_bits, int mantissa_bits>
Handler narrow_kernel(Decoding& d, const PackedConversion& c, bool widen) {
  using Format = NarrowFormat<exponent_bits, mantissa_bits>;
  d.inst.extra = d.keep(NarrowConversion<Format>(c, widen ? c.from : c.to));
  if (widen) return level_handler<WidenCodes<Format>::template Kernel>();
  switch (c.from) {
    case DType::f32: return level_handler<NarrowCodes<Format, DType::f32>::template Kernel>();
    case DType::f16: return level_handler<NarrowCodes<Format, DType::f16>::template Kernel>();
    case DType::bf16: return level_handler<NarrowCodes<Format, DType::bf16>::template Kernel>();
    default: return nullptr;
  }
}
Handler narrow_kernel(Decoding& d, const PackedConversion& c) {
  const bool widen = c.to == DType::f16;
  if (widen ? c.satfinite || c.count != 2 : !c.satfinite) return nullptr;
  switch (widen ? c.from : c.to) {
    case DType::e4m3: return narrow_kernel<4, 3>(d, c, widen);
    case DType::e5m2: return narrow_kernel<5, 2>(d, c, widen);
    case DType::e2m3: return narrow_kernel<2, 3>(d, c, widen);
    case DType::e3m2: return narrow_kernel<3, 2>(d, c, widen);
    case DType::e2m1: return narrow_kernel<2, 1>(d, c, widen);
    default: return nullptr;
  }
}

// "cvt.rna.tf32.f32": half of the discarded bits is added to any bit pattern.
struct ToTf32 {
  static uint32_t apply(uint32_t bits) { return (bits + 0x1000) & 0xFFFFE000; }
};

// The handler for a common form, or nullptr; fills what it reads.
Handler vector_kernel(Decoding& d, const PackedConversion& c) {
  if (c.stochastic) return nullptr;
  if (c.to == DType::tf32 && c.rounding == Rounding::rna && !c.satfinite && !c.relu) {
    d.inst.s[1] = c.sources[0];
    return handler<Unary<ToTf32, uint32_t>>();
  }
  if (c.rounding != Rounding::rn) return nullptr;
  d.inst.extra = d.keep(c);
  if (c.separate && c.count == 2 && c.to == DType::f16)
    return level_handler<NarrowPair<DType::f16>::Kernel>();
  if (c.separate && c.count == 2 && c.to == DType::bf16)
    return level_handler<NarrowPair<DType::bf16>::Kernel>();
  return narrow_kernel(d, c);
}

// ---- cvt.pack: two saturated integers into the low bits, the rest from a third operand ----

struct IntegerPack {
  int bits = 8;  // of each integer
  int32_t low = 0, high = 0;
};
struct PackIntegers {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto& s = *static_cast<const IntegerPack*>(i.extra);
    const auto *a = w.row<int32_t>(i.s[1]), *b = w.row<int32_t>(i.s[2]);
    const auto* c = w.row<uint32_t>(i.s[3]);
    const uint32_t mask = kAllLanes >> (32 - s.bits);
    each_lane(
        lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const auto x = static_cast<uint32_t>(a[l] < s.low ? s.low : a[l] > s.high ? s.high : a[l]);
          const auto y = static_cast<uint32_t>(b[l] < s.low ? s.low : b[l] > s.high ? s.high : b[l]);
          const uint32_t rest = s.bits == 16 ? 0 : c[l] << (2 * s.bits % 32);
          return (y & mask) | (x & mask) << s.bits | rest;
        });
  }
};

// ---- decoding ----

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

}  // namespace

void decode_packed_cvt(Decoding& d, const PackedModifiers& modifiers) {
  PackedConversion c;
  static_cast<PackedModifiers&>(c) = modifiers;
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
  d.inst.run = vector_kernel(d, c);
  if (d.inst.run) return;
  d.inst.extra = d.keep(c);
  d.inst.run = &run_packed;
}

void decode_cvt_pack(Decoding& d) {
  d.take("sat");
  const auto target = d.take_one_of({"u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16"});
  if (target.empty()) d.unsupported("this type");
  if (d.take_type() != Type::s32) d.unsupported("a source type other than .s32");
  d.take("b32");
  IntegerPack s;
  s.bits = std::stoi(std::string(target.substr(1)));
  const bool is_signed = target[0] == 's';
  s.high = (1 << (is_signed ? s.bits - 1 : s.bits)) - 1;
  s.low = is_signed ? -s.high - 1 : 0;
  d.inst.s[0] = d.destination(0, 4);
  for (size_t n = 1; n < 3; ++n) d.inst.s[n] = d.source(n, 4);
  d.inst.s[3] = d.operand_count() > 3 ? d.source(3, 4) : d.constant(0);
  d.inst.extra = d.keep(s);
  d.inst.run = handler<PackIntegers>();
}

}  // namespace tw::sim
