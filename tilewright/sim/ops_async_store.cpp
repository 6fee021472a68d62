#include <array>
#include <bit>
#include <cstring>

#include "tilewright/sim/atomic_op.h"
#include "tilewright/sim/bulk.h"
#include "tilewright/sim/memory_access.h"

// PTX ISA, "st.async", "red.async": to shared memory of the cluster, completion on an mbarrier there.
namespace tw::sim {

namespace {

using ptx::Type;

struct StoreSpec {
  AddressRow to, mbarrier;
  bool generic = false;  // no state space: generic addresses
  bool reduces = false;
  AtomicOp op = AtomicOp::add;
  Type type = Type::none;
  uint32_t bytes = 4, count = 1;  // of one element; elements a thread
  Slot values[4];

  uint32_t thread_bytes() const { return bytes * count; }
};

// The stores of one warp's threads.
class AsyncStore final : public AsyncOp {
 public:
  explicit AsyncStore(const StoreSpec& s) : spec_(s) {}
  struct Thread {
    SharedRange to;
    uint32_t mbarrier = 0;
    uint64_t values[4] = {};
  };
  std::array<Thread, kLanes> threads{};

  void write(Cluster&) override {
    each([&](Thread& t, uint32_t lane) {
      require_running(*this, *t.to.cta);
      if (spec_.reduces) require_written(*warp, 1u << lane, t.to);
      for (uint32_t n = 0; n < spec_.count; ++n) {
        std::byte* at = t.to.data() + n * spec_.bytes;
        uint64_t fresh = t.values[n];
        if (spec_.reduces) {
          uint64_t old = 0;
          std::memcpy(&old, at, spec_.bytes);
          fresh = atomic_result(spec_.op, spec_.type, old, fresh, false);
        }
        std::memcpy(at, &fresh, spec_.bytes);
      }
      t.to.cta->shared.written().mark(t.to.offset, t.to.bytes);
      t.to.cta->cluster.touches(*this, AccessKind::write, *t.to.cta, t.to.offset, t.to.bytes);
    });
  }
  void signal(Cluster& cluster) override {
    each([&](Thread& t, uint32_t lane) {
      require_running(*this, *t.to.cta);
      cluster.mbarrier_op(*warp, 1u << lane, Cluster::BarrierOp::complete_tx, t.mbarrier,
                          spec_.thread_bytes(), this);
    });
  }
  std::string describe() const override {
    return tw::format("{}.async, {} bytes x {} lanes", spec_.reduces ? "red" : "st", spec_.thread_bytes(),
                      std::popcount(lanes));
  }

 private:
  template <class F>
  void each(F f) {
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
      f(threads[lane], lane);
    }
  }
  const StoreSpec& spec_;  // the program keeps it
};

uint64_t shared_address_of(const Warp& w, const StoreSpec& s, const AddressRow& row, uint32_t lane) {
  const uint64_t a = row.of(w, lane);
  if (!s.generic) return a;
  if (a < kSharedWindow || a - kSharedWindow >= kWindowSize)
    w.fault(1u << lane, "generic address {:#x} is not in the window of shared::cluster", a);
  return a - kSharedWindow;
}

Flow run_async_store(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const StoreSpec*>(i.extra);
  if (w.cluster().ctas.size() == 1)
    w.fault(lanes, "an asynchronous store in a cluster of one CTA; it needs at least two");
  auto op = std::make_shared<AsyncStore>(s);
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint32_t one = 1u << lane;
    AsyncStore::Thread& t = op->threads[lane];
    t.to = shared_range(w, one, shared_address_of(w, s, s.to, lane), s.thread_bytes(), s.thread_bytes());
    t.mbarrier = static_cast<uint32_t>(shared_address_of(w, s, s.mbarrier, lane));
    const SharedRange told = shared_range(w, one, t.mbarrier, 8, 8);
    if (told.cta != t.to.cta)
      w.fault(one, "the mbarrier lies in CTA rank {} and the destination in {}; they must lie in one CTA",
              told.cta->rank, t.to.cta->rank);
    if (s.reduces && t.to.cta == &w.cta())
      w.fault(one, "red.async to the executing CTA, rank {}; it goes to another CTA", t.to.cta->rank);
    require_no_mbarrier(w, one, t.to);
    for (uint32_t n = 0; n < s.count; ++n)
      t.values[n] = s.bytes == 8 ? w.row<uint64_t>(s.values[n])[lane] : w.row<uint32_t>(s.values[n])[lane];
  }
  w.cluster().issue(std::move(op), copy_engine(w), w, lanes);
  return Flow::next;
}

}  // namespace

void decode_async_store(Decoding& d) {
  StoreSpec s;
  s.reduces = d.ptx.opcode() == "red";
  d.take("async");
  if (!d.take("mbarrier::complete_tx::bytes")) d.unsupported("an asynchronous store to global memory");
  d.take_one_of({"weak", "relaxed"});
  d.take("cluster");
  s.generic = !d.take("shared::cluster");
  if (s.reduces) s.op = take_atomic_op(d);
  const auto vector = d.take_one_of({"v2", "v4"});
  s.count = vector.empty() ? 1 : static_cast<uint32_t>(vector[1] - '0');
  s.type = d.take_type();
  s.bytes = static_cast<uint32_t>(ptx::bytes(s.type));
  s.to = address_row(d, 0);
  s.mbarrier = address_row(d, 2);
  if (const auto* v = d.operand(1).as<ptx::Vector>()) {
    if (v->elements.size() != s.count) d.unsupported("a vector of this length");
    for (uint32_t n = 0; n < s.count; ++n) s.values[n] = d.float_source(v->elements[n], s.type);
  } else {
    s.values[0] = d.float_source(d.operand(1), s.type);
  }
  d.inst.extra = d.keep(s);
  d.inst.run = &run_async_store;
}

}  // namespace tw::sim
