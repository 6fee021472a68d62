#include <algorithm>
#include <limits>

#include "tilewright/sim/arithmetic.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions".
namespace tw::sim {

namespace {

using ptx::Type;

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
struct WiderOf;
template <>
struct WiderOf<int16_t> {
  using type = int32_t;
};
template <>
struct WiderOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct WiderOf<int32_t> {
  using type = int64_t;
};
template <>
struct WiderOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct WiderOf<int64_t> {
  using type = Int128;
};
template <>
struct WiderOf<uint64_t> {
  using type = UInt128;
};
template <class T>
using Wider = typename WiderOf<T>::type;

// Arithmetic that wraps: signed types compute in 64 unsigned bits.
template <class T>
struct Add {
  static T apply(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
};
template <>
struct Add<uint32_t> {
  static uint32_t apply(uint32_t a, uint32_t b) { return a + b; }
};
template <class T>
struct Sub {
  static T apply(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
};
template <>
struct Sub<uint32_t> {
  static uint32_t apply(uint32_t a, uint32_t b) { return a - b; }
};
template <class T>
struct AddSat {
  static T apply(T a, T b) {
    const auto wide = static_cast<int64_t>(a) + static_cast<int64_t>(b);
    return static_cast<T>(
        std::clamp<int64_t>(wide, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
};
template <class T>
struct SubSat {
  static T apply(T a, T b) {
    const auto wide = static_cast<int64_t>(a) - static_cast<int64_t>(b);
    return static_cast<T>(
        std::clamp<int64_t>(wide, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
};
template <class T>
struct MulLo {
  static T apply(T a, T b) {
    if constexpr (sizeof(T) == 8) return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else return static_cast<T>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
  }
};
template <class T>
struct MulHi {
  static T apply(T a, T b) { return static_cast<T>((Wider<T>{a} * Wider<T>{b}) >> (8 * sizeof(T))); }
};
template <class T>
struct MulWide {
  static Wider<T> apply(T a, T b) { return Wider<T>{a} * Wider<T>{b}; }
};
template <class T>
struct MadLo {
  static T apply(T a, T b, T c) { return Add<T>::apply(MulLo<T>::apply(a, b), c); }
};
template <class T>
struct MadHi {
  static T apply(T a, T b, T c) { return Add<T>::apply(MulHi<T>::apply(a, b), c); }
};
struct MadHiSat {
  static int32_t apply(int32_t a, int32_t b, int32_t c) {
    return AddSat<int32_t>::apply(MulHi<int32_t>::apply(a, b), c);
  }
};
template <class T>
struct MadWide {
  static Wider<T> apply(T a, T b, Wider<T> c) {
    return static_cast<Wider<T>>(static_cast<Unsigned<Wider<T>>>(MulWide<T>::apply(a, b)) +
                                 static_cast<Unsigned<Wider<T>>>(c));
  }
};
// "div": division by zero yields an unspecified, machine-specific value; NVIDIA machines give all ones. The
// quotient of the lowest number and -1 wraps.
template <class T>
struct Div {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return Sub<T>::apply(0, a);
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Rem {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});  // as an H200 does
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
};
template <class T>
struct Abs {
  static T apply(T a) { return a < 0 ? Sub<T>::apply(0, a) : a; }
};
template <class T>
struct Neg {
  static T apply(T a) { return Sub<T>::apply(0, a); }
};
template <class T>
struct Min {
  static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Max {
  static T apply(T a, T b) { return a > b ? a : b; }
};
struct MinRelu {
  static int32_t apply(int32_t a, int32_t b) { return std::max(std::min(a, b), 0); }
};
struct MaxRelu {
  static int32_t apply(int32_t a, int32_t b) { return std::max(std::max(a, b), 0); }
};
template <class T>
struct Sad {
  static T apply(T a, T b, T c) {
    return Add<T>::apply(c, a < b ? Sub<T>::apply(b, a) : Sub<T>::apply(a, b));
  }
};
template <bool high, bool is_signed>
int64_t mul24(uint32_t a, uint32_t b) {
  int64_t x, y;
  if constexpr (is_signed) {
    x = static_cast<int32_t>(a << 8) >> 8;
    y = static_cast<int32_t>(b << 8) >> 8;
  } else {
    x = a & 0xFFFFFF;
    y = b & 0xFFFFFF;
  }
  return high ? (x * y) >> 16 : x * y;
}
template <bool high, bool is_signed>
struct Mul24 {
  static uint32_t apply(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(mul24<high, is_signed>(a, b));
  }
};
template <bool high, bool is_signed>
struct Mad24 {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(mul24<high, is_signed>(a, b)) + c;
  }
};

// Two 16-bit values in one register.
template <template <class> class F, class T>
struct Halves {
  static uint32_t apply(uint32_t a, uint32_t b) {
    const auto low = static_cast<uint16_t>(F<T>::apply(static_cast<T>(a), static_cast<T>(b)));
    const auto high = static_cast<uint16_t>(F<T>::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return uint32_t{high} << 16 | low;
  }
};
template <template <class> class F, class T>
struct ReluHalves {
  static uint32_t apply(uint32_t a, uint32_t b) {
    return Halves<Max, int16_t>::apply(Halves<F, T>::apply(a, b), 0);
  }
};

// ---- decoding ----

template <template <class> class F>
bool binary_handler(Decoding& d, Type type, size_t operands = 3) {
  return with_integer(type, [&]<class T>(T) {
    d.inst.run = handler<Binary<F<T>, T>>();
    plain_operands(d, sizeof(T), operands);
  });
}

template <template <class> class F, template <class> class Sat>
void add_or_sub(Decoding& d, Type type) {
  if (d.take("sat")) {
    if (type != Type::s32) d.unsupported("saturation of this type");
    d.inst.run = handler<Binary<Sat<int32_t>, int32_t>>();
    plain_operands(d, 4, 3);
  } else if (type == Type::none && (d.take("u16x2") || d.take("s16x2"))) {
    d.inst.run = handler<Binary<Halves<F, uint16_t>, uint32_t>>();
    plain_operands(d, 4, 3);
  } else if (!binary_handler<F>(d, type)) {
    d.unsupported("this type");
  }
}

// ---- extended precision: the carry is CC.CF, one bit a lane ----

enum class Carry : uint8_t { none = 0, in = 1, out = 2, in_out = 3 };

template <class T, bool subtract, Carry carry>
[[gnu::always_inline]] inline void carry_chain(Warp& w, const T* a, const T* b, T* d, uint32_t lanes) {
  uint32_t& flag = w.mask(kCarry);
  const uint32_t in = flag;
  uint32_t over[32];
  T value[32];
  for (int l = 0; l < 32; ++l) {
    // a - b - borrow, the borrow being the flag ("sub.cc": CC.CF holds the borrow-out).
    const T c = (static_cast<int>(carry) & 1) ? static_cast<T>(in >> l & 1) : T{0};
    const T x = a[l], y = b[l];
    const T first = subtract ? x - y : x + y, sum = subtract ? first - c : first + c;
    const bool out = subtract ? (x < y) | (first < c) : (first < x) | (sum < first);
    value[l] = sum;
    over[l] = out ? 1u << l : 0;
  }
  uint32_t out = 0;
  for (int l = 0; l < 32; ++l) out |= over[l];
  each_lane(
      lanes, d, [&](int l) __attribute__((always_inline)) { return value[l]; });
  if (static_cast<int>(carry) & 2) flag = (flag & ~lanes) | (out & lanes);
}

template <class T, bool subtract, Carry carry>
struct AddCarry {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    carry_chain<T, subtract, carry>(w, w.row<T>(i.s[1]), w.row<T>(i.s[2]), w.row<T>(i.s[0]), lanes);
  }
};

template <class T, bool high, Carry carry>
Flow mad_carry(Warp& w, const Inst& i, uint32_t lanes) {
  const T *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]);
  Unsigned<T> product[32];
  for (int l = 0; l < 32; ++l)
    product[l] = static_cast<Unsigned<T>>(high ? MulHi<T>::apply(a[l], b[l]) : MulLo<T>::apply(a[l], b[l]));
  carry_chain<Unsigned<T>, false, carry>(w, product, w.row<Unsigned<T>>(i.s[3]), w.row<Unsigned<T>>(i.s[0]),
                                         lanes);
  return Flow::next;
}

template <bool subtract>
void decode_carry(Decoding& d, bool in) {
  const bool out = d.take("cc");
  const Type type = d.take_type();
  const auto pick = [&]<class T>(T) -> Handler {
    if (in && out) return handler<AddCarry<T, subtract, Carry::in_out>>();
    if (in) return handler<AddCarry<T, subtract, Carry::in>>();
    return handler<AddCarry<T, subtract, Carry::out>>();
  };
  const int bytes = ptx::bytes(type);
  d.inst.run = bytes == 8 ? pick(uint64_t{}) : pick(uint32_t{});
  plain_operands(d, bytes, 3);
}

void decode_mad_carry(Decoding& d, bool in) {
  const bool high = d.take_one_of({"lo", "hi"}) == "hi";
  const bool out = d.take("cc");
  const Type type = d.take_type();
  const bool ok = with_integer(type, [&]<class T>(T) {
    if constexpr (sizeof(T) >= 4) {
      if (in && out)
        d.inst.run = high ? &mad_carry<T, true, Carry::in_out> : &mad_carry<T, false, Carry::in_out>;
      else if (in) d.inst.run = high ? &mad_carry<T, true, Carry::in> : &mad_carry<T, false, Carry::in>;
      else d.inst.run = high ? &mad_carry<T, true, Carry::out> : &mad_carry<T, false, Carry::out>;
      plain_operands(d, sizeof(T), 4);
    }
  });
  if (!ok || !d.inst.run) d.unsupported("this type");
}

}  // namespace

// add, sub, mul, mad, min, max, abs and neg have integer and floating-point forms; the latter are in
// ops_float.cpp.
void decode_integer_add(Decoding& d, Type type) { add_or_sub<Add, AddSat>(d, type); }
void decode_integer_sub(Decoding& d, Type type) { add_or_sub<Sub, SubSat>(d, type); }
void decode_add_cc(Decoding& d) { decode_carry<false>(d, false); }
void decode_sub_cc(Decoding& d) { decode_carry<true>(d, false); }

void decode_integer_mul(Decoding& d, Type type) {
  const auto half = d.take_one_of({"lo", "hi", "wide"});
  const bool ok = with_integer(type, [&]<class T>(T) {
    if (half == "wide") {
      if constexpr (sizeof(T) <= 4) {
        d.inst.run = handler<Binary<MulWide<T>, T, Wider<T>>>();
        d.inst.s[0] = d.destination(0, 2 * sizeof(T));
        d.inst.s[1] = d.source(1, sizeof(T));
        d.inst.s[2] = d.source(2, sizeof(T));
      }
      return;
    }
    d.inst.run = half == "hi" ? handler<Binary<MulHi<T>, T>>() : handler<Binary<MulLo<T>, T>>();
    plain_operands(d, sizeof(T), 3);
  });
  if (!ok || !d.inst.run) d.unsupported("this type");
}

void decode_integer_mad(Decoding& d, Type type, std::string_view half) {
  const bool sat = d.take("sat");
  const bool ok = with_integer(type, [&]<class T>(T) {
    if (half == "wide") {
      if constexpr (sizeof(T) <= 4) {
        d.inst.run = handler<Ternary<MadWide<T>, T, Wider<T>>>();
        d.inst.s[0] = d.destination(0, 2 * sizeof(T));
        d.inst.s[1] = d.source(1, sizeof(T));
        d.inst.s[2] = d.source(2, sizeof(T));
        d.inst.s[3] = d.source(3, 2 * sizeof(T));
      }
      return;
    }
    d.inst.run = half == "hi" ? handler<Ternary<MadHi<T>, T>>() : handler<Ternary<MadLo<T>, T>>();
    plain_operands(d, sizeof(T), 4);
  });
  if (sat) {
    if (type != Type::s32 || half != "hi") d.unsupported("saturation here");
    d.inst.run = handler<Ternary<MadHiSat, int32_t>>();
  }
  if (!ok || !d.inst.run) d.unsupported("this type");
}

void decode_mad_cc(Decoding& d) { decode_mad_carry(d, false); }

void decode_integer_min_max(Decoding& d, Type type, bool is_max) {
  const bool relu = d.take("relu");
  if (type == Type::none) {
    const auto pair = d.take_one_of({"u16x2", "s16x2"});
    if (pair.empty()) d.unsupported("this type");
    plain_operands(d, 4, 3);
    if (pair == "u16x2")
      d.inst.run = is_max ? handler<Binary<Halves<Max, uint16_t>, uint32_t>>()
                          : handler<Binary<Halves<Min, uint16_t>, uint32_t>>();
    else if (relu)
      d.inst.run = is_max ? handler<Binary<ReluHalves<Max, int16_t>, uint32_t>>()
                          : handler<Binary<ReluHalves<Min, int16_t>, uint32_t>>();
    else
      d.inst.run = is_max ? handler<Binary<Halves<Max, int16_t>, uint32_t>>()
                          : handler<Binary<Halves<Min, int16_t>, uint32_t>>();
    return;
  }
  if (relu) {
    if (type != Type::s32) d.unsupported("relu of this type");
    d.inst.run = is_max ? handler<Binary<MaxRelu, int32_t>>() : handler<Binary<MinRelu, int32_t>>();
    plain_operands(d, 4, 3);
  } else if (!(is_max ? binary_handler<Max>(d, type) : binary_handler<Min>(d, type))) {
    d.unsupported("this type");
  }
}

void decode_integer_abs_neg(Decoding& d, Type type, bool is_abs) {
  const bool ok = with_integer(type, [&]<class T>(T) {
    d.inst.run = is_abs ? handler<Unary<Abs<T>, T>>() : handler<Unary<Neg<T>, T>>();
    plain_operands(d, sizeof(T), 2);
  });
  if (!ok) d.unsupported("this type");
}

void decode_integer_div(Decoding& d, Type type) {
  if (!binary_handler<Div>(d, type)) d.unsupported("this type");
}

namespace {

template <bool mad>
void decode_24(Decoding& d) {
  const bool high = d.take_one_of({"lo", "hi"}) == "hi";
  if (d.take("sat")) d.unsupported("saturation here");
  const Type type = d.take_type();
  plain_operands(d, 4, mad ? 4 : 3);
  const bool is_signed = type == Type::s32;
  if constexpr (mad) {
    if (high)
      d.inst.run = is_signed ? handler<Ternary<Mad24<true, true>, uint32_t>>()
                             : handler<Ternary<Mad24<true, false>, uint32_t>>();
    else
      d.inst.run = is_signed ? handler<Ternary<Mad24<false, true>, uint32_t>>()
                             : handler<Ternary<Mad24<false, false>, uint32_t>>();
  } else {
    if (high)
      d.inst.run = is_signed ? handler<Binary<Mul24<true, true>, uint32_t>>()
                             : handler<Binary<Mul24<true, false>, uint32_t>>();
    else
      d.inst.run = is_signed ? handler<Binary<Mul24<false, true>, uint32_t>>()
                             : handler<Binary<Mul24<false, false>, uint32_t>>();
  }
}

void decode_sad(Decoding& d) {
  const bool ok = with_integer(d.take_type(), [&]<class T>(T) {
    d.inst.run = handler<Ternary<Sad<T>, T>>();
    plain_operands(d, sizeof(T), 4);
  });
  if (!ok) d.unsupported("this type");
}

// dp4a: four products of bytes, each of which fits 16 bits; dp2a: two products of halves of a with bytes of
// b. Summed modulo 2^32.
template <class A, class B>
struct Dot4 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    using Product = std::conditional_t<std::is_signed_v<A> || std::is_signed_v<B>, int16_t, uint16_t>;
    const auto *a = w.row<uint16_t>(i.s[1]), *b = w.row<uint16_t>(i.s[2]);
    Product even[64], odd[64];
    for (int e = 0; e < 64; ++e) {
      even[e] = static_cast<Product>(static_cast<A>(a[e]) * static_cast<B>(b[e]));
      odd[e] = static_cast<Product>(static_cast<A>(a[e] >> 8) * static_cast<B>(b[e] >> 8));
    }
    const auto* c = w.row<uint32_t>(i.s[3]);
    each_lane(
        lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return c[l] +
                 static_cast<uint32_t>(int32_t{even[2 * l]} + even[2 * l + 1] + odd[2 * l] + odd[2 * l + 1]);
        });
  }
};
template <class A, class B, bool high>
struct Dot2 {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    for (int n = 0; n < 2; ++n) {
      const auto x = static_cast<A>(a >> (16 * n));
      const auto y = static_cast<B>(b >> (8 * n + (high ? 16 : 0)));
      c += static_cast<uint32_t>(int32_t{x} * int32_t{y});
    }
    return c;
  }
};
template <class A4, class A2, class B>
Handler dot_handler(bool two, bool high) {
  if (!two) return handler<Dot4<A4, B>>();
  return high ? handler<Ternary<Dot2<A2, B, true>, uint32_t>>()
              : handler<Ternary<Dot2<A2, B, false>, uint32_t>>();
}

template <bool two>
void decode_dot(Decoding& d) {
  const auto half = two ? d.take_one_of({"lo", "hi"}) : std::string_view{};
  const Type a = d.take_type(), b = d.take_type();
  plain_operands(d, 4, 4);
  const bool b_signed = b == Type::s32, high = half == "hi";
  if (a == Type::s32)
    d.inst.run = b_signed ? dot_handler<int8_t, int16_t, int8_t>(two, high)
                          : dot_handler<int8_t, int16_t, uint8_t>(two, high);
  else
    d.inst.run = b_signed ? dot_handler<uint8_t, uint16_t, int8_t>(two, high)
                          : dot_handler<uint8_t, uint16_t, uint8_t>(two, high);
}

}  // namespace

void register_integer(Registry& r) {
  r.add("rem", [](Decoding& d) {
    if (!binary_handler<Rem>(d, d.take_type())) d.unsupported("this type");
  });
  r.add("mul24", &decode_24<false>);
  r.add("mad24", &decode_24<true>);
  r.add("sad", &decode_sad);
  r.add("dp4a", &decode_dot<false>);
  r.add("dp2a", &decode_dot<true>);
  r.add("addc", [](Decoding& d) { decode_carry<false>(d, true); });
  r.add("subc", [](Decoding& d) { decode_carry<true>(d, true); });
  r.add("madc", [](Decoding& d) { decode_mad_carry(d, true); });
}

}  // namespace tw::sim
