#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/row_permute.h"

// PTX ISA, "shfl.sync", "vote.sync", "match.sync", "activemask", "redux.sync", "elect.sync". The member mask
// is in s[4]: the warp's loop waits until its lanes are here.
namespace tw::sim {

namespace {

using ptx::Type;

void decode_members(Decoding& d, const ptx::Operand& mask) {
  d.take("sync");
  d.inst.s[4] = d.source(mask, 4);
  d.inst.gather = Gather::members;
}

// ---- shfl: s[0] d, s[1] a, s[2] b, s[3] c; imm: slot of p as offset, -1 for none ----

enum class Shuffle { up, down, bfly, idx };

template <Shuffle mode>
struct ShuffleMode {
  template <VectorLevel level>
  struct Kernel {
    [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
      const auto *a = w.row<uint32_t>(i.s[1]), *b = w.row<uint32_t>(i.s[2]), *c = w.row<uint32_t>(i.s[3]);
      uint32_t from[32], bit[32], value[32];
      for (uint32_t l = 0; l < kLanes; ++l) {
        const uint32_t segment = c[l] >> 8 & 0x1F, clamp = c[l] & 0x1F, n = b[l] & 0x1F;
        const uint32_t low = l & segment, high = low | (clamp & ~segment);
        // "shfl.sync": the pseudo code of its semantics.
        const uint32_t source = mode == Shuffle::up     ? l - n
                                : mode == Shuffle::down ? l + n
                                : mode == Shuffle::bfly ? l ^ n
                                                        : low | (n & ~segment);
        const bool ok =
            mode == Shuffle::up ? static_cast<int32_t>(source) >= static_cast<int32_t>(high) : source <= high;
        from[l] = (ok ? source : l) & 31;
        bit[l] = ok ? 1u << l : 0u;
      }
      uint32_t inside = 0;
      for (uint32_t l = 0; l < kLanes; ++l) inside |= bit[l];
      // What a lane that does not take part would give is unpredictable: the result is poison.
      permute_row<level>(a, from, value);
      if (lanes != kAllLanes) {
        for (uint32_t l = 0; l < kLanes; ++l) value[l] = (lanes >> from[l] & 1) ? value[l] : kAllLanes;
      }
      each_lane(
          lanes, w.row<uint32_t>(i.s[0]), [&](int l) __attribute__((always_inline)) { return value[l]; });
      if (i.imm >= 0) {
        uint32_t& p = w.mask({static_cast<uint32_t>(i.imm), Slot::registers});
        p = (p & ~lanes) | (inside & lanes);
      }
    }
  };
};

void decode_shfl(Decoding& d) {
  const auto mode = d.take_one_of({"up", "down", "bfly", "idx"});
  d.take_type();
  d.inst.imm = -1;
  if (const auto* both = d.operand(0).as<ptx::Pair>()) {
    d.inst.s[0] = d.destination(both->both[0], 4);
    if (!both->both[1].is<ptx::Sink>()) d.inst.imm = d.predicate_destination(both->both[1]).offset;
  } else {
    d.inst.s[0] = d.destination(0, 4);
  }
  for (size_t n = 1; n <= 3; ++n) d.inst.s[n] = d.source(n, 4);
  decode_members(d, d.operand(4));
  d.inst.run = mode == "up"     ? level_handler<ShuffleMode<Shuffle::up>::Kernel>()
               : mode == "down" ? level_handler<ShuffleMode<Shuffle::down>::Kernel>()
               : mode == "bfly" ? level_handler<ShuffleMode<Shuffle::bfly>::Kernel>()
                                : level_handler<ShuffleMode<Shuffle::idx>::Kernel>();
}

// ---- vote ----

enum class Vote : uint32_t { all, any, uni, ballot };

Flow run_vote(Warp& w, const Inst& i, uint32_t lanes) {
  const uint32_t truth = (w.mask(i.s[1]) ^ static_cast<uint32_t>(i.imm)) & lanes;
  const auto mode = static_cast<Vote>(i.aux);
  if (mode == Vote::ballot) {
    each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return truth; });
    return Flow::next;
  }
  const bool result = mode == Vote::all   ? truth == lanes
                      : mode == Vote::any ? truth != 0
                                          : truth == lanes || truth == 0;
  uint32_t& p = w.mask(i.s[0]);
  p = (p & ~lanes) | (result ? lanes : 0);
  return Flow::next;
}

void decode_vote(Decoding& d) {
  const auto mode = d.take_one_of({"all", "any", "uni", "ballot"});
  d.inst.aux = static_cast<uint32_t>(mode == "all"   ? Vote::all
                                     : mode == "any" ? Vote::any
                                     : mode == "uni" ? Vote::uni
                                                     : Vote::ballot);
  d.take_type();
  d.inst.s[0] = mode == "ballot" ? d.destination(0, 4) : d.predicate_destination(d.operand(0));
  d.inst.s[1] = d.predicate(d.operand(1));
  d.inst.imm = Decoding::negated(d.operand(1)) ? int64_t{kAllLanes} : 0;
  decode_members(d, d.operand(2));
  d.inst.run = &run_vote;
}

Flow run_activemask(Warp& w, const Inst& i, uint32_t lanes) {
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return lanes; });
  return Flow::next;
}

// ---- match: aux bit 0: all; imm: offset of the predicate, -1 for none ----

template <class T>
Flow run_match(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* a = w.row<T>(i.s[1]);
  uint32_t mask[32] = {};
  for (uint32_t l = 0; l < kLanes; ++l) {
    for (uint32_t other = 0; other < kLanes; ++other) {
      if ((lanes >> other & 1) && a[other] == a[l]) mask[l] |= 1u << other;
    }
  }
  const bool all = mask[std::countr_zero(lanes)] == lanes;
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int l) { return (i.aux & 1) ? (all ? lanes : 0) : mask[l]; });
  if (i.imm >= 0) {
    uint32_t& p = w.mask({static_cast<uint32_t>(i.imm), Slot::registers});
    p = (p & ~lanes) | (all ? lanes : 0);
  }
  return Flow::next;
}

void decode_match(Decoding& d) {
  d.inst.aux = d.take_one_of({"any", "all"}) == "all";
  const int bytes = ptx::bytes(d.take_type());
  d.inst.imm = -1;
  if (const auto* both = d.operand(0).as<ptx::Pair>()) {
    d.inst.s[0] = d.destination(both->both[0], 4);
    if (!both->both[1].is<ptx::Sink>()) d.inst.imm = d.predicate_destination(both->both[1]).offset;
  } else {
    d.inst.s[0] = d.destination(0, 4);
  }
  d.inst.s[1] = d.source(1, bytes);
  decode_members(d, d.operand(2));
  d.inst.run = bytes == 8 ? &run_match<uint64_t> : &run_match<uint32_t>;
}

// ---- redux ----

// F combines two values; lanes that take no part count as `identity`.
template <class F>
struct ReduxInteger {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<uint32_t>(i.s[1]);
    uint32_t value[32];
    for (int l = 0; l < 32; ++l) value[l] = (lanes >> l & 1) ? a[l] : F::identity;
    for (int distance = 16; distance > 0; distance /= 2)
      for (int l = 0; l < distance; ++l) value[l] = F::apply(value[l], value[l + distance]);
    const uint32_t r = value[0];
    each_lane(
        lanes, w.row<uint32_t>(i.s[0]), [&](int) __attribute__((always_inline)) { return r; });
  }
};
struct ReduxAdd {
  static constexpr uint32_t identity = 0;
  static uint32_t apply(uint32_t a, uint32_t b) { return a + b; }
};
struct ReduxAnd {
  static constexpr uint32_t identity = kAllLanes;
  static uint32_t apply(uint32_t a, uint32_t b) { return a & b; }
};
struct ReduxOr {
  static constexpr uint32_t identity = 0;
  static uint32_t apply(uint32_t a, uint32_t b) { return a | b; }
};
struct ReduxXor {
  static constexpr uint32_t identity = 0;
  static uint32_t apply(uint32_t a, uint32_t b) { return a ^ b; }
};
template <class T, bool is_max>
struct ReduxExtreme {
  static constexpr auto identity =
      static_cast<uint32_t>(is_max ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
  static uint32_t apply(uint32_t a, uint32_t b) {
    const auto x = static_cast<T>(a), y = static_cast<T>(b);
    return static_cast<uint32_t>((x < y) == is_max ? y : x);
  }
};

// f32 min and max; aux: bit 0 max, bit 1 of magnitudes, bit 2 a NaN wins (else it counts only when all are
// NaN).
Flow run_redux_float(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* a = w.row<uint32_t>(i.s[1]);
  const bool is_max = i.aux & 1, nan = i.aux & 4;
  const uint32_t keep = (i.aux & 2) ? 0x7FFFFFFF : kAllLanes;
  float r = 0;
  bool first = true, any_nan = false;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const auto f = std::bit_cast<float>(a[l] & keep);
    if (f != f) {
      any_nan = true;
      continue;
    }
    const bool less = f < r || (f == r && std::signbit(f));
    if (first || is_max != less) r = f;
    first = false;
  }
  const uint32_t bits = first || (nan && any_nan) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(r);
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return bits; });
  return Flow::next;
}

Handler redux_integer(std::string_view op, bool is_signed) {
  if (op == "add") return handler<ReduxInteger<ReduxAdd>>();
  if (op == "and") return handler<ReduxInteger<ReduxAnd>>();
  if (op == "or") return handler<ReduxInteger<ReduxOr>>();
  if (op == "xor") return handler<ReduxInteger<ReduxXor>>();
  if (op == "min")
    return is_signed ? handler<ReduxInteger<ReduxExtreme<int32_t, false>>>()
                     : handler<ReduxInteger<ReduxExtreme<uint32_t, false>>>();
  return is_signed ? handler<ReduxInteger<ReduxExtreme<int32_t, true>>>()
                   : handler<ReduxInteger<ReduxExtreme<uint32_t, true>>>();
}

void decode_redux(Decoding& d) {
  const auto op = d.take_one_of({"add", "min", "max", "and", "or", "xor"});
  const bool absolute = d.take("abs"), nan = d.take("NaN");
  const Type type = d.take_type();
  if (type == Type::f32) {
    d.inst.aux = (op == "max" ? 1u : 0u) | (absolute ? 2u : 0u) | (nan ? 4u : 0u);
    d.inst.run = &run_redux_float;
  } else {
    d.inst.run = redux_integer(op, type == Type::s32);
  }
  d.inst.s[0] = d.destination(0, 4);
  d.inst.s[1] = d.source(1, 4);
  decode_members(d, d.operand(2));
}

// ---- elect: the lowest lane of the mask leads. s[0] its index, s[1] the predicate ----

Flow run_elect(Warp& w, const Inst& i, uint32_t lanes) {
  const auto leader = static_cast<uint32_t>(std::countr_zero(lanes));
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return leader; });
  uint32_t& p = w.mask(i.s[1]);
  p = (p & ~lanes) | 1u << leader;
  return Flow::next;
}

void decode_elect(Decoding& d) {
  const auto* both = d.operand(0).as<ptx::Pair>();
  if (!both) d.unsupported("a destination of this form");
  d.inst.s[0] = d.destination(both->both[0], 4);
  d.inst.s[1] = d.predicate_destination(both->both[1]);
  decode_members(d, d.operand(1));
  d.inst.run = &run_elect;
}

}  // namespace

void register_warp(Registry& r) {
  r.add("shfl", &decode_shfl);
  r.add("vote", &decode_vote);
  r.add("match", &decode_match);
  r.add("redux", &decode_redux);
  r.add("elect", &decode_elect);
  r.add("activemask", [](Decoding& d) {
    d.take_type();
    d.inst.s[0] = d.destination(0, 4);
    d.inst.run = &run_activemask;
  });
}

}  // namespace tw::sim
