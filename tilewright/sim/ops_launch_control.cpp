// clusterlaunchcontrol: a running cluster takes over the work of one that has not started (PTX ISA,
// "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel"). Which one it gets is decided in
// the order between clusters (run.cpp), so that results do not depend on host threads.
#include <array>
#include <bit>
#include <cstring>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/matrix_op.h"
#include "tilewright/sim/memory_access.h"

namespace tw::sim {
namespace {

constexpr uint32_t kResponseBytes = 16;

// The opaque response: the first CTA of the cancelled cluster, and a word that tells it from other bytes.
struct Response {
  uint32_t x = 0, y = 0, z = 0, state = kFailed;
  static constexpr uint32_t kFailed = 0x434c4300, kCancelled = 0x434c4301;
};
static_assert(sizeof(Response) == kResponseBytes);

// Whether a thread of the CTA has seen that a request failed.
struct Observed {
  bool failure = false;
};
Observed& observed(Cta& cta) {
  return cta.extensions.get<Observed>([] { return std::make_unique<Observed>(); });
}

class CancelOp final : public AsyncOp {
 public:
  void read(Cluster& cluster) override {
    PendingClusters& pending = cluster.grid.pending;
    const auto taken = pending.take();
    if (!taken) return;
    ++pending.cancelled;
    const Dim3 first = cluster.grid.first_cta(*taken);
    response_ = {first.x, first.y, first.z, Response::kCancelled};
  }
  void write(Cluster& cluster) override {
    each_target(cluster, [&](uint32_t rank) {
      const auto at = cluster.locate(*warp, lanes, shared_address(rank, offset), kResponseBytes);
      std::memcpy(at.cta->shared.data() + at.offset, &response_, kResponseBytes);
      at.cta->shared.written().mark(at.offset, kResponseBytes);
    });
  }
  void signal(Cluster& cluster) override {
    each_target(cluster, [&](uint32_t rank) {
      cluster.mbarrier_op(*warp, lanes, Cluster::BarrierOp::complete_tx, shared_address(rank, barrier),
                          kResponseBytes, this);
    });
  }
  bool needs_order(Milestone next) const override { return next == Milestone::reads_done; }
  std::string describe() const override {
    return tw::format("clusterlaunchcontrol.try_cancel{}", multicast ? " for all CTAs of the cluster" : "");
  }

  uint32_t offset = 0, barrier = 0;  // in the shared memory of every CTA it answers
  bool multicast = false;

 private:
  template <class F>
  void each_target(const Cluster& cluster, F f) {
    located(*this, [&] {
      if (!multicast) return f(warp->cta().rank);
      for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank) f(rank);
    });
  }
  Response response_;
};

struct TryCancel {
  Slot address, barrier;
  int64_t address_offset = 0, barrier_offset = 0;
  bool address_wide = false, barrier_wide = false;
  bool shared = false, multicast = false;
};

// The offset in the CTA's shared memory that a lane names.
uint32_t local_offset(const Warp& w, uint32_t lane, uint64_t address, bool shared, uint32_t bytes,
                      const char* what) {
  const uint32_t lanes = 1u << lane;
  if (!shared) {
    if (address < kSharedWindow || address - kSharedWindow >= kWindowSize)
      w.fault(lanes, "try_cancel: the {} address {:#x} is outside the window of shared memory", what,
              address);
    address -= kSharedWindow;
  }
  const auto at = w.cluster().locate(w, lanes, static_cast<uint32_t>(address), bytes);
  if (at.cta != &w.cta())
    w.fault(lanes, "try_cancel: the {} lies in CTA rank {}; it must be in .shared::cta", what, at.cta->rank);
  if (at.offset % bytes != 0)
    w.fault(lanes, "try_cancel: the {} address {:#x} is not aligned to {} bytes", what, address, bytes);
  return at.offset;
}

Flow run_try_cancel(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& t = *static_cast<const TryCancel*>(i.extra);
  const Addresses response = lane_addresses(w, t.address, t.address_wide, t.address_offset);
  const Addresses barrier = lane_addresses(w, t.barrier, t.barrier_wide, t.barrier_offset);
  Cluster& c = w.cluster();
  if (observed(w.cta()).failure) {
    w.fault(
        lanes,
        "clusterlaunchcontrol.try_cancel after this CTA has observed that an earlier one failed: no cluster "
        "is left");
  }
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    auto op = std::make_shared<CancelOp>();
    op->multicast = t.multicast;
    op->offset = local_offset(w, lane, response.lane[lane], t.shared, kResponseBytes, "response");
    op->barrier = local_offset(w, lane, barrier.lane[lane], t.shared, 8, "mbarrier");
    for (const auto& cta : c.ctas) {
      if (!t.multicast && cta.get() != &w.cta()) continue;
      if (cta->exited()) {
        w.fault(1u << lane, "try_cancel.multicast::cluster::all when CTA rank {} of the cluster has exited",
                cta->rank);
      }
      c.mbarrier(w, 1u << lane, shared_address(cta->rank, op->barrier));  // faults now if there is none
    }
    c.issue(std::move(op),
            c.engine("cluster launch control", Engine::Order::any, static_cast<int>(w.cta().rank)), w,
            1u << lane);
  }
  return Flow::next;
}

// --- query_cancel; s[0] destination (or s[0] to s[2], x to z), s[3] the response ---

Response response_of(Warp& w, const Inst& i, uint32_t lane) {
  const auto* low = w.row<uint64_t>(i.s[3]);
  const uint64_t words[2] = {low[lane], low[kLanes + lane]};
  Response r;
  std::memcpy(&r, words, kResponseBytes);
  if (r.state != Response::kFailed && r.state != Response::kCancelled)
    w.fault(1u << lane, "query_cancel of 16 bytes that are no response of clusterlaunchcontrol.try_cancel");
  return r;
}

Flow run_is_cancelled(Warp& w, const Inst& i, uint32_t lanes) {
  uint32_t cancelled = 0;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (response_of(w, i, lane).state == Response::kCancelled) cancelled |= 1u << lane;
  }
  if (cancelled != lanes) observed(w.cta()).failure = true;
  uint32_t& p = w.mask(i.s[0]);
  p = (p & ~lanes) | cancelled;
  return Flow::next;
}

// aux: bit n: dimension n goes to s[n].
Flow run_first_ctaid(Warp& w, const Inst& i, uint32_t lanes) {
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const Response r = response_of(w, i, lane);
    if (r.state == Response::kFailed)
      w.fault(1u << lane, "query_cancel.get_first_ctaid of a request that failed: check is_canceled first");
    const uint32_t id[3] = {r.x, r.y, r.z};
    for (int n = 0; n < 3; ++n) {
      if ((i.aux >> n & 1) != 0) w.row<uint32_t>(i.s[n])[lane] = id[n];
    }
  }
  return Flow::next;
}

void decode_try_cancel(Decoding& d) {
  TryCancel t;
  d.take("async");
  d.take("mbarrier::complete_tx::bytes");
  t.shared = d.take("shared::cta");
  t.multicast = d.take("multicast::cluster::all");
  d.take_type();
  const auto address = d.address(0), barrier = d.address(1);
  t.address = address.base, t.address_offset = address.offset, t.address_wide = address.wide;
  t.barrier = barrier.base, t.barrier_offset = barrier.offset, t.barrier_wide = barrier.wide;
  // A variable's name stands for its own space.
  if (address.variable == ptx::Space::shared && barrier.variable == ptx::Space::shared) t.shared = true;
  d.mark_ordered();
  d.inst.extra = d.keep(t);
  d.inst.run = &run_try_cancel;
}

void decode_query_cancel(Decoding& d) {
  const auto what = d.take_one_of(
      {"is_canceled", "get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
  d.take_one_of({"pred"});
  d.take("v4");
  while (d.take_type() != ptx::Type::none) {
  }
  d.inst.s[3] = d.source(1, 16);
  if (what == "is_canceled") {
    d.inst.s[0] = d.predicate_destination(d.operand(0));
    d.inst.run = &run_is_cancelled;
    return;
  }
  d.inst.run = &run_first_ctaid;
  if (what != "get_first_ctaid") {
    const uint32_t n = what.empty() ? 0 : static_cast<uint32_t>(what.back() - 'x');
    d.inst.s[n] = d.destination(0, 4);
    d.inst.aux = 1u << n;
    return;
  }
  const auto* v = d.operand(0).as<ptx::Vector>();
  if (v == nullptr || v->elements.size() != 4)
    user_error(d.ptx.loc, "{}: the destination has 4 elements", d.ptx.text());
  for (size_t n = 0; n < 3; ++n) {
    if (v->elements[n].is<ptx::Sink>()) continue;
    d.inst.s[n] = d.destination(v->elements[n], 4);
    d.inst.aux |= 1u << n;
  }
}

void decode_launch_control(Decoding& d) {
  // "Requires sm_100 or higher."
  if (d.arch().starts_with("sm_9"))
    user_error(d.ptx.loc, "{} requires sm_100 or higher; the machine is {}", d.ptx.text(), d.arch());
  if (d.take("try_cancel")) return decode_try_cancel(d);
  if (d.take("query_cancel")) return decode_query_cancel(d);
  d.unsupported("this operation");
}

}  // namespace

void register_launch_control(Registry& r) { r.add("clusterlaunchcontrol", &decode_launch_control); }

}  // namespace tw::sim
