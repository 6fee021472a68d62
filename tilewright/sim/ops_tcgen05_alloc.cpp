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

// Whoever waits for columns goes on when they are free, and when it may not have them any more: another warp
// has allocated fewer, or relinquished.
bool columns_decided(Warp& w, const Wait& wait) {
  const TensorAllocator& allocator = Tcgen05::of(w.cta()).memory.allocator;
  const auto columns = static_cast<int>(wait.a);
  return allocator.refuses(columns) || allocator.has_room(columns);
}
std::string describe_alloc(const Warp& w, const Wait& wait) {
  return tw::format("{} free columns of tensor memory; allocated are{}", wait.a,
                    allocated(Tcgen05::of(w.cta()).memory.allocator));
}
constexpr WaitKind kAllocWait{"tcgen05.alloc", &columns_decided, &describe_alloc, false};

// --- pairs ---

struct Request {
  int column = 0, columns = 0;
  bool operator==(const Request&) const = default;
};

// One of the three operations on one pair: what each CTA's warps have asked for, in order. The n-th request
// of the even CTA meets the n-th of the odd.
struct Meeting {
  std::array<std::vector<Request>, 2> asked;
  std::vector<int> granted;  // the column, for alloc

  bool met(size_t number) const { return number < std::min(asked[0].size(), asked[1].size()); }
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

// The next request that has met. Both CTAs allocate the same all the time: what one may or can, both do.
void perform(const Warp& w, What what, const CtaGroup& group, Meeting& m) {
  const Request& request = m.asked[0][m.granted.size()];
  int column = 0;
  for (Tcgen05* t : group.members) {
    if (what == What::alloc) column = t->memory.allocator.allocate(request.columns).value();
    else if (what == What::dealloc) t->memory.release(request.column, request.columns);
    else t->memory.allocator.relinquish();
  }
  m.granted.push_back(column);
  w.cluster().changed();
}

// Allocations that waited and can be had now, the oldest first. One that breaks a rule by now is left to the
// warps that ask for it.
void serve_allocations(const Warp& w, const CtaGroup& group) {
  Meeting& m = meeting(w, What::alloc);
  const TensorAllocator& allocator = group.home().memory.allocator;
  while (m.met(m.granted.size())) {
    const int columns = m.asked[0][m.granted.size()].columns;
    if (allocator.refuses(columns) || !allocator.has_room(columns)) return;
    perform(w, What::alloc, group, m);
  }
}

// Wait::a: What; Wait::b: the number of the request.
bool pair_ready(Warp& w, const Wait& wait) {
  const auto what = static_cast<What>(wait.a);
  const Meeting& m = meeting(w, what);
  if (m.granted.size() > wait.b) return true;
  if (what != What::alloc || !m.met(wait.b)) return false;
  return Tcgen05::of(w.cta()).memory.allocator.refuses(m.asked[0][wait.b].columns);
}
std::string describe_pair(const Warp& w, const Wait& wait) {
  const auto what = static_cast<What>(wait.a);
  Meeting& m = meeting(w, what);
  const uint32_t peer = w.cta().rank ^ 1;
  if (m.met(wait.b)) {
    return tw::format("{} free columns of tensor memory in both CTAs of the pair; allocated are{}",
                      m.asked[0][wait.b].columns, allocated(Tcgen05::of(w.cta()).memory.allocator));
  }
  return tw::format("a warp of the peer CTA (rank {}{}) to perform {}.cta_group::2 as well", peer,
                    w.cluster().ctas[peer]->exited() ? ", which has exited" : "",
                    kNames[static_cast<size_t>(what)]);
}
constexpr WaitKind kPairWait{"CTA pair", &pair_ready, &describe_pair, false};

// Enters a request; its number. A fault when it differs from what the peer CTA has asked for.
uint64_t ask(const Warp& w, uint32_t lanes, What what, Meeting& m, Request request) {
  auto& mine = m.asked[w.cta().rank & 1];
  mine.push_back(request);
  const uint64_t number = mine.size() - 1;
  if (!m.met(number)) return number;
  if (const Request& a = m.asked[0][number], &b = m.asked[1][number]; a != b)
    w.fault(
        lanes,
        "{}.cta_group::2 of {} columns at {} by the even CTA of the pair, of {} at {} by the odd: both must "
        "name the same",
        kNames[static_cast<size_t>(what)], a.columns, a.column, b.columns, b.column);
  return number;
}

// The request's result, or nothing: the warp is suspended.
std::optional<int> meet(Warp& w, const Inst& i, uint32_t lanes, What what, Request request) {
  Meeting& m = meeting(w, what);
  const bool first = w.wake() != Wake::ready;
  if (!first && m.granted.size() > w.wait().b) return m.granted[w.wait().b];
  const CtaGroup group = group_of(w, lanes, true);
  const uint64_t number = first ? ask(w, lanes, what, m, request) : w.wait().b;
  if (m.met(number)) {
    TensorAllocator& allocator = group.home().memory.allocator;
    located(w, lanes, [&] {
      if (what == What::alloc && allocator.refuses(request.columns)) allocator.allocate(request.columns);
      const bool next = number == m.granted.size();
      if (what != What::alloc || (next && allocator.has_room(request.columns))) perform(w, what, group, m);
    });
    if (what == What::dealloc) serve_allocations(w, group);
    if (m.granted.size() > number) return m.granted[number];
  }
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
  w.cluster().changed();
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
