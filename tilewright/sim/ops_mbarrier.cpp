#include <bit>
#include <cstring>
#include <optional>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"

// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
namespace tw::sim {

namespace {

using ptx::Type;
using BarrierOp = Cluster::BarrierOp;

template <class F>
void for_lanes(uint32_t lanes, F f) {
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) f(static_cast<uint32_t>(std::countr_zero(rest)));
}

// The 32-bit shared address that each lane names. imm: offset; aux bit 0: 64-bit base, bit 1: generic.
struct BarrierAddresses {
  uint32_t lane[32] = {};
};
BarrierAddresses barrier_addresses(const Warp& w, const Inst& i, uint32_t lanes) {
  const Addresses a = lane_addresses(w, i.s[1], i.aux & 1, i.imm);
  BarrierAddresses result;
  for_lanes(lanes, [&](uint32_t l) {
    uint64_t address = a.lane[l];
    if (i.aux & 2) {
      if (address < kSharedWindow || address - kSharedWindow >= kWindowSize)
        w.fault(1u << l, "mbarrier address {:#x} is not in shared memory", address);
      address -= kSharedWindow;
    }
    if (address >> 32) w.fault(1u << l, "mbarrier address {:#x} is not in shared memory", address);
    result.lane[l] = static_cast<uint32_t>(address);
  });
  return result;
}

void decode_address(Decoding& d, size_t operand) {
  const bool shared = !d.take_one_of({"shared", "shared::cta", "shared::cluster"}).empty();
  const auto a = d.address(operand);
  d.inst.s[1] = a.base;
  d.inst.imm = a.offset;
  d.inst.aux = (a.wide ? 1u : 0u) | (shared || a.variable == ptx::Space::shared ? 0u : 2u);
}

void require_local(Warp& w, uint32_t lane, uint32_t address, const char* what) {
  if (address >> 24 != w.cta().rank)
    w.fault(1u << lane,
            "{} on the mbarrier of CTA rank {}; only arrive, arrive_drop, expect_tx and complete_tx may be "
            "remote",
            what, address >> 24);
}

void notify(Warp& w, BarrierEvent::Kind kind, const Cluster::Location& at, uint64_t phase, int64_t amount,
            uint32_t lanes) {
  if (Observer* o = w.cluster().observer())
    o->barrier({BarrierEvent::Object::mbarrier, kind, at.cta, at.offset, phase, amount, lanes, &w, nullptr});
}

// ---- init, inval ----

Flow run_init(Warp& w, const Inst& i, uint32_t lanes) {
  const auto a = barrier_addresses(w, i, lanes);
  const auto* count = w.row<uint32_t>(i.s[2]);
  for_lanes(lanes, [&](uint32_t l) {
    const auto at = w.cluster().locate(w, 1u << l, a.lane[l], 8);
    require_local(w, l, a.lane[l], "init");
    if (at.offset % 8) w.fault(1u << l, "mbarrier address {:#x} is not 8-byte aligned", a.lane[l]);
    if (count[l] == 0 || count[l] > MBarrier::kMaxCount)
      w.fault(1u << l, "mbarrier.init with count {}; it must be 1 to 2^20-1", count[l]);
    if (at.cta->find_mbarrier(at.offset))
      w.fault(1u << l, "mbarrier.init on {}, which holds an mbarrier already; inval must come first",
              at.cta->name_of_shared(at.offset));
    at.cta->init_mbarrier(at.offset, count[l]);
    const uint64_t opaque = at.cta->find_mbarrier(at.offset)->state();
    std::memcpy(at.cta->shared.data() + at.offset, &opaque, 8);
    at.cta->shared.written().mark(at.offset, 8);
    notify(w, BarrierEvent::Kind::init, at, 0, count[l], 1u << l);
  });
  return Flow::next;
}

Flow run_inval(Warp& w, const Inst& i, uint32_t lanes) {
  const auto a = barrier_addresses(w, i, lanes);
  for_lanes(lanes, [&](uint32_t l) {
    require_local(w, l, a.lane[l], "inval");
    w.cluster().mbarrier(w, 1u << l, a.lane[l]);
    const auto at = w.cluster().locate(w, 1u << l, a.lane[l], 8);
    at.cta->invalidate_mbarrier(at.offset);
    at.cta->shared.written().unmark(at.offset, 8);  // its content may be used again only after a write
    notify(w, BarrierEvent::Kind::invalidate, at, 0, 0, 1u << l);
  });
  return Flow::next;
}

// ---- arrive ----

struct ArriveSpec {
  bool drop = false, no_complete = false, expect = false, has_state = false;
  bool has_count = false;
};

// s[0] state (64 bits), s[2] count or bytes.
Flow run_arrive(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& spec = *static_cast<const ArriveSpec*>(i.extra);
  const auto a = barrier_addresses(w, i, lanes);
  const auto* amount = w.row<uint32_t>(i.s[2]);
  for_lanes(lanes, [&](uint32_t l) {
    const uint32_t lane = 1u << l;
    MBarrier& b = w.cluster().mbarrier(w, lane, a.lane[l]);
    if (spec.has_state) require_local(w, l, a.lane[l], "an arrive that returns the state");
    if (spec.expect) w.cluster().mbarrier_op(w, lane, BarrierOp::expect_tx, a.lane[l], amount[l]);
    if (spec.has_state) w.row<uint64_t>(i.s[0])[l] = b.state();  // "prior to the arrive-on operation"
    const uint32_t count = spec.has_count ? amount[l] : 1;
    if (spec.drop && spec.no_complete && count == b.pending() && b.tx() == 0)
      w.fault(lane, "mbarrier.arrive_drop.noComplete completes the phase");
    const BarrierOp op = spec.drop          ? BarrierOp::arrive_drop
                         : spec.no_complete ? BarrierOp::arrive_no_complete
                                            : BarrierOp::arrive;
    w.cluster().mbarrier_op(w, lane, op, a.lane[l], count);
  });
  return Flow::next;
}

void take_semantics(Decoding& d) {
  d.take_one_of({"release", "acquire", "relaxed"});
  d.take_one_of({"cta", "cluster"});
}

void decode_arrive(Decoding& d, bool drop) {
  ArriveSpec spec;
  spec.drop = drop;
  spec.expect = d.take("expect_tx");
  spec.no_complete = d.take("noComplete");
  take_semantics(d);
  d.take_type();
  const bool has_destination = !d.operand(0).is<ptx::Address>();
  const size_t address = has_destination ? 1 : 0;
  spec.has_state = has_destination && !d.operand(0).is<ptx::Sink>();
  if (spec.has_state) d.inst.s[0] = d.destination(0, 8);
  decode_address(d, address);
  spec.has_count = !spec.expect && d.operand_count() > address + 1;
  d.inst.s[2] = spec.expect || spec.has_count ? d.source(address + 1, 4) : d.constant(1);
  d.inst.extra = d.keep(spec);
  d.inst.run = &run_arrive;
}

// ---- expect_tx, complete_tx ----

template <bool expect>
Flow run_tx(Warp& w, const Inst& i, uint32_t lanes) {
  const auto a = barrier_addresses(w, i, lanes);
  const auto* bytes = w.row<uint32_t>(i.s[2]);
  for_lanes(lanes, [&](uint32_t l) {
    w.cluster().mbarrier_op(w, 1u << l, expect ? BarrierOp::expect_tx : BarrierOp::complete_tx, a.lane[l],
                            bytes[l]);
  });
  return Flow::next;
}

template <bool expect>
void decode_tx(Decoding& d) {
  take_semantics(d);
  d.take_type();
  decode_address(d, 0);
  d.inst.s[2] = d.source(1, 4);
  d.inst.run = &run_tx<expect>;
}

// ---- test_wait, try_wait ----

// aux bits 0-1 as for addresses, bit 2: parity form, bit 3: try_wait. s[0] the predicate, s[2] state or
// parity.
uint32_t passed_lanes(Warp& w, const Inst& i, uint32_t lanes, const BarrierAddresses& a) {
  uint32_t passed = 0, at = 0;
  MBarrier* found = nullptr;  // lanes mostly wait on the same barrier
  for_lanes(lanes, [&](uint32_t l) {
    if (!found || a.lane[l] != at) {
      at = a.lane[l];
      found = &w.cluster().mbarrier(w, 1u << l, at);
    }
    MBarrier& b = *found;
    if (i.aux & 4) {
      passed |= b.passes_parity(w.row<uint32_t>(i.s[2])[l]) ? 1u << l : 0;
      return;
    }
    const uint64_t wanted = MBarrier::phase_of(w.row<uint64_t>(i.s[2])[l]);
    if (wanted > b.phase() || wanted + 1 < b.phase())
      w.fault(1u << l,
              "wait on phase {} of an mbarrier in phase {}: only the current and the preceding phase may be "
              "waited for",
              wanted, b.phase());
    passed |= wanted < b.phase() ? 1u << l : 0;
  });
  return passed;
}

// Mostly a warp waits as one: all of its lanes name the same barrier and parity.
struct CommonWait {
  LoggedMBarrier* barrier;
  uint32_t parity;
};
std::optional<CommonWait> common_wait(Warp& w, const Inst& i, uint32_t lanes) {
  if (!(i.aux & 4)) return std::nullopt;
  const Addresses a = lane_addresses(w, i.s[1], i.aux & 1, i.imm);
  const auto* parity = w.row<uint32_t>(i.s[2]);
  const auto first = static_cast<uint32_t>(std::countr_zero(lanes));
  uint64_t other = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    const uint64_t differs = (a.lane[l] ^ a.lane[first]) | ((parity[l] ^ parity[first]) & 1);
    other |= lanes >> l & 1 ? differs : 0;
  }
  if (other != 0) return std::nullopt;
  const uint32_t address = barrier_addresses(w, i, 1u << first).lane[first];
  require_local(w, first, address, "a wait");
  return CommonWait{&w.cluster().mbarrier(w, 1u << first, address), parity[first] & 1};
}

// wait.a: the barrier of a common wait; wait.b: its parity, and above it the generation of the barrier's
// place.
bool mbarrier_ready(Warp& w, const Wait& wait) {
  if (wait.a != 0 && wait.b >> 1 == w.cta().mbarrier_generation())
    return reinterpret_cast<const MBarrier*>(wait.a)->passes_parity(wait.b & 1);
  const auto a = barrier_addresses(w, *wait.inst, wait.lanes);
  return passed_lanes(w, *wait.inst, wait.lanes, a) == wait.lanes;
}

std::string describe_mbarrier(const Warp& w, const Wait& wait) {
  const auto first = static_cast<uint32_t>(std::countr_zero(wait.lanes));
  const uint32_t address = barrier_addresses(w, *wait.inst, wait.lanes).lane[first];
  const auto at = w.cluster().locate(w, 1u << first, address, 8);
  const MBarrier* b = at.cta->find_mbarrier(at.offset);
  if (!b) return "an mbarrier that was invalidated";
  std::string text = tw::format("mbarrier {}", at.cta->name_of_shared(at.offset));
  if (wait.inst->aux & 4) text += tw::format(", parity {}", w.row<uint32_t>(wait.inst->s[2])[first] & 1);
  else text += tw::format(", phase {}", MBarrier::phase_of(w.row<uint64_t>(wait.inst->s[2])[first]));
  return text + tw::format(": it is in phase {} with {} of {} arrivals pending and {} bytes outstanding",
                           b->phase(), b->pending(), b->expected(), b->tx());
}

Awaited mbarrier_awaited(const Warp& w, const Wait& wait) {
  const auto first = static_cast<uint32_t>(std::countr_zero(wait.lanes));
  const auto at = w.cluster().locate_or_null(barrier_addresses(w, *wait.inst, wait.lanes).lane[first], 8);
  const uint32_t parity =
      wait.inst->aux & 4
          ? w.row<uint32_t>(wait.inst->s[2])[first] & 1
          : static_cast<uint32_t>(MBarrier::phase_of(w.row<uint64_t>(wait.inst->s[2])[first]) & 1);
  return {Awaited::Object::mbarrier, at.cta, at.offset, parity};
}

constexpr WaitKind kMbarrierWait{"mbarrier", &mbarrier_ready, &describe_mbarrier, true, &mbarrier_awaited};

Flow run_wait(Warp& w, const Inst& i, uint32_t lanes) {
  const auto common = common_wait(w, i, lanes);
  uint32_t passed = 0;
  if (common) {
    passed = common->barrier->passes_parity(common->parity) ? lanes : 0;
  } else {
    const auto a = barrier_addresses(w, i, lanes);
    for_lanes(lanes, [&](uint32_t l) { require_local(w, l, a.lane[l], "a wait"); });
    passed = passed_lanes(w, i, lanes, a);
  }
  const bool may_suspend = (i.aux & 8) && w.wake() != Wake::timeout;
  if (passed != lanes && may_suspend) {
    if (w.wake() == Wake::none && w.cluster().observer()) {
      const auto a = barrier_addresses(w, i, lanes);
      for_lanes(lanes, [&](uint32_t l) {
        const auto at = w.cluster().locate(w, 1u << l, a.lane[l], 8);
        notify(w, BarrierEvent::Kind::wait, at, at.cta->find_mbarrier(at.offset)->phase(), 0, 1u << l);
      });
    }
    if (!common) return w.suspend(kMbarrierWait, i, lanes);
    return w.suspend(kMbarrierWait, i, lanes, reinterpret_cast<uint64_t>(common->barrier),
                     w.cta().mbarrier_generation() << 1 | common->parity);
  }
  uint32_t& p = w.mask(i.s[0]);
  p = (p & ~lanes) | passed;
  if (common && passed)
    common->barrier->log.add(w, w.pc(), BarrierLog::Part::waits, common->barrier->phase(), 0);
  if (w.cluster().observer()) {
    const auto a = barrier_addresses(w, i, lanes);
    for (uint32_t rest = lanes; rest != 0;) {  // lanes of one barrier together
      const auto first = static_cast<uint32_t>(std::countr_zero(rest));
      uint32_t same = 0;
      for_lanes(rest, [&](uint32_t l) {
        if (a.lane[l] == a.lane[first] && (passed >> l & 1) == (passed >> first & 1)) same |= 1u << l;
      });
      const auto at = w.cluster().locate(w, same, a.lane[first], 8);
      const uint64_t phase = at.cta->find_mbarrier(at.offset)->phase();
      if (passed >> first & 1) notify(w, BarrierEvent::Kind::passed, at, phase - 1, 0, same);
      else notify(w, BarrierEvent::Kind::timed_out, at, phase, 0, same);
      rest &= ~same;
    }
  }
  w.polled = passed == lanes ? Wait{} : Wait{&kMbarrierWait, lanes, 0, 0, &i};
  return passed == lanes ? Flow::next : Flow::yield;
}

void decode_wait(Decoding& d, bool try_wait) {
  const bool parity = d.take("parity");
  take_semantics(d);
  d.take_type();
  d.inst.s[0] = d.predicate_destination(d.operand(0));
  decode_address(d, 1);
  d.inst.s[2] = d.source(2, parity ? 4 : 8);
  d.inst.aux |= (parity ? 4u : 0u) | (try_wait ? 8u : 0u);
  if (d.operand_count() > 3) d.source(3, 4);  // the time limit: a hint
  d.inst.run = &run_wait;
}

Flow run_pending_count(Warp& w, const Inst& i, uint32_t lanes) {
  const auto* state = w.row<uint64_t>(i.s[1]);
  each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int l) { return MBarrier::pending_of(state[l]); });
  return Flow::next;
}

void decode_mbarrier(Decoding& d) {
  const auto what = d.take_one_of({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx",
                                   "test_wait", "try_wait", "pending_count"});
  if (what == "arrive" || what == "arrive_drop") return decode_arrive(d, what == "arrive_drop");
  if (what == "expect_tx") return decode_tx<true>(d);
  if (what == "complete_tx") return decode_tx<false>(d);
  if (what == "test_wait" || what == "try_wait") return decode_wait(d, what == "try_wait");
  d.take_type();
  if (what == "pending_count") {
    d.inst.s[0] = d.destination(0, 4);
    d.inst.s[1] = d.source(1, 8);
    d.inst.run = &run_pending_count;
    return;
  }
  decode_address(d, 0);
  if (what == "init") {
    d.inst.s[2] = d.source(1, 4);
    d.inst.run = &run_init;
  } else if (what == "inval") {
    d.inst.run = &run_inval;
  } else {
    d.unsupported("this operation");
  }
}

}  // namespace

void register_mbarrier(Registry& r) { r.add("mbarrier", &decode_mbarrier); }

}  // namespace tw::sim
