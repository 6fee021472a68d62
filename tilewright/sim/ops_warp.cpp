#include <algorithm>
#include <bit>
#include <cmath>

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

enum class Redux : uint32_t { add, min, max, umin, umax, and_, or_, xor_, fmin, fmax };

Flow run_redux(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* a = w.row<uint32_t>(i.s[1]);
  const auto op = static_cast<Redux>(i.aux & 0xFF);
  const bool absolute = i.aux & 0x100, nan = i.aux & 0x200;
  auto as_float = [&](uint32_t bits) { return std::bit_cast<float>(absolute ? bits & 0x7FFFFFFF : bits); };
  uint32_t r = 0;
  bool first = true, any_nan = false;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    const uint32_t v = a[l];
    if (op >= Redux::fmin) {
      const float f = as_float(v);
      if (f != f) {
        any_nan = true;
        continue;
      }
      const float old = std::bit_cast<float>(r);
      const bool less = f < old || (f == old && std::signbit(f));
      if (first || (op == Redux::fmin) == less) r = std::bit_cast<uint32_t>(f);
      first = false;
      continue;
    }
    if (first) {
      r = v;
      first = false;
      continue;
    }
    switch (op) {
      case Redux::add: r += v; break;
      case Redux::min:
        r = static_cast<uint32_t>(std::min(static_cast<int32_t>(r), static_cast<int32_t>(v)));
        break;
      case Redux::max:
        r = static_cast<uint32_t>(std::max(static_cast<int32_t>(r), static_cast<int32_t>(v)));
        break;
      case Redux::umin: r = std::min(r, v); break;
      case Redux::umax: r = std::max(r, v); break;
      case Redux::and_: r &= v; break;
      case Redux::or_: r |= v; break;
      default: r ^= v;
    }
  }
  if (op >= Redux::fmin && (first || (nan && any_nan))) r = 0x7FFFFFFF;
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return r; });
  return Flow::next;
}

void decode_redux(Decoding& d) {
  const auto op = d.take_one_of({"add", "min", "max", "and", "or", "xor"});
  const bool absolute = d.take("abs"), nan = d.take("NaN");
  const Type type = d.take_type();
  const bool is_unsigned = type == Type::u32, is_float = type == Type::f32;
  Redux r = Redux::add;
  if (op == "min") r = is_float ? Redux::fmin : is_unsigned ? Redux::umin : Redux::min;
  if (op == "max") r = is_float ? Redux::fmax : is_unsigned ? Redux::umax : Redux::max;
  if (op == "and") r = Redux::and_;
  if (op == "or") r = Redux::or_;
  if (op == "xor") r = Redux::xor_;
  d.inst.aux = static_cast<uint32_t>(r) | (absolute ? 0x100u : 0u) | (nan ? 0x200u : 0u);
  d.inst.s[0] = d.destination(0, 4);
  d.inst.s[1] = d.source(1, 4);
  decode_members(d, d.operand(2));
  d.inst.run = &run_redux;
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
