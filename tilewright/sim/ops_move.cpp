#include <algorithm>
#include <cmath>
#include <cstring>

#include "tilewright/base/formats.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"

// PTX ISA, "mov", "cvta", "isspacep", "mapa", "getctarank", and "Comparison and Selection Instructions".
namespace tw::sim {

namespace {

using ptx::Type;

template <class T>
struct Same {
  static T apply(T a) { return a; }
};

// ---- mov ----

struct Move128 {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    for (uint32_t half = 0; half < 2; ++half) {
      const auto* a = w.row<uint64_t>(i.s[1]) + half * kLanes;
      each_lane(lanes, w.row<uint64_t>(i.s[0]) + half * kLanes, [&](int l) { return a[l]; });
    }
  }
};

Flow run_move_predicate(Warp& w, const Inst& i, uint32_t lanes) {
  const uint32_t a = w.mask(i.s[1]) ^ (i.aux ? kAllLanes : 0);
  uint32_t& d = w.mask(i.s[0]);
  d = (d & ~lanes) | (a & lanes);
  return Flow::next;
}

// Packing and unpacking: elements from the low bits up.
struct Pieces {
  Slot slot[8];
  bool used[8] = {};
  uint32_t count = 0, bits = 0;  // per element
};

uint64_t row_value(const Warp& w, Slot s, int lane, bool wide) {
  return wide ? w.row<uint64_t>(s)[lane] : w.row<uint32_t>(s)[lane];
}

// s[0] <- pieces; imm: bytes of the whole.
Flow run_pack(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& p = *static_cast<const Pieces*>(i.extra);
  if (i.imm == 16) {
    for (uint32_t half = 0; half < 2; ++half) {
      auto* d = w.row<uint64_t>(i.s[0]) + half * kLanes;
      each_lane(lanes, d, [&](int l) {
        uint64_t v = 0;
        const uint32_t per = 64 / p.bits;
        for (uint32_t n = 0; n < per; ++n)
          v |= row_value(w, p.slot[half * per + n], l, p.bits == 64) << (n * p.bits % 64);
        return v;
      });
    }
    return Flow::next;
  }
  auto whole = [&](int l) {
    uint64_t v = 0;
    for (uint32_t n = 0; n < p.count; ++n) {
      v |= (row_value(w, p.slot[n], l, false) & (~uint64_t{0} >> (64 - p.bits))) << (n * p.bits);
    }
    return v;
  };
  if (i.imm == 8) each_lane(lanes, w.row<uint64_t>(i.s[0]), whole);
  else each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int l) { return static_cast<uint32_t>(whole(l)); });
  return Flow::next;
}

// pieces <- s[1]. Sources are read before any destination is written: they may be the same register.
Flow run_unpack(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& p = *static_cast<const Pieces*>(i.extra);
  uint64_t low[32], high[32];
  for (int l = 0; l < 32; ++l) {
    low[l] = row_value(w, i.s[1], l, i.imm >= 8);
    high[l] = i.imm == 16 ? (w.row<uint64_t>(i.s[1]) + kLanes)[l] : 0;
  }
  for (uint32_t n = 0; n < p.count; ++n) {
    if (!p.used[n]) continue;
    const uint32_t at = n * p.bits;
    const uint64_t* from = at >= 64 ? high : low;
    const uint64_t mask = ~uint64_t{0} >> (64 - p.bits);
    auto value = [&](int l) { return from[l] >> (at % 64) & mask; };
    if (p.bits == 64) each_lane(lanes, w.row<uint64_t>(p.slot[n]), value);
    else each_lane(lanes, w.row<uint32_t>(p.slot[n]), [&](int l) { return static_cast<uint32_t>(value(l)); });
  }
  return Flow::next;
}

// The common pairs.
struct PackHalves {
  static uint32_t apply(uint32_t a, uint32_t b) { return (a & 0xFFFF) | b << 16; }
};
struct PackWords {
  static uint64_t apply(uint32_t a, uint32_t b) { return uint64_t{b} << 32 | a; }
};

// A whole of 32 or 64 bits into two pieces.
template <class Whole>
struct UnpackPair {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    constexpr int bits = 4 * sizeof(Whole);
    constexpr auto mask = static_cast<uint32_t>(~uint64_t{0} >> (64 - bits));
    Whole whole[32];  // either destination may be the source
    std::memcpy(whole, w.row<Whole>(i.s[1]), sizeof whole);
    const auto& p = *static_cast<const Pieces*>(i.extra);
    for (int n = 0; n < 2; ++n) {
      if (!p.used[n]) continue;
      each_lane(
          lanes, w.row<uint32_t>(p.slot[n]), [&](int l) __attribute__((always_inline)) {
            return static_cast<uint32_t>(whole[l] >> (n * bits)) & mask;
          });
    }
  }
};

void decode_move_vector(Decoding& d, Type type, const ptx::Vector& v, bool pack) {
  const int bytes = ptx::bytes(type);
  Pieces p;
  p.count = static_cast<uint32_t>(v.elements.size());
  if (p.count == 0 || p.count > 8) d.unsupported("a vector of this length");
  p.bits = static_cast<uint32_t>(bytes) * 8 / p.count;
  for (uint32_t n = 0; n < p.count; ++n) {
    p.used[n] = !v.elements[n].is<ptx::Sink>();
    const int piece = std::max(static_cast<int>(p.bits / 8), 1);
    if (pack) p.slot[n] = d.source(v.elements[n], piece);
    else if (p.used[n]) p.slot[n] = d.destination(v.elements[n], piece);
  }
  d.inst.imm = bytes;
  if (pack) d.inst.s[0] = d.destination(0, bytes);
  else d.inst.s[1] = d.source(1, bytes);
  d.inst.run = pack ? &run_pack : &run_unpack;
  if (pack && p.count == 2 && bytes <= 8 && bytes >= 4) {
    d.inst.s[1] = p.slot[0];
    d.inst.s[2] = p.slot[1];
    d.inst.run = bytes == 4 ? handler<Binary<PackHalves, uint32_t>>()
                            : handler<Binary<PackWords, uint32_t, uint64_t>>();
  }
  if (!pack && p.count == 2 && bytes <= 8 && bytes >= 4)
    d.inst.run = bytes == 4 ? handler<UnpackPair<uint32_t>>() : handler<UnpackPair<uint64_t>>();
  d.inst.extra = d.keep(p);
}

// Special registers that change while a warp runs: clocks count the warp instructions of the cluster.
Flow run_clock(Warp& w, const Inst& i, uint32_t lanes) {
  const uint64_t now = w.cluster().instructions() + w.instructions();
  const uint64_t value = i.aux == 32 ? now >> 32 : now;
  if (i.imm == 8) each_lane(lanes, w.row<uint64_t>(i.s[0]), [&](int) { return value; });
  else each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return static_cast<uint32_t>(value); });
  return Flow::next;
}

bool decode_clock(Decoding& d, std::string_view name, int bytes) {
  if (name != "%clock" && name != "%clock64" && name != "%clock_hi" && name != "%globaltimer" &&
      name != "%globaltimer_lo" && name != "%globaltimer_hi")
    return false;
  d.inst.aux = name.ends_with("_hi") ? 32 : 0;
  d.inst.imm = bytes;
  d.inst.s[0] = d.destination(0, bytes);
  d.inst.run = &run_clock;
  return true;
}

void decode_mov(Decoding& d) {
  const Type type = d.take_type();
  if (type == Type::none) d.unsupported("this type");
  if (type == Type::pred) {
    d.inst.s[0] = d.predicate_destination(d.operand(0));
    d.inst.aux = Decoding::negated(d.operand(1));
    if (const auto* s = d.operand(1).as<ptx::SpecialReg>()) {
      if (s->name != "%is_explicit_cluster")
        d.unsupported(tw::format("the special register {} here", s->name));
      d.inst.s[1] = d.special_predicate();
    } else {
      d.inst.s[1] = d.predicate(d.operand(1));
    }
    d.inst.run = &run_move_predicate;
    return;
  }
  const int bytes = ptx::bytes(type);
  if (const auto* v = d.operand(1).as<ptx::Vector>()) return decode_move_vector(d, type, *v, true);
  if (const auto* v = d.operand(0).as<ptx::Vector>()) return decode_move_vector(d, type, *v, false);
  if (const auto* s = d.operand(1).as<ptx::SpecialReg>()) {
    if (decode_clock(d, s->name, bytes)) return;
  }
  d.inst.s[0] = d.destination(0, bytes);
  if (const auto* a = d.operand(1).as<ptx::Address>()) {  // "mov.u32 d, variable+offset"
    const auto* s = a->base.front().as<ptx::Symbol>();
    if (!s) d.unsupported("an operand of this form");
    d.inst.s[1] = d.symbol(s->name, a->offset, bytes == 8);
  } else {
    d.inst.s[1] = d.float_source(d.operand(1), type);
  }
  if (bytes == 16) d.inst.run = handler<Move128>();
  else
    d.inst.run =
        bytes == 8 ? handler<Unary<Same<uint64_t>, uint64_t>>() : handler<Unary<Same<uint32_t>, uint32_t>>();
}

// ---- addresses ----

// Generic addresses are windows; global addresses are generic addresses already.
struct AddWindow {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto window = static_cast<uint64_t>(i.imm);
    if (i.aux == 4) {  // from a 32-bit address
      const auto* a = w.row<uint32_t>(i.s[1]);
      each_lane(lanes, w.row<uint64_t>(i.s[0]), [&](int l) { return a[l] + window; });
    } else {
      const auto* a = w.row<uint64_t>(i.s[1]);
      each_lane(lanes, w.row<uint64_t>(i.s[0]), [&](int l) { return a[l] + window; });
    }
  }
};

uint64_t window_base(std::string_view space) {
  if (space.starts_with("shared")) return kSharedWindow;
  if (space == "local") return kLocalWindow;
  if (space.starts_with("param")) return kParamWindow;
  if (space == "const") return kConstWindow;
  return 0;
}

std::string_view take_space(Decoding& d) {
  return d.take_one_of(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const"});
}

void decode_cvta(Decoding& d) {
  const bool to = d.take("to");
  const auto space = take_space(d);
  if (ptx::bytes(d.take_type()) != 8) d.unsupported("a 32-bit generic address");
  uint64_t window = window_base(space);
  if (to) window = uint64_t{0} - window;
  d.inst.s[0] = d.destination(0, 8);
  d.inst.imm = static_cast<int64_t>(window);
  const ptx::Operand& from = d.operand(1);
  if (const auto* s = from.as<ptx::Symbol>()) d.inst.s[1] = d.symbol(s->name, 0, true);
  else d.inst.s[1] = d.source(from, 8);
  d.inst.run = handler<AddWindow>();
}

Flow run_isspacep(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* a = w.row<uint64_t>(i.s[1]);
  const auto window = static_cast<uint64_t>(i.imm);
  const bool own_only = i.aux == 1;
  const uint64_t own = shared_address(w.cta().rank, 0) - kSharedReserved;
  uint32_t& d = w.mask(i.s[0]);
  d = each_lane_mask(lanes, d, [&](int l) {
    if (window == 0) return a[l] < kConstWindow;
    if (a[l] < window || a[l] - window >= kWindowSize) return false;
    return !own_only || ((a[l] - window) & ~uint64_t{0xFFFFFF}) == own;
  });
  return Flow::next;
}

void decode_isspacep(Decoding& d) {
  const auto space = take_space(d);
  d.inst.imm = static_cast<int64_t>(window_base(space));
  d.inst.aux = space == "shared" || space == "shared::cta";
  d.inst.s[0] = d.predicate_destination(d.operand(0));
  d.inst.s[1] = d.source(1, 8);
  d.inst.run = &run_isspacep;
}

// mapa: the address of the same variable in another CTA of the cluster. aux: operand bytes; imm: window to
// add.
Flow run_mapa(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* rank = w.row<uint32_t>(i.s[2]);
  const auto size = static_cast<uint32_t>(w.cluster().ctas.size());
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((lanes >> l & 1) && rank[l] >= size)
      w.fault(1u << l, "mapa to CTA rank {} in a cluster of {}", rank[l], size);
  }
  if (i.aux == 8) {
    const auto* a = w.row<uint64_t>(i.s[1]);
    each_lane(lanes, w.row<uint64_t>(i.s[0]),
              [&](int l) { return (a[l] & ~uint64_t{0xFF000000}) | uint64_t{rank[l]} << 24; });
  } else {
    const auto* a = w.row<uint32_t>(i.s[1]);
    each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int l) { return (a[l] & 0xFFFFFFu) | rank[l] << 24; });
  }
  return Flow::next;
}

void decode_mapa(Decoding& d) {
  const bool shared = d.take("shared::cluster");
  const int bytes = ptx::bytes(d.take_type());
  d.inst.s[0] = d.destination(0, bytes);
  d.inst.s[1] = d.source(1, bytes);
  d.inst.s[2] = d.source(2, 4);
  d.inst.aux = static_cast<uint32_t>(bytes);
  (void)shared;  // generic addresses carry the rank in the same bits
  d.inst.run = &run_mapa;
}

Flow run_getctarank(Warp& w, const Inst& i, uint32_t lanes) {
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int l) {
    const uint64_t a = i.aux == 8 ? w.row<uint64_t>(i.s[1])[l] : w.row<uint32_t>(i.s[1])[l];
    return static_cast<uint32_t>(a >> 24) & 0xFF;
  });
  return Flow::next;
}

void decode_getctarank(Decoding& d) {
  d.take("shared::cluster");
  const int bytes = ptx::bytes(d.take_type());
  d.inst.s[0] = d.destination(0, 4);
  d.inst.s[1] = d.source(1, bytes);
  d.inst.aux = static_cast<uint32_t>(bytes);
  d.inst.run = &run_getctarank;
}

// ---- selection ----

template <class T>
struct Select {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]);
    const uint32_t p = w.mask(i.s[3]) ^ i.aux;
    each_lane(
        lanes,
        w.row<T>(i.s[0]), [&](int l) __attribute__((always_inline)) { return (p >> l & 1) ? a[l] : b[l]; });
  }
};

void decode_selp(Decoding& d) {
  const Type type = d.take_type();
  const int bytes = ptx::bytes(type);
  d.inst.s[0] = d.destination(0, bytes);
  d.inst.s[1] = d.float_source(d.operand(1), type);
  d.inst.s[2] = d.float_source(d.operand(2), type);
  d.inst.s[3] = d.predicate(d.operand(3));
  d.inst.aux = Decoding::negated(d.operand(3)) ? kAllLanes : 0;
  d.inst.run = bytes == 8 ? handler<Select<uint64_t>>() : handler<Select<uint32_t>>();
}

// slct: a where c >= 0, else b. Bits of f32 below zero, or NaN: above 0x80000000 or above infinity.
template <class T, bool from_float, bool ftz>
struct SelectBySign {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto *a = w.row<T>(i.s[1]), *b = w.row<T>(i.s[2]);
    const auto* c = w.row<uint32_t>(i.s[3]);
    each_lane(
        lanes, w.row<T>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          const uint32_t bits = ftz && (c[l] & 0x7F800000) == 0 ? 0 : c[l];
          const bool first = from_float ? bits <= 0x7F800000 || bits == 0x80000000 : bits < 0x80000000;
          return first ? a[l] : b[l];
        });
  }
};
template <class T>
Handler select_by_sign(bool from_float, bool ftz) {
  if (!from_float) return handler<SelectBySign<T, false, false>>();
  return ftz ? handler<SelectBySign<T, true, true>>() : handler<SelectBySign<T, true, false>>();
}

void decode_slct(Decoding& d) {
  const bool ftz = d.take("ftz");
  const Type type = d.take_type(), selector = d.take_type();
  const int bytes = ptx::bytes(type);
  d.inst.s[0] = d.destination(0, bytes);
  d.inst.s[1] = d.float_source(d.operand(1), type);
  d.inst.s[2] = d.float_source(d.operand(2), type);
  d.inst.s[3] = d.float_source(d.operand(3), selector);
  d.inst.run = bytes == 8 ? select_by_sign<uint64_t>(selector == Type::f32, ftz)
                          : select_by_sign<uint32_t>(selector == Type::f32, ftz);
}

}  // namespace

void register_move(Registry& r) {
  r.add("mov", &decode_mov);
  r.add("cvta", &decode_cvta);
  r.add("isspacep", &decode_isspacep);
  r.add("mapa", &decode_mapa);
  r.add("getctarank", &decode_getctarank);
  r.add("selp", &decode_selp);
  r.add("slct", &decode_slct);
}

}  // namespace tw::sim
