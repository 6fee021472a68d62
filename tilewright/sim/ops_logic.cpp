#include <bit>

#include "tilewright/sim/lanes.h"
#include "tilewright/sim/row_permute.h"

// PTX ISA, "Logic and Shift Instructions" and the bit instructions of "Integer Arithmetic Instructions".
namespace tw::sim {

namespace {

using ptx::Type;

template <class T>
struct And {
  static T apply(T a, T b) { return static_cast<T>(a & b); }
};
template <class T>
struct Or {
  static T apply(T a, T b) { return static_cast<T>(a | b); }
};
template <class T>
struct Xor {
  static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};
template <class T>
struct Not {
  static T apply(T a) { return static_cast<T>(~a); }
};
template <class T>
struct Cnot {
  static T apply(T a) { return a == 0 ? T{1} : T{0}; }
};

// Bit operations of predicates act on all lanes at once. s[0] = s[1] op s[2]; aux: bit 0 inverts a, bit 1
// inverts b.
template <template <class> class F>
Flow run_predicate_binary(Warp& w, const Inst& i, uint32_t lanes) {
  const uint32_t a = w.mask(i.s[1]) ^ ((i.aux & 1) ? kAllLanes : 0),
                 b = w.mask(i.s[2]) ^ ((i.aux & 2) ? kAllLanes : 0);
  uint32_t& d = w.mask(i.s[0]);
  d = (d & ~lanes) | (F<uint32_t>::apply(a, b) & lanes);
  return Flow::next;
}
Flow run_predicate_not(Warp& w, const Inst& i, uint32_t lanes) {
  const uint32_t a = w.mask(i.s[1]) ^ ((i.aux & 1) ? kAllLanes : 0);
  uint32_t& d = w.mask(i.s[0]);
  d = (d & ~lanes) | (~a & lanes);
  return Flow::next;
}

template <class F>
bool with_bits(Type t, F f) {
  switch (t) {
    case Type::b16: f(uint16_t{}); return true;
    case Type::b32: f(uint32_t{}); return true;
    case Type::b64: f(uint64_t{}); return true;
    default: return false;
  }
}

template <template <class> class F>
void decode_binary_bits(Decoding& d) {
  const Type type = d.take_type();
  if (type == Type::pred) {
    d.inst.s[0] = d.predicate_destination(d.operand(0));
    d.inst.s[1] = d.predicate(d.operand(1));
    d.inst.s[2] = d.predicate(d.operand(2));
    d.inst.aux = (Decoding::negated(d.operand(1)) ? 1u : 0u) | (Decoding::negated(d.operand(2)) ? 2u : 0u);
    d.inst.run = &run_predicate_binary<F>;
    return;
  }
  const bool ok = with_bits(type, [&]<class T>(T) {
    d.inst.run = handler<Binary<F<T>, T>>();
    plain_operands(d, sizeof(T), 3);
  });
  if (!ok) d.unsupported("this type");
}

template <template <class> class F>
void decode_unary_bits(Decoding& d) {
  const Type type = d.take_type();
  if (type == Type::pred) {
    d.inst.s[0] = d.predicate_destination(d.operand(0));
    d.inst.s[1] = d.predicate(d.operand(1));
    d.inst.aux = Decoding::negated(d.operand(1)) ? 1u : 0u;
    d.inst.run = &run_predicate_not;
    return;
  }
  const bool ok = with_bits(type, [&]<class T>(T) {
    d.inst.run = handler<Unary<F<T>, T>>();
    plain_operands(d, sizeof(T), 2);
  });
  if (!ok) d.unsupported("this type");
}

// ---- shifts: amounts of the width and more shift everything out ("shl", "shr") ----

template <class T, bool left>
struct Shift {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    constexpr uint32_t bits = 8 * sizeof(T);
    const auto* a = w.row<Stored<T>>(i.s[1]);
    const auto* b = w.row<uint32_t>(i.s[2]);
    each_lane(
        lanes, w.row<Stored<T>>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const T x = load_lane<T>(a, l);
          const uint32_t n = b[l];
          if constexpr (left) {
            return stored<T>(n < bits
                                 ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << (n & (bits - 1)))
                                 : T{0});
          } else if constexpr (std::is_signed_v<T>) {
            return stored<T>(static_cast<T>(x >> (n < bits ? n : bits - 1)));
          } else {
            return stored<T>(n < bits ? static_cast<T>(x >> (n & (bits - 1))) : T{0});
          }
        });
  }
};

template <bool left>
void decode_shift(Decoding& d) {
  const bool ok = with_integer(d.take_type(), [&]<class T>(T) {
    d.inst.run = handler<Shift<T, left>>();
    d.inst.s[0] = d.destination(0, sizeof(T));
    d.inst.s[1] = d.source(1, sizeof(T));
    d.inst.s[2] = d.source(2, 4);
  });
  if (!ok) d.unsupported("this type");
}

// "shf": the funnel [b:a] shifted; the amount wraps at 32 or is clamped to it.
template <bool left, bool wrap>
struct Funnel {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = wrap ? c & 31 : (c < 32 ? c : 32);
    const uint64_t both = uint64_t{b} << 32 | a;
    return static_cast<uint32_t>(left ? (both << n) >> 32 : both >> n);
  }
};

void decode_shf(Decoding& d) {
  const bool left = d.take_one_of({"l", "r"}) == "l";
  const bool wrap = d.take_one_of({"wrap", "clamp"}) == "wrap";
  d.take_type();
  plain_operands(d, 4, 4);
  if (left)
    d.inst.run = wrap ? handler<Ternary<Funnel<true, true>, uint32_t>>()
                      : handler<Ternary<Funnel<true, false>, uint32_t>>();
  else
    d.inst.run = wrap ? handler<Ternary<Funnel<false, true>, uint32_t>>()
                      : handler<Ternary<Funnel<false, false>, uint32_t>>();
}

// ---- lop3: a table of eight results, one for each combination of the bits of a, b and c ----

// Selected by z, then by y, then by x: r ^ (m & (r ^ s)) is s where m is set, else r.
struct Lop3 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<uint32_t>(i.s[1]), *b = w.row<uint32_t>(i.s[2]), *c = w.row<uint32_t>(i.s[3]);
    uint32_t zero[4], change[4];  // by x and y: the result for z = 0, and what z = 1 changes
    for (int n = 0; n < 4; ++n) {
      zero[n] = (i.imm >> (2 * n) & 1) ? kAllLanes : 0;
      change[n] = zero[n] ^ ((i.imm >> (2 * n + 1) & 1) ? kAllLanes : 0);
    }
    each_lane(
        lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const uint32_t x = a[l], y = b[l], z = c[l];
          const uint32_t r0 = zero[0] ^ (z & change[0]), r1 = zero[1] ^ (z & change[1]),
                         r2 = zero[2] ^ (z & change[2]), r3 = zero[3] ^ (z & change[3]);
          const uint32_t low = r0 ^ (y & (r0 ^ r1)), high = r2 ^ (y & (r2 ^ r3));
          return low ^ (x & (low ^ high));
        });
  }
};
// The forms compilers use most.
struct Xor3 {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return a ^ b ^ c; }
};
struct AndOr {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }
};
struct AndXor {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return (a & b) ^ c; }
};

// "lop3.BoolOp d|p, a, b, c, immLut, q": p = (d != 0) BoolOp q. s[4] holds q, the extra slot p.
struct Lop3Predicate {
  Slot p;
  bool is_or = false, negated = false;
};
Flow run_lop3_predicate(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& extra = *static_cast<const Lop3Predicate*>(i.extra);
  const uint32_t q = w.mask(i.s[4]) ^ (extra.negated ? kAllLanes : 0);
  Lop3::run(w, i, lanes);
  const auto* d = w.row<uint32_t>(i.s[0]);
  const uint32_t nonzero = each_lane_mask(lanes, 0, [&](int l) { return d[l] != 0; });
  uint32_t& p = w.mask(extra.p);
  p = (p & ~lanes) | ((extra.is_or ? nonzero | q : nonzero & q) & lanes);
  return Flow::next;
}

void decode_lop3(Decoding& d) {
  const auto bool_op = d.take_one_of({"and", "or"});
  d.take_type();
  const auto* both = d.operand(0).as<ptx::Pair>();
  d.inst.s[0] = d.destination(both ? both->both[0] : d.operand(0), 4);
  for (size_t n = 1; n <= 3; ++n) d.inst.s[n] = d.source(n, 4);
  const auto* table = d.operand(4).as<ptx::Immediate>();
  if (!table) d.unsupported("a lookup table that is no constant");
  d.inst.imm = static_cast<int64_t>(table->bits & 0xFF);
  if (both) {
    d.inst.s[4] = d.predicate(d.operand(5));
    d.inst.extra = d.keep(Lop3Predicate{d.predicate_destination(both->both[1]), bool_op == "or",
                                        Decoding::negated(d.operand(5))});
    d.inst.run = &run_lop3_predicate;
    return;
  }
  switch (d.inst.imm) {
    case 0x96: d.inst.run = handler<Ternary<Xor3, uint32_t>>(); break;
    case 0xEA: d.inst.run = handler<Ternary<AndOr, uint32_t>>(); break;
    case 0x6A: d.inst.run = handler<Ternary<AndXor, uint32_t>>(); break;
    default: d.inst.run = handler<Lop3>();
  }
}

// ---- bit counts and fields ----

template <class T>
struct Popc {
  // By halves, which vectorises where std::popcount does not.
  static uint32_t apply(T a) {
    if constexpr (sizeof(T) == 8)
      return apply32(static_cast<uint32_t>(a)) + apply32(static_cast<uint32_t>(a >> 32));
    else return apply32(a);
  }
  static uint32_t apply32(uint32_t a) {
    a = a - (a >> 1 & 0x55555555);
    a = (a & 0x33333333) + (a >> 2 & 0x33333333);
    a = (a + (a >> 4)) & 0x0F0F0F0F;
    a += a >> 8;
    return (a + (a >> 16)) & 0x3F;
  }
};
template <class T>
struct Clz {
  static uint32_t apply(T a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};
// Position of the most significant bit that differs from the sign; all ones if there is none.
template <class T>
uint32_t find_leading(T a) {
  auto v = static_cast<std::make_unsigned_t<T>>(a);
  if constexpr (std::is_signed_v<T>)
    if (a < 0) v = static_cast<std::make_unsigned_t<T>>(~v);
  return v == 0 ? kAllLanes
                : static_cast<uint32_t>(8 * sizeof(T) - 1 - static_cast<unsigned>(std::countl_zero(v)));
}
template <class T>
struct Bfind {
  static uint32_t apply(T a) { return find_leading(a); }
};
template <class T>
struct BfindShift {
  static uint32_t apply(T a) {
    const uint32_t n = find_leading(a);
    return n == kAllLanes ? n : static_cast<uint32_t>(8 * sizeof(T) - 1) - n;
  }
};
template <class T>
struct Brev {
  template <unsigned step>
  [[gnu::always_inline]] static T swap(T a) {
    constexpr T low = static_cast<T>(static_cast<T>(~T{0}) / ((T{1} << step) + 1));  // every second group
    return static_cast<T>((a >> step & low) | (a & low) << step);
  }
  static T apply(T a) {
    // Neighbouring bits, pairs, and so on change places.
    a = swap<1>(swap<2>(swap<4>(swap<8>(swap<16>(a)))));
    if constexpr (sizeof(T) == 8) a = swap<32>(a);
    return a;
  }
};
// "bfe": position and length count in 8 bits; a field that reaches over the top is filled with the sign.
template <class T>
struct Bfe {
  static T apply(T a, uint32_t position, uint32_t length) {
    // The field at the top of the value, zeros or signs above it, then moved down in two steps of less than
    // the width: a shift by the whole width is no shift in C++.
    constexpr uint32_t width = 8 * sizeof(T);
    const uint32_t pos = position & 0xFF, len = length & 0xFF;
    const uint32_t end = pos + len < width ? pos + len : width;  // just above the field
    const T aligned =
        static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << ((width - end) & (width - 1)));
    const uint32_t down = width - (pos < width ? end - pos : 0);
    const T field = static_cast<T>(aligned >> (down < width ? down : width - 1));
    const T none = std::is_signed_v<T> ? field : T{0};  // above the top: the sign
    return len == 0 ? T{0} : pos >= width ? none : field;
  }
};
template <class T>
struct BfeKernel {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<T>(i.s[1]);
    const auto *b = w.row<uint32_t>(i.s[2]), *c = w.row<uint32_t>(i.s[3]);
    each_lane(
        lanes, w.row<T>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return Bfe<T>::apply(a[l], b[l], c[l]);
        });
  }
};
template <class T>
struct BfiKernel {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    constexpr uint32_t bits = 8 * sizeof(T);
    const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]);
    const auto *c = w.row<uint32_t>(i.s[3]), *length = w.row<uint32_t>(i.s[4]);
    each_lane(lanes, w.row<T>(i.s[0]), [&](int l) {
      const uint32_t pos = c[l] & 0xFF, len = length[l] & 0xFF;
      if (pos >= bits || len == 0) return b[l];
      const T field = len >= bits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << len) - 1);
      const T mask = static_cast<T>(field << pos);
      return static_cast<T>((b[l] & ~mask) | ((a[l] << pos) & mask));
    });
  }
};
// "bmsk": clamp limits start and width to 32, wrap takes them modulo 32.
template <bool wrap>
struct Bmsk {
  static uint32_t apply(uint32_t a, uint32_t b) {
    const uint32_t start = wrap ? a & 31 : (a < 32 ? a : 32), width = wrap ? b & 31 : (b < 32 ? b : 32);
    const uint32_t ones = width == 0 ? 0 : kAllLanes >> ((32 - width) & 31);
    return start < 32 ? ones << (start & 31) : 0;
  }
};
// "szext": extends from the bit at position N - 1; N = 0 gives 0, N >= 32 (clamp) the value itself.
template <bool wrap, bool is_signed>
struct Szext {
  static uint32_t apply(uint32_t a, uint32_t b) {
    const uint32_t n = wrap ? b & 31 : (b < 32 ? b : 32);
    if (n == 0) return 0;
    if (n >= 32) return a;
    const uint32_t mask = (1u << n) - 1;
    const bool sign = is_signed && (a >> (n - 1) & 1);
    return sign ? a | ~mask : a & mask;
  }
};
// "fns": the n-th set bit of mask from base, upwards for n > 0, downwards for n < 0; base itself for n = 0.
struct Fns {
  static uint32_t apply(uint32_t mask, uint32_t base, uint32_t n) {
    const auto offset = static_cast<int32_t>(n);
    if (offset == 0) return base < 32 && (mask >> base & 1) ? base : kAllLanes;
    int remaining = offset > 0 ? offset - 1 : -offset - 1;
    const int step = offset > 0 ? 1 : -1;
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
      if (!(mask >> at & 1)) continue;
      if (remaining-- == 0) return static_cast<uint32_t>(at);
    }
    return kAllLanes;
  }
};

// ---- prmt ----

enum class Permute : uint8_t { bytes, f4e, b4e, rc8, ecl, ecr, rc16 };

// Which byte of {b, a} goes to each byte, and whether its sign is copied to all its bits (0x8): an index a
// byte.
template <Permute mode>
[[gnu::always_inline]] inline uint32_t permute_indices(uint32_t selector) {
  constexpr uint32_t each = 0x01010101, count = 0x03020100;
  const uint32_t s = selector & 3;
  switch (mode) {
    case Permute::bytes: {
      const uint32_t pairs = ((selector & 0xFF00) << 8) | (selector & 0xFF);
      return (pairs | pairs << 4) & 0x0F0F0F0F;
    }
    case Permute::f4e: return s * each + count;
    case Permute::b4e: return (s * each + 8 * each - count) & 0x07070707;
    case Permute::rc8: return s * each;
    case Permute::ecl: return s == 0 ? count : s == 1 ? 0x03020101 : s == 2 ? 0x03020202 : 0x03030303;
    case Permute::ecr: return s == 0 ? 0 : s == 1 ? 0x01010100 : s == 2 ? 0x02020100 : count;
    case Permute::rc16: return (s & 1) * 2 * each + 0x01000100;
  }
  return 0;
}
template <Permute mode>
struct Prmt {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto* selector = w.row<uint32_t>(i.s[3]);
      uint32_t from[32], value[32];
      for (int l = 0; l < 32; ++l) from[l] = permute_indices<mode>(selector[l]);
      permute_bytes<level>(w.row<uint32_t>(i.s[1]), w.row<uint32_t>(i.s[2]), from, value);
      each_lane(
          lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return value[l]; });
    }
  };
};
Handler permute_handler(std::string_view mode) {
  if (mode == "f4e") return level_handler<Prmt<Permute::f4e>::Kernel>();
  if (mode == "b4e") return level_handler<Prmt<Permute::b4e>::Kernel>();
  if (mode == "rc8") return level_handler<Prmt<Permute::rc8>::Kernel>();
  if (mode == "ecl") return level_handler<Prmt<Permute::ecl>::Kernel>();
  if (mode == "ecr") return level_handler<Prmt<Permute::ecr>::Kernel>();
  if (mode == "rc16") return level_handler<Prmt<Permute::rc16>::Kernel>();
  return level_handler<Prmt<Permute::bytes>::Kernel>();
}

void decode_prmt(Decoding& d) {
  d.take_type();
  const auto mode = d.take_one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  plain_operands(d, 4, 4);
  d.inst.run = permute_handler(mode);
}

// ---- decoding of the rest ----

template <template <class> class F>
void decode_count(Decoding& d) {
  const bool ok = with_bits(d.take_type(), [&]<class T>(T) {
    d.inst.run = handler<Unary<F<T>, T, uint32_t>>();
    d.inst.s[0] = d.destination(0, 4);
    d.inst.s[1] = d.source(1, sizeof(T));
  });
  if (!ok) d.unsupported("this type");
}

void decode_bfind(Decoding& d) {
  const bool shift = d.take("shiftamt");
  const bool ok = with_integer(d.take_type(), [&]<class T>(T) {
    d.inst.run =
        shift ? handler<Unary<BfindShift<T>, T, uint32_t>>() : handler<Unary<Bfind<T>, T, uint32_t>>();
    d.inst.s[0] = d.destination(0, 4);
    d.inst.s[1] = d.source(1, sizeof(T));
  });
  if (!ok) d.unsupported("this type");
}

void decode_bfe(Decoding& d) {
  const bool ok = with_integer(d.take_type(), [&]<class T>(T) {
    if constexpr (sizeof(T) >= 4) d.inst.run = handler<BfeKernel<T>>();
    d.inst.s[0] = d.destination(0, sizeof(T));
    d.inst.s[1] = d.source(1, sizeof(T));
    d.inst.s[2] = d.source(2, 4);
    d.inst.s[3] = d.source(3, 4);
  });
  if (!ok || !d.inst.run) d.unsupported("this type");
}

void decode_bfi(Decoding& d) {
  const bool ok = with_bits(d.take_type(), [&]<class T>(T) {
    if constexpr (sizeof(T) >= 4) d.inst.run = handler<BfiKernel<T>>();
    d.inst.s[0] = d.destination(0, sizeof(T));
    d.inst.s[1] = d.source(1, sizeof(T));
    d.inst.s[2] = d.source(2, sizeof(T));
    d.inst.s[3] = d.source(3, 4);
    d.inst.s[4] = d.source(4, 4);
  });
  if (!ok || !d.inst.run) d.unsupported("this type");
}

void decode_bmsk(Decoding& d) {
  const bool wrap = d.take_one_of({"clamp", "wrap"}) == "wrap";
  d.take_type();
  plain_operands(d, 4, 3);
  d.inst.run = wrap ? handler<Binary<Bmsk<true>, uint32_t>>() : handler<Binary<Bmsk<false>, uint32_t>>();
}

void decode_szext(Decoding& d) {
  const bool wrap = d.take_one_of({"clamp", "wrap"}) == "wrap";
  const bool is_signed = d.take_type() == Type::s32;
  plain_operands(d, 4, 3);
  if (wrap)
    d.inst.run = is_signed ? handler<Binary<Szext<true, true>, uint32_t>>()
                           : handler<Binary<Szext<true, false>, uint32_t>>();
  else
    d.inst.run = is_signed ? handler<Binary<Szext<false, true>, uint32_t>>()
                           : handler<Binary<Szext<false, false>, uint32_t>>();
}

}  // namespace

void register_logic(Registry& r) {
  r.add("and", &decode_binary_bits<And>);
  r.add("or", &decode_binary_bits<Or>);
  r.add("xor", &decode_binary_bits<Xor>);
  r.add("not", &decode_unary_bits<Not>);
  r.add("cnot", &decode_unary_bits<Cnot>);
  r.add("shl", &decode_shift<true>);
  r.add("shr", &decode_shift<false>);
  r.add("shf", &decode_shf);
  r.add("lop3", &decode_lop3);
  r.add("popc", &decode_count<Popc>);
  r.add("clz", &decode_count<Clz>);
  r.add("bfind", &decode_bfind);
  r.add("brev", &decode_unary_bits<Brev>);
  r.add("bfe", &decode_bfe);
  r.add("bfi", &decode_bfi);
  r.add("bmsk", &decode_bmsk);
  r.add("szext", &decode_szext);
  r.add("prmt", &decode_prmt);
  r.add("fns", [](Decoding& d) {
    d.take_type();
    plain_operands(d, 4, 4);
    d.inst.run = handler<Ternary<Fns, uint32_t>>();
  });
}

}  // namespace tw::sim
