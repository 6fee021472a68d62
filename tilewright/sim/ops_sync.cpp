#include <algorithm>
#include <bit>

#include "tilewright/base/math.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/member_mask.h"

// PTX ISA, "bar, barrier", "bar.warp.sync", "barrier.cluster", "membar, fence".
namespace tw::sim {

namespace {

// ---- named barriers ----

enum class BarKind : uint8_t { sync, arrive, reduce_popc, reduce_and, reduce_or };

void write_reduction(Warp& w, const Inst& i, uint32_t lanes, BarKind kind, const NamedBarrier& b) {
  if (kind == BarKind::reduce_popc) {
    const uint32_t n = b.last_reduction;
    each_lane(lanes, w.row<uint32_t>(i.s[0]), [&](int) { return n; });
  } else if (kind != BarKind::sync) {
    uint32_t& d = w.mask(i.s[0]);
    d = (d & ~lanes) | (b.last_reduction ? lanes : 0);
  }
}

BarKind kind_of(const Inst& i) { return static_cast<BarKind>(i.aux & 0xFF); }

// Wait::a: barrier, Wait::b: the use (generation) that must complete. The result of a reduction is written
// then: the barrier may have completed its next use before this warp runs.
bool bar_ready(Warp& w, const Wait& wait) {
  const NamedBarrier& b = w.cta().barriers[wait.a];
  if (b.generation <= wait.b) return false;
  write_reduction(w, *wait.inst, wait.lanes, kind_of(*wait.inst), b);
  return true;
}
std::string describe_bar(const Warp& w, const Wait& wait) {
  const NamedBarrier& b = w.cta().barriers[wait.a];
  return tw::format("barrier {}: {} of {} threads have arrived", wait.a, b.arrived, b.expected);
}
Awaited bar_awaited(const Warp& w, const Wait& wait) {
  return {Awaited::Object::named, &w.cta(), static_cast<uint32_t>(wait.a), 0};
}
constexpr WaitKind kBarWait{"barrier", &bar_ready, &describe_bar, false, &bar_awaited};

void notify(Warp& w, BarrierEvent::Kind kind, uint32_t id, uint64_t phase, int64_t amount, uint32_t lanes) {
  if (Observer* o = w.cluster().observer())
    o->barrier({BarrierEvent::Object::named, kind, &w.cta(), id, phase, amount, lanes, &w, nullptr});
}

// s[1] barrier, s[2] threads (aux bit 8: given), s[3] predicate (aux bit 9: negated); aux low bits: BarKind.
Flow run_bar(Warp& w, const Inst& i, uint32_t lanes) {
  const BarKind kind = kind_of(i);
  Cta& cta = w.cta();
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(lanes));
  const uint32_t id = w.row<uint32_t>(i.s[1])[first];
  if (id > 15) w.fault(lanes, "barrier {} does not exist; a CTA has barriers 0 to 15", id);
  NamedBarrier& b = cta.barriers[id];
  if (w.wake() == Wake::ready) {
    notify(w, BarrierEvent::Kind::passed, id, w.wait().b, 0, lanes);
    return Flow::next;
  }
  const bool counted = i.aux & 0x100;
  uint32_t threads = counted ? w.row<uint32_t>(i.s[2])[first] : cta.live_threads_by_warp();
  // More than the CTA has may be meant: a warp that arrives twice counts twice (conformance, named_twice).
  if (counted && (threads == 0 || threads % kLanes != 0))
    w.fault(lanes, "barrier {} with {} threads; the count must be a positive multiple of 32", id, threads);
  if (b.expected != 0 && (b.everyone ? counted && threads != b.expected : threads != b.expected))
    w.fault(lanes, "barrier {} is in use with {} threads, this warp names {}", id, b.expected, threads);
  if (b.expected == 0) {
    b.expected = threads;
    b.everyone = !counted;
    b.reduction = kind == BarKind::reduce_and;
    b.reduction_kind = static_cast<int>(kind);
  }
  const int reduction = static_cast<int>(BarKind::reduce_popc), named = static_cast<int>(kind);
  if (b.reduction_kind != named && std::max(b.reduction_kind, named) >= reduction)
    w.fault(lanes, "barrier {} mixes .red with other operations", id);
  if (kind >= BarKind::reduce_popc) {
    const uint32_t truth = (w.mask(i.s[3]) ^ ((i.aux & 0x200) ? kAllLanes : 0)) & lanes;
    if (kind == BarKind::reduce_popc) b.reduction += static_cast<uint32_t>(std::popcount(truth));
    else if (kind == BarKind::reduce_and) b.reduction &= truth == lanes;
    else b.reduction |= truth != 0;
  }
  const uint64_t generation = b.generation;
  b.arrived += kLanes;
  b.warps |= 1u << w.index();
  notify(w, BarrierEvent::Kind::arrive, id, generation, kLanes, lanes);
  if (b.arrived > b.expected)
    w.fault(lanes, "barrier {}: {} threads have arrived, it expects {}", id, b.arrived, b.expected);
  cta.cluster.changed();
  cta.complete_if_all_arrived(b);
  if (kind == BarKind::arrive) return Flow::next;
  if (b.generation > generation) {
    write_reduction(w, i, lanes, kind, b);
    if (kind != BarKind::sync) w.end_slice();  // the others take their results before its next use
    notify(w, BarrierEvent::Kind::passed, id, generation, 0, lanes);
    return Flow::next;
  }
  notify(w, BarrierEvent::Kind::wait, id, generation, 0, lanes);
  return w.suspend(kBarWait, i, lanes, id, generation);
}

void decode_warp_sync(Decoding& d);
void decode_cluster_barrier(Decoding& d);

void decode_bar(Decoding& d) {
  if (d.take("warp")) return decode_warp_sync(d);
  if (d.take("cluster")) return decode_cluster_barrier(d);
  const bool bar = d.ptx.opcode() == "bar";
  d.take("cta");
  const auto what = d.take_one_of({"sync", "arrive", "red"});
  const auto op = d.take_one_of({"popc", "and", "or"});
  d.take_type();
  d.inst.gather = d.take("aligned") || bar ? Gather::aligned : Gather::warp;
  size_t next = 0;
  BarKind kind = what == "arrive" ? BarKind::arrive : BarKind::sync;
  if (what == "red") {
    kind = op == "popc" ? BarKind::reduce_popc : op == "and" ? BarKind::reduce_and : BarKind::reduce_or;
    d.inst.s[0] = kind == BarKind::reduce_popc ? d.destination(0, 4) : d.predicate_destination(d.operand(0));
    next = 1;
  }
  d.inst.aux = static_cast<uint32_t>(kind);
  d.inst.s[1] = d.source(next++, 4);
  const size_t left = d.operand_count() - next - (what == "red" ? 1 : 0);
  if (left == 1) {
    d.inst.s[2] = d.source(next++, 4);
    d.inst.aux |= 0x100;
  } else if (kind == BarKind::arrive) {
    throw Error(ErrorKind::user, d.ptx.loc, tw::format("{} needs a thread count", d.ptx.text()));
  }
  if (what == "red") {
    d.inst.s[3] = d.predicate(d.operand(next));
    if (Decoding::negated(d.operand(next))) d.inst.aux |= 0x200;
  }
  d.inst.run = &run_bar;
}

// ---- bar.warp.sync ----

// The lanes of the mask may meet at different instructions. Wait::a: the mask.
bool warp_sync_ready(Warp& w, const Wait& wait);
std::string describe_warp_sync(const Warp& w, const Wait& wait) {
  return tw::format("lanes {:#010x} of its warp at bar.warp.sync", wait.a & w.live() & ~wait.lanes);
}
constexpr WaitKind kWarpSync{"bar.warp.sync", &warp_sync_ready, &describe_warp_sync, false};

bool warp_sync_ready(Warp& w, const Wait& wait) {
  uint32_t here = 0;
  for (const Fragment& f : w.fragments()) {
    const bool waits = f.state == Fragment::State::waiting || f.wake == Wake::ready;
    if (waits && f.wait.kind == &kWarpSync && f.wait.a == wait.a) here |= f.wait.lanes;
  }
  return (wait.a & w.live() & ~here) == 0;
}

Flow run_warp_sync(Warp& w, const Inst& i, uint32_t lanes) {
  if (w.wake() == Wake::ready) return passed(w, lanes);
  uint32_t complete = 0, members = 0, waiting = 0;
  each_group(w.row<uint32_t>(i.s[1]), lanes, [&](uint32_t mask, uint32_t group) {
    if (group & ~mask)
      w.fault(group & ~mask, "bar.warp.sync by a lane that its mask {:#010x} leaves out", mask);
    if ((mask & w.live() & ~group) == 0) complete |= group;
    else members = mask, waiting = group;
  });
  if (complete == lanes) return passed(w, lanes);
  if (complete != 0) {  // the others come again
    passed(w, complete);
    w.branch_from(w.pc() + 1, complete, lanes);
    return Flow::jump;
  }
  if (waiting != lanes) w.branch_from(w.pc(), waiting, lanes);
  w.cluster().changed();
  return w.suspend(kWarpSync, i, waiting, members);
}

void decode_warp_sync(Decoding& d) {
  d.take("sync");
  d.inst.s[1] = d.source(0, 4);
  d.inst.run = &run_warp_sync;
}

// ---- barrier.cluster ----

// A thread's arrive must precede its wait. Wait::a: the generation that must complete.
bool cluster_ready(Warp& w, const Wait& wait) { return w.cluster().barrier.generation > wait.a; }
std::string describe_cluster(const Warp& w, const Wait&) {
  const auto& b = w.cluster().barrier;
  return tw::format("barrier.cluster: {} of {} threads have arrived", b.arrived, w.cluster().live_threads());
}
Awaited cluster_awaited(const Warp&, const Wait&) { return {Awaited::Object::cluster, nullptr, 0, 0}; }
constexpr WaitKind kClusterWait{"barrier.cluster", &cluster_ready, &describe_cluster, false,
                                &cluster_awaited};

// Per warp: the generation each lane arrived in, plus one; 0: it has not arrived.
struct ClusterArrivals {
  uint64_t generation[32] = {};
};

struct CtaArrivals {
  std::vector<ClusterArrivals> warps;
};

ClusterArrivals& arrivals_of(Warp& w) {
  auto& all = w.cta().extensions.get<CtaArrivals>([&] {
    auto p = std::make_unique<CtaArrivals>();
    p->warps.resize(w.cta().warps.size());
    return p;
  });
  return all.warps[w.index()];
}

void notify_cluster(Warp& w, BarrierEvent::Kind kind, uint64_t phase, int64_t amount, uint32_t lanes) {
  if (Observer* o = w.cluster().observer())
    o->barrier({BarrierEvent::Object::cluster, kind, &w.cta(), 0, phase, amount, lanes, &w, nullptr});
}

Flow run_cluster_arrive(Warp& w, const Inst&, uint32_t lanes) {
  auto& b = w.cluster().barrier;
  ClusterArrivals& mine = arrivals_of(w);
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    if (mine.generation[l] == b.generation + 1)
      w.fault(1u << l, "barrier.cluster.arrive twice without a wait between them");
    mine.generation[l] = b.generation + 1;
  }
  b.arrived += static_cast<uint32_t>(std::popcount(lanes));
  notify_cluster(w, BarrierEvent::Kind::arrive, b.generation, std::popcount(lanes), lanes);
  w.cluster().changed();
  w.cluster().complete_cluster_barrier();
  return Flow::next;
}

Flow run_cluster_wait(Warp& w, const Inst& i, uint32_t lanes) {
  ClusterArrivals& mine = arrivals_of(w);
  uint64_t needed = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    if (mine.generation[l] == 0) w.fault(1u << l, "barrier.cluster.wait without an arrive before it");
    needed = std::max(needed, mine.generation[l]);
  }
  if (w.cluster().barrier.generation < needed) {
    notify_cluster(w, BarrierEvent::Kind::wait, needed - 1, 0, lanes);
    return w.suspend(kClusterWait, i, lanes, needed - 1);
  }
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (lanes >> l & 1) mine.generation[l] = 0;
  }
  notify_cluster(w, BarrierEvent::Kind::passed, needed - 1, 0, lanes);
  return Flow::next;
}

void decode_cluster_barrier(Decoding& d) {
  const bool arrive = d.take_one_of({"arrive", "wait"}) == "arrive";
  d.take_one_of({"release", "relaxed", "acquire"});
  d.inst.gather = d.take("aligned") ? Gather::aligned : Gather::none;
  d.inst.run = arrive ? &run_cluster_arrive : &run_cluster_wait;
}

// ---- fences: the simulator's memory is coherent at once; observers see them ----

Flow run_fence(Warp& w, const Inst&, uint32_t lanes) {
  if (Observer* o = w.cluster().observer()) o->fence(w, w.instruction(), lanes);
  return Flow::next;
}

void decode_fence(Decoding& d) {
  while (!d.take_next().empty()) {
  }
  d.inst.run = &run_fence;
}

}  // namespace

uint32_t Cluster::at_cluster_barrier(const Warp& w) const {
  const auto* all = w.cta().extensions.find<CtaArrivals>();
  uint32_t lanes = 0;
  for (uint32_t l = 0; all && l < kLanes; ++l)
    lanes |= all->warps[w.index()].generation[l] == barrier.generation + 1 ? 1u << l : 0;
  return lanes;
}

void register_sync(Registry& r) {
  r.add("bar", &decode_bar);
  r.add("barrier", &decode_bar);
  r.add("membar", &decode_fence);
  r.add("fence", &decode_fence);
}

}  // namespace tw::sim
