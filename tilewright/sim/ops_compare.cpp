#include <cmath>

#include "tilewright/base/formats.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Comparison and Selection Instructions" and "Half Precision Comparison Instructions": set, setp.
namespace tw::sim {

namespace {

using ptx::Type;

enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <Compare c, class T>
[[gnu::always_inline]] inline bool compare(T a, T b) {
  if constexpr (c == Compare::eq) return a == b;
  if constexpr (c == Compare::lt) return a < b;
  if constexpr (c == Compare::le) return a <= b;
  if constexpr (c == Compare::gt) return a > b;
  if constexpr (c == Compare::ge) return a >= b;
  // Ordered "ne" is false on NaN; the forms with u are true on NaN.
  if constexpr (c == Compare::ne) return a < b || a > b;
  if constexpr (c == Compare::equ) return !(a < b || a > b);
  if constexpr (c == Compare::neu) return a != b;
  if constexpr (c == Compare::ltu) return !(a >= b);
  if constexpr (c == Compare::leu) return !(a > b);
  if constexpr (c == Compare::gtu) return !(a <= b);
  if constexpr (c == Compare::geu) return !(a < b);
  if constexpr (c == Compare::num) return a == a && b == b;
  return a != a || b != b;
}

// The truth of the comparison for all lanes.
template <Compare c, class T>
struct Truth {
  [[gnu::always_inline]] static uint32_t of(const Warp& w, const Inst& i) {
    const auto *a = w.row<Stored<T>>(i.s[2]), *b = w.row<Stored<T>>(i.s[3]);
    return each_lane_mask(
        kAllLanes, 0, [&](int l) __attribute__((always_inline)) {
          return compare<c, T>(load_lane<T>(a, l), load_lane<T>(b, l));
        });
  }
};
// f32 with ftz.
template <Compare c>
struct TruthFtz {
  [[gnu::always_inline]] static uint32_t of(const Warp& w, const Inst& i) {
    const auto *a = w.row<float>(i.s[2]), *b = w.row<float>(i.s[3]);
    return each_lane_mask(
        kAllLanes,
        0, [&](int l) __attribute__((always_inline)) { return compare<c>(flush(a[l]), flush(b[l])); });
  }
};

// A number in the order of the 16-bit code's value, a NaN for a NaN.
template <DType format>
[[gnu::always_inline]] inline float ordered_half(uint32_t code) {
  const auto size = static_cast<int32_t>(code & 0x7FFF);
  const auto place = static_cast<float>((code & 0x8000) ? -size : size);
  return size > (format == DType::f16 ? 0x7C00 : 0x7F80) ? as_float(kNanF32) : place;
}
template <Compare c, DType format, bool high>
struct TruthHalf {
  [[gnu::always_inline]] static uint32_t of(const Warp& w, const Inst& i) {
    const auto *a = w.row<uint32_t>(i.s[2]), *b = w.row<uint32_t>(i.s[3]);
    return each_lane_mask(
        kAllLanes, 0, [&](int l) __attribute__((always_inline)) {
          const uint32_t x = high ? a[l] >> 16 : a[l] & 0xFFFF, y = high ? b[l] >> 16 : b[l] & 0xFFFF;
          return compare<c>(ordered_half<format>(x), ordered_half<format>(y));
        });
  }
};

// ---- setp: s[0] p, s[1] q (or scratch), s[4] the predicate to combine with. aux: bits 0-1 BoolOp (0 none, 1
// and, 2 or, 3 xor), bit 2 the predicate is negated, bit 3 there is a q ----

[[gnu::always_inline]] inline uint32_t combine(uint32_t truth, uint32_t c, uint32_t op) {
  return op == 1 ? truth & c : op == 2 ? truth | c : op == 3 ? truth ^ c : truth;
}

[[gnu::always_inline]] inline void set_predicates(Warp& w, const Inst& i, uint32_t lanes, uint32_t truth,
                                                  uint32_t other) {
  const uint32_t op = i.aux & 3;
  const uint32_t c = op ? w.mask(i.s[4]) ^ ((i.aux & 4) ? kAllLanes : 0) : 0;
  uint32_t& p = w.mask(i.s[0]);
  p = (p & ~lanes) | (combine(truth, c, op) & lanes);
  if (i.aux & 8) {
    uint32_t& q = w.mask(i.s[1]);
    q = (q & ~lanes) | (combine(other, c, op) & lanes);
  }
}

template <class K>
struct SetPredicate {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const uint32_t truth = K::of(w, i);
    set_predicates(w, i, lanes, truth, ~truth);
  }
};
// Packed halves: p is the low half's, q the high half's.
template <Compare c, DType format>
struct SetPredicatePacked {
  static void run(Warp& w, const Inst& i, uint32_t lanes) {
    set_predicates(w, i, lanes, TruthHalf<c, format, false>::of(w, i), TruthHalf<c, format, true>::of(w, i));
  }
};

// ---- set: imm: the value for true ----

template <class K>
struct SetValue {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    uint32_t truth = K::of(w, i);
    const uint32_t op = i.aux & 3;
    if (op) truth = combine(truth, w.mask(i.s[4]) ^ ((i.aux & 4) ? kAllLanes : 0), op);
    const auto yes = static_cast<uint32_t>(i.imm);
    each_lane(
        lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return (truth >> l & 1) ? yes : 0;
        });
  }
};
template <Compare c, DType format>
struct SetValuePacked {
  static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const uint32_t low = TruthHalf<c, format, false>::of(w, i), high = TruthHalf<c, format, true>::of(w, i);
    const uint32_t op = i.aux & 3, with = op ? w.mask(i.s[4]) ^ ((i.aux & 4) ? kAllLanes : 0) : 0;
    const uint32_t a = combine(low, with, op), b = combine(high, with, op);
    const auto yes = static_cast<uint32_t>(i.imm) & 0xFFFF;
    each_lane(lanes, w.row<uint32_t>(i.s[0]),
              [&](int l) { return ((a >> l & 1) ? yes : 0) | ((b >> l & 1) ? yes << 16 : 0); });
  }
};

template <class K>
Handler pick(bool value) {
  return value ? handler<SetValue<K>>() : handler<SetPredicate<K>>();
}

template <Compare c>
Handler integer_handler(Type t, bool value) {
  Handler h = nullptr;
  with_integer(t, [&]<class T>(T) { h = pick<Truth<c, T>>(value); });
  return h;
}

template <Compare c>
Handler float_handler(Type t, bool ftz, bool value) {
  switch (t) {
    case Type::f32: return ftz ? pick<TruthFtz<c>>(value) : pick<Truth<c, float>>(value);
    case Type::f64: return pick<Truth<c, double>>(value);
    case Type::f16: return pick<TruthHalf<c, DType::f16, false>>(value);
    case Type::bf16: return pick<TruthHalf<c, DType::bf16, false>>(value);
    case Type::f16x2:
      return value ? handler<SetValuePacked<c, DType::f16>>() : handler<SetPredicatePacked<c, DType::f16>>();
    case Type::bf16x2:
      return value ? handler<SetValuePacked<c, DType::bf16>>()
                   : handler<SetPredicatePacked<c, DType::bf16>>();
    default: return nullptr;
  }
}

Type unsigned_of(Type t) {
  switch (t) {
    case Type::s16:
    case Type::b16: return Type::u16;
    case Type::s32:
    case Type::b32: return Type::u32;
    case Type::s64:
    case Type::b64: return Type::u64;
    default: return t;
  }
}

bool is_float_type(Type t) { return t >= Type::f16; }

Handler find_handler(std::string_view op, Type t, bool ftz, bool value) {
  const bool fp = is_float_type(t);
  if (op == "eq")
    return fp ? float_handler<Compare::eq>(t, ftz, value) : integer_handler<Compare::eq>(t, value);
  if (op == "ne")
    return fp ? float_handler<Compare::ne>(t, ftz, value) : integer_handler<Compare::ne>(t, value);
  if (op == "lt")
    return fp ? float_handler<Compare::lt>(t, ftz, value) : integer_handler<Compare::lt>(t, value);
  if (op == "le")
    return fp ? float_handler<Compare::le>(t, ftz, value) : integer_handler<Compare::le>(t, value);
  if (op == "gt")
    return fp ? float_handler<Compare::gt>(t, ftz, value) : integer_handler<Compare::gt>(t, value);
  if (op == "ge")
    return fp ? float_handler<Compare::ge>(t, ftz, value) : integer_handler<Compare::ge>(t, value);
  if (op == "lo") return integer_handler<Compare::lt>(unsigned_of(t), value);
  if (op == "ls") return integer_handler<Compare::le>(unsigned_of(t), value);
  if (op == "hi") return integer_handler<Compare::gt>(unsigned_of(t), value);
  if (op == "hs") return integer_handler<Compare::ge>(unsigned_of(t), value);
  if (op == "equ") return float_handler<Compare::equ>(t, ftz, value);
  if (op == "neu") return float_handler<Compare::neu>(t, ftz, value);
  if (op == "ltu") return float_handler<Compare::ltu>(t, ftz, value);
  if (op == "leu") return float_handler<Compare::leu>(t, ftz, value);
  if (op == "gtu") return float_handler<Compare::gtu>(t, ftz, value);
  if (op == "geu") return float_handler<Compare::geu>(t, ftz, value);
  if (op == "num") return float_handler<Compare::num>(t, ftz, value);
  if (op == "nan") return float_handler<Compare::nan>(t, ftz, value);
  return nullptr;
}

struct CompareModifiers {
  std::string_view op;
  bool ftz = false;
};

CompareModifiers take_compare(Decoding& d) {
  CompareModifiers m;
  m.op = d.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu",
                        "leu", "gtu", "geu", "num", "nan"});
  const auto combine_with = d.take_one_of({"and", "or", "xor"});
  m.ftz = d.take("ftz");
  d.inst.aux = combine_with == "and" ? 1u : combine_with == "or" ? 2u : combine_with == "xor" ? 3u : 0u;
  if (d.inst.aux != 0) {
    d.inst.s[4] = d.predicate(d.operand(3));
    if (Decoding::negated(d.operand(3))) d.inst.aux |= 4;
  }
  return m;
}

void decode_sources(Decoding& d, Type type) {
  const Type packed = type == Type::f16x2 || type == Type::bf16x2 ? Type::b32 : type;
  d.inst.s[2] = d.float_source(d.operand(1), packed);
  d.inst.s[3] = d.float_source(d.operand(2), packed);
}

void decode_setp(Decoding& d) {
  const CompareModifiers m = take_compare(d);
  const Type type = d.take_type();
  if (const auto* both = d.operand(0).as<ptx::Pair>()) {
    d.inst.s[0] = d.predicate_destination(both->both[0]);
    d.inst.s[1] = d.predicate_destination(both->both[1]);
    d.inst.aux |= 8;
  } else {
    d.inst.s[0] = d.predicate_destination(d.operand(0));
  }
  decode_sources(d, type);
  d.inst.run = find_handler(m.op, type, m.ftz, false);
  if (!d.inst.run) d.unsupported("this comparison");
}

void decode_set(Decoding& d) {
  const CompareModifiers m = take_compare(d);
  const Type result = d.take_type(), type = d.take_type();
  d.inst.s[0] = d.destination(0, ptx::bytes(result));
  decode_sources(d, type);
  switch (result) {
    case Type::f32: d.inst.imm = 0x3F800000; break;
    case Type::f16:
    case Type::f16x2: d.inst.imm = 0x3C00; break;
    case Type::bf16:
    case Type::bf16x2: d.inst.imm = 0x3F80; break;
    case Type::u16:
    case Type::s16: d.inst.imm = 0xFFFF; break;
    default: d.inst.imm = 0xFFFFFFFF;
  }
  d.inst.run = find_handler(m.op, type, m.ftz, true);
  if (!d.inst.run) d.unsupported("this comparison");
}

}  // namespace

void register_compare(Registry& r) {
  r.add("setp", &decode_setp);
  r.add("set", &decode_set);
}

}  // namespace tw::sim
