// tcgen05.alloc, tcgen05.dealloc and tcgen05.relinquish_alloc_permit.
//
// With .cta_group::2 a warp of each CTA of a pair performs the operation, and "the first warp to perform the
// operation could block until the second warp in the Peer CTA also performs the operation" (Table 46). Here
// it always does, so that a kernel which hangs only at times (Table 48) is found to.
#include <bit>
#include <cstring>

#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/ops_tcgen05.h"

namespace tw::sim {
namespace {

enum class What : uint8_t { alloc, dealloc, relinquish };
constexpr const char* kNames[] = {"tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit"};

std::string allocated(const TensorAllocator& allocator) {
  std::string text;
  for (const auto& r : allocator.live()) text += tw::format(" [{}, {})", r.column, r.column + r.columns);
  return text;
}

// allocate() checks the rules; a copy answers whether it would succeed now.
bool has_room(const Tcgen05& t, int columns) {
  TensorAllocator trial = t.memory.allocator;
  return trial.allocate(columns).has_value();
}

bool columns_free(Warp& w, const Wait& wait) {
  return has_room(Tcgen05::of(w.cta()), static_cast<int>(wait.a));
}
std::string describe_alloc(const Warp& w, const Wait& wait) {
  return tw::format("{} free columns of tensor memory; allocated are{}", wait.a,
                    allocated(Tcgen05::of(w.cta()).memory.allocator));
}
constexpr WaitKind kAllocWait{"tcgen05.alloc", &columns_free, &describe_alloc, false};

// --- pairs ---

struct Request {
  int column = 0, columns = 0;
};

// One of the three operations on one pair: what each CTA's warps have asked for, in order. The n-th request
// of the even CTA meets the n-th of the odd.
struct Meeting {
  std::array<std::vector<Request>, 2> asked;
  std::vector<int> granted;  // the column, for alloc
};
struct PairAllocation {
  Meeting meetings[3];
};

Meeting& meeting(const Warp& w, What what) {
  struct OfCluster {
    std::vector<PairAllocation> pairs;
  };
  Cluster& c = w.cluster();
  auto& all = c.extensions.get<OfCluster>([&] {
    auto p = std::make_unique<OfCluster>();
    p->pairs.resize((c.ctas.size() + 1) / 2);
    return p;
  });
  return all.pairs[w.cta().rank / 2].meetings[static_cast<size_t>(what)];
}

void perform(const Warp& w, uint32_t lanes, What what, const CtaGroup& group, Meeting& m) {
  const Request &a = m.asked[0][m.granted.size()], &b = m.asked[1][m.granted.size()];
  if (a.columns != b.columns || a.column != b.column) {
    w.fault(
        lanes,
        "{}.cta_group::2 of {} columns at {} by the even CTA of the pair, of {} at {} by the odd: both must "
        "name the same",
        kNames[static_cast<size_t>(what)], a.columns, a.column, b.columns, b.column);
  }
  int column = 0;
  for (Tcgen05* t : group.members) {
    if (what == What::alloc) column = t->memory.allocator.allocate(a.columns).value();
    else if (what == What::dealloc) t->memory.release(a.column, a.columns);
    else t->memory.allocator.relinquish();
  }
  m.granted.push_back(column);
  w.cluster().changed();
}

// Serves what can be: requests that have met, allocations when there is room.
void serve(const Warp& w, uint32_t lanes, What what, const CtaGroup& group) {
  Meeting& m = meeting(w, what);
  while (std::min(m.asked[0].size(), m.asked[1].size()) > m.granted.size()) {
    if (what == What::alloc && !has_room(group.home(), m.asked[0][m.granted.size()].columns)) return;
    perform(w, lanes, what, group, m);
  }
}

// Wait::a: What; Wait::b: the number of the request.
bool pair_ready(Warp& w, const Wait& wait) {
  return meeting(w, static_cast<What>(wait.a)).granted.size() > wait.b;
}
std::string describe_pair(const Warp& w, const Wait& wait) {
  const auto what = static_cast<What>(wait.a);
  Meeting& m = meeting(w, what);
  const uint32_t peer = w.cta().rank ^ 1;
  if (m.asked[peer & 1].size() > wait.b) {
    return tw::format("{} free columns of tensor memory in both CTAs of the pair; allocated are{}",
                      m.asked[0][wait.b].columns, allocated(Tcgen05::of(w.cta()).memory.allocator));
  }
  return tw::format("a warp of the peer CTA (rank {}{}) to perform {}.cta_group::2 as well", peer,
                    w.cluster().ctas[peer]->exited() ? ", which has exited" : "",
                    kNames[static_cast<size_t>(what)]);
}
constexpr WaitKind kPairWait{"CTA pair", &pair_ready, &describe_pair, false};

// The request's result, or nothing: the warp is suspended.
std::optional<int> meet(Warp& w, const Inst& i, uint32_t lanes, What what, Request request) {
  Meeting& m = meeting(w, what);
  if (w.wake() == Wake::ready) return m.granted[w.wait().b];
  const CtaGroup group = group_of(w, lanes, true);
  auto& mine = m.asked[w.cta().rank & 1];
  mine.push_back(request);
  const uint64_t number = mine.size() - 1;
  located(w, lanes, [&] {
    serve(w, lanes, what, group);
    if (what == What::dealloc) serve(w, lanes, What::alloc, group);
  });
  if (m.granted.size() > number) return m.granted[number];
  w.suspend(kPairWait, i, lanes, static_cast<uint64_t>(what), number);
  return std::nullopt;
}

void tell(const Warp& w, int column, int columns) {
  if (Observer* o = w.cluster().observer()) o->tensor_memory(w, column, columns);
}

// --- handlers; aux bit 0: a 64-bit address, bit 1: .shared::cta, bit 2: a pair ---

Flow run_alloc(Warp& w, const Inst& i, uint32_t lanes) {
  require_all_lanes(w, lanes);
  const auto columns = static_cast<int>(uniform(w, i.s[1], lanes, "nCols"));
  std::optional<int> column;
  if ((i.aux & 4) != 0) {
    column = meet(w, i, lanes, What::alloc, {0, columns});
    if (!column) return Flow::wait;
  } else {
    column = located(w, lanes, [&] { return Tcgen05::of(w.cta()).memory.allocator.allocate(columns); });
    if (!column) return w.suspend(kAllocWait, i, lanes, static_cast<uint64_t>(columns));
  }
  tell(w, *column, columns);
  // One store of the warp, by its first thread.
  const uint32_t writer = lanes & -lanes;
  Addresses at = lane_addresses(w, i.s[0], (i.aux & 1) != 0, i.imm);
  LanePointers to;
  resolve(w, writer, (i.aux & 2) != 0 ? AddressSpace::shared : AddressSpace::generic, at, 4, 4,
          AccessKind::write, to);
  const uint32_t address = TensorAddress{0, *column}.encode();
  std::memcpy(to.lane[std::countr_zero(writer)], &address, 4);
  w.cluster().changed();
  return Flow::next;
}

Flow run_dealloc(Warp& w, const Inst& i, uint32_t lanes) {
  require_all_lanes(w, lanes);
  const TensorAddress at = TensorAddress::decode(uniform(w, i.s[0], lanes, "taddr"));
  const auto columns = static_cast<int>(uniform(w, i.s[1], lanes, "nCols"));
  if (at.lane != 0) w.fault(lanes, "tcgen05.dealloc at lane {}; an allocation begins at lane 0", at.lane);
  if (w.wake() == Wake::none) tell(w, at.column, columns);
  if ((i.aux & 4) != 0)
    return meet(w, i, lanes, What::dealloc, {at.column, columns}) ? Flow::next : Flow::wait;
  located(w, lanes, [&] { Tcgen05::of(w.cta()).memory.release(at.column, columns); });
  w.cluster().changed();
  return Flow::next;
}

Flow run_relinquish(Warp& w, const Inst& i, uint32_t lanes) {
  require_all_lanes(w, lanes);
  if ((i.aux & 4) != 0) return meet(w, i, lanes, What::relinquish, {}) ? Flow::next : Flow::wait;
  Tcgen05::of(w.cta()).memory.allocator.relinquish();
  return Flow::next;
}

}  // namespace

void decode_tcgen05_alloc(Decoding& d, std::string_view what, bool pair) {
  d.inst.aux = pair ? 4 : 0;
  if (what == "relinquish_alloc_permit") {
    d.inst.run = &run_relinquish;
    return;
  }
  if (what == "dealloc") {
    d.take_type();
    d.inst.s[0] = d.source(0, 4);
    d.inst.run = &run_dealloc;
  } else {
    auto address = d.address(0);
    d.inst.s[0] = address.base;
    d.inst.imm = address.offset;
    const bool shared = d.take("shared::cta") || address.variable == ptx::Space::shared;
    d.inst.aux |= (address.wide ? 1u : 0u) | (shared ? 2u : 0u);
    d.take_type();
    d.inst.run = &run_alloc;
  }
  d.inst.s[1] = d.source(1, 4);
}

}  // namespace tw::sim
