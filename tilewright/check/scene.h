#pragma once
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/check/address_origins.h"
#include "tilewright/check/allocations.h"
#include "tilewright/check/checker.h"
#include "tilewright/check/dependency.h"
#include "tilewright/check/global.h"
#include "tilewright/check/groups.h"
#include "tilewright/check/history.h"
#include "tilewright/check/lane_order.h"
#include "tilewright/check/load_uses.h"
#include "tilewright/check/protocol.h"
#include "tilewright/check/register_plan.h"
#include "tilewright/check/registers.h"
#include "tilewright/check/scope.h"
#include "tilewright/check/shadow.h"
#include "tilewright/check/spaces.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"

namespace tw::check {

// A warp, or the lanes of it that run without the others.
struct Actor {
  View view;
  uint32_t index = 0;  // in clocks
  uint32_t epoch = 1;
  std::shared_ptr<Stream> tensor_core = std::make_shared<Stream>();

  // Its own present, which the others may not know yet.
  void note_present() {
    view.ordinary.set(index, epoch);
    view.caused.set(index, epoch);
  }
};

// The lanes of a warp that have come to one place, an instruction or a phase, where they come in parts.
struct Parts {
  const void* place = nullptr;
  uint32_t lanes = 0;
  // Whether with these the last have come.
  bool all_came(const void* at, uint32_t more, uint32_t all) {
    if (std::exchange(place, at) != at) lanes = 0;
    lanes |= more;
    return (lanes & all) == all && std::exchange(lanes, 0) != 0;
  }
};

struct WarpKnowledge {
  Actor all, some;                            // all lanes; those that run alone
  uint64_t changes = 0, seen = 0;             // of `all`, and what `some` has taken over
  uint32_t full = 0;                          // the lanes it started with
  uint32_t lanes = 0;                         // that execute the warp's present instruction
  uint64_t instructions = 0;                  // so far
  std::pair<uint64_t, const void*> released;  // the last instruction that did, and into which phase
  uint64_t init_fence = 0;                    // `instructions` at the last fence that publishes barriers
  LaneOrder lane_order;
  CopyGroups copies, bulk;  // cp.async, and the bulk copies that complete by groups
  // By scope: accesses that relaxed reads observed, which a fence of that scope acquires.
  std::array<Clock, kFenceScopes> pending;
  std::vector<Flags::Entry> observed;                             // of other clusters, likewise
  std::array<std::pair<uint32_t, uint64_t>, 8> volatile_reads{};  // the last: where, and of which word
  uint64_t wgmmas = 0;
  std::vector<uint64_t> wgmma_commits;
  std::shared_ptr<Stream> wgmma_part = std::make_shared<Stream>();
  RegisterState registers;
  Parts fences, waits;
  std::shared_ptr<Stream> tensor_loads = std::make_shared<Stream>(),
                          tensor_stores = std::make_shared<Stream>();
  UnwaitedLoads loads;
};

// f(begin, bytes, lane) for the bytes of an access, where those of lanes that follow each other count as one
// run; `lane` is the first.
template <class F>
void each_run(const sim::Access& access, F f) {
  for (uint32_t rest = access.lanes; rest != 0;) {
    const auto first = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t begin = access.addresses[first];
    uint64_t end = begin;
    for (uint32_t l = first; l < sim::kLanes && (rest >> l & 1) != 0 && access.addresses[l] == end; ++l) {
      end += access.bytes;
      rest &= rest - 1;
    }
    f(begin, end - begin, first);
  }
}

// What the threads and operations of one cluster know of each other.
class Checker::Scene {
 public:
  Scene(Checker& owner, Launch& launch, sim::Cluster& cluster);

  void issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes);
  void access(const sim::Warp& warp, const sim::Access& access);
  void fence(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes);
  void waited(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes);
  void issued(const sim::AsyncOp& op);
  void access(const sim::AsyncOp& op, const sim::AsyncAccess& access);
  void signalled(const sim::AsyncOp& op);
  void barrier(const sim::BarrierEvent& event);
  void started(const sim::Warp& warp, uint32_t lanes) { knowledge(warp).full = lanes; }
  void exited(const sim::Warp& warp);
  void tensor_memory(const sim::Warp& warp, int column, int columns);
  GlobalTouches take_global() { return std::move(global_); }

 private:
  struct Waiter {
    uint32_t actor, epoch, pc;
    const sim::Warp* warp;
  };
  // An arrival that does not reach every thread that may wait.
  struct Weak {
    Scope scope;
    bool releases;
    uint32_t pc;
    Clock gave;  // to those it reaches, with what fences released if it is relaxed
    Clock all;   // relaxed: what it would have given
  };
  struct Phase {
    View view;
    std::vector<Weak> weak;
    std::vector<std::shared_ptr<const Operation>> operations;
    std::vector<Waiter> arrivals;
    std::vector<Waiter> waiters;  // who saw it complete
    uint32_t visitor = 0;         // where an operation of another CTA that signals it was issued; 0: none
  };
  struct Barrier {
    std::map<uint64_t, Phase> phases;
    const sim::Warp* initialiser = nullptr;
    uint64_t initialised = 0;  // the initialiser's instruction
    uint32_t pc = 0;
    // The last arrival of a warp: its instruction and the phase it counted for.
    const sim::Warp* arriving = nullptr;
    uint64_t instruction = 0, arriving_phase = 0;
  };
  // What other CTAs do to a CTA, and what its threads know when they end.
  struct Visits {
    using Last = std::map<uint32_t, std::pair<uint32_t, uint32_t>>;  // by actor: its last epoch, and where
    Last arrivals, accesses;
    std::vector<std::shared_ptr<const Operation>> operations;  // the newest
    std::vector<std::shared_ptr<const Operation>> copies;      // its own into it, the newest
    View at_end;
  };
  using BarrierKey = std::tuple<int, const sim::Cta*, uint32_t>;  // object, where, id
  // Columns of tensor memory that one pipeline wrote last, all with one stamp: MMAs write the same ones many
  // times over.
  struct Accumulator {
    uint64_t begin, end;  // in the shadow
    uint32_t stamp;
    const void* pipeline;
  };
  struct Memories {
    Shadow shared, tensor;
    View freed;  // what those knew who gave tensor memory back
    std::vector<Accumulator> accumulators = {};
  };

  WarpKnowledge& knowledge(const sim::Warp& warp) { return warps_[cluster_.position(warp)]; }
  Actor& actor(const sim::Warp& warp, uint32_t lanes);
  void join(WarpKnowledge& w);
  void gathered(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes);
  void met(const sim::Warp& warp, uint32_t lanes);
  void warp_barrier(const sim::Warp& warp, uint32_t lanes);
  void hear(const sim::Warp& warp, uint32_t lanes, const Clock& told);
  void hear(const sim::Warp& warp, uint32_t lanes, const Phase& phase);
  void hear(const sim::Warp& warp, uint32_t lanes, const Handed& handed);
  bool collective(const sim::Warp& warp) const;
  template <class F>
  void release(const sim::Warp& warp, uint32_t lanes, F give);
  void give(Phase& phase, const View& view, const Semantics& how, bool remote, uint32_t pc);
  void acquire(WarpKnowledge& w, Actor& a, const Phase& phase, const Semantics& how);
  void wait_for_groups(WarpKnowledge& w, Actor& a, const ptx::Instruction& inst, uint32_t lanes);
  void fence(const sim::Warp& warp, const ptx::Instruction& inst, Actor& a);
  void proxy_fence(const sim::Warp& warp, const ProxyFence& fence, Actor& a, Actor* some);
  void memory_fence(const sim::Warp& warp, Actor& a, const Semantics& how);
  void learn(Actor& a, const Operation& op);
  void learn(Actor& a, Stream& stream, uint64_t up_to);
  Phase& phase(Barrier& barrier, uint64_t number);
  void arrive(const sim::BarrierEvent& event, Barrier& barrier);
  void require_one_phase(const sim::BarrierEvent& event, Barrier& barrier);
  void require_init_fence(const sim::BarrierEvent& event, const Barrier& barrier);
  void require_signals_seen(const sim::Cta& cta, const View& at_end);
  void require_no_waiter(const sim::BarrierEvent& event, Barrier& barrier);
  bool knows_complete(const Phase& phase, const sim::Warp& warp, const View& view) const;
  void require_phase_before(const sim::BarrierEvent& event, const Barrier& barrier, const View& view);
  void require_use_before(const sim::BarrierEvent& event, const Barrier& barrier, const View& view);
  void require_inside(uint32_t pc, size_t operand, const sim::Warp& warp, bool write, const sim::Cta& cta,
                      uint64_t begin, uint64_t bytes, uint64_t unit);
  void registers(const sim::Warp& warp, const ptx::Instruction& inst, WarpKnowledge& w);
  void found(FaultKind kind, uint32_t pc, std::string message, uint32_t other, std::string other_text,
             std::string advice);
  Report reporter();
  void prune();
  uint32_t stamp(const sim::AsyncOp& op, bool tensor, bool write);
  bool accumulates(const sim::AsyncOp& op, Memories& memories, uint64_t begin, uint64_t end, bool write);
  template <class Lanes>
  Order order_of(Shadow::Entry before, Shadow::Entry now, const View& view, size_t space);
  template <class Lanes = NoLanes>
  void touch(const sim::Cta& cta, bool tensor, std::span<const sim::Stretch> stretches, uint32_t stamp,
             const View& view, const Lanes& lanes = {});
  template <class Lanes = NoLanes>
  void touch(const sim::Cta& cta, bool tensor, uint32_t begin, uint32_t bytes, uint32_t stamp,
             const View& view, const Lanes& lanes = {}) {
    const sim::Stretch stretch{begin, bytes};
    touch(cta, tensor, {&stretch, 1}, stamp, view, lanes);
  }
  void touch_global(const PagedShadow::Rows& rows, const View& view);
  void wait_for_grid_before(const sim::Warp& warp, const ptx::Instruction& inst, Actor& a, uint32_t lanes);
  const std::shared_ptr<Operation>& lasting_operation();
  void access_global(const sim::Warp& warp, const sim::Access& access, Actor& a, const Semantics& how);
  void access_shared(const sim::AsyncOp& op, const sim::AsyncAccess& access);
  void access_tensor(const sim::AsyncOp& op, const sim::AsyncAccess& access);
  void access_global(const sim::AsyncOp& op, const sim::AsyncAccess& access);
  void synchronise(const sim::Warp& warp, const sim::Access& access, const Semantics& how);
  void note_volatile(const sim::Warp& warp, uint64_t word);
  void observe(const sim::Warp& warp, Actor& a, const Flags::Entry& handed, const Semantics& how);
  std::vector<Flags::Entry> hand_out(const sim::Warp& warp, uint32_t lanes, const Semantics& how);
  Flags::Entry handed(const sim::Warp& warp, const Actor& a, View view, Scope scope) const;
  void take(Actor& a, const Handed& handed);
  void report(Order how, const Stamp& earlier, const Stamp& later, size_t space, const std::string& place);
  void report(Order how, Shadow::Entry earlier, Shadow::Entry later, const sim::Cta& cta, bool tensor,
              uint64_t begin);
  void report_lanes(Shadow::Entry earlier, Shadow::Entry later, const std::string& place);
  std::string fence_for(const Stamp& earlier, size_t space) const;
  std::string too_narrow(const Stamp& earlier) const;
  std::string describe(const Stamp& s) const;
  std::string hand_over_of(const Stamp& earlier, const Stamp& later) const;
  std::string where(const sim::Warp& warp, uint32_t pc) const;  // "CTA (0, 0, 0), warp 4, role mma"
  std::string name_of(const sim::Cta& cta, bool tensor, uint64_t at) const;
  Memories& memories(const sim::Cta& cta) { return memories_[cta.rank]; }
  const ptx::Instruction* instruction(uint32_t pc) const;

  Checker& owner_;
  Launch& launch_;
  sim::Cluster& cluster_;
  const size_t actors_;
  const Spaces& spaces_;
  std::vector<WarpKnowledge> warps_;
  std::vector<Memories> memories_;
  Stamps stamps_;
  Operations all_operations_;
  // By the earlier one's number: that it precedes the later in that memory. What is ordered stays so.
  struct Ordered {
    uint32_t earlier = 0, later = 0;
    size_t space = 0;
    bool operator==(const Ordered&) const = default;
  };
  std::array<Ordered, 64> ordered_{};
  std::map<BarrierKey, Barrier> barriers_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> wgmmas_;  // issued, by CTA and warpgroup
  std::vector<Visits> visits_;                                // by CTA rank
  const ByteCounts byte_counts_;
  const Elections elections_;
  BarrierPlaces places_;
  DependencyWaits dependency_waits_;
  TensorAllocations allocations_;
  RegisterPlan register_plan_;
  const SharedRegisters registers_;
  RegisterTable register_table_;
  const AddressOrigins origins_;
  SemanticsTable semantics_;
  GlobalTouches global_;
  Flags flags_;  // in shared memory
  std::unordered_map<const sim::AsyncOp*, std::shared_ptr<Operation>> in_flight_;
  // The operation whose accesses come now.
  const sim::AsyncOp* current_ = nullptr;
  std::shared_ptr<Operation> current_operation_, current_lasting_;
  std::array<uint32_t, 4> current_stamps_{};  // 0: none yet
  // What was reported: kind, and both places in the program.
  std::set<std::tuple<Order, uint32_t, uint32_t>> reported_;
};

// give(view) hears what each actor that releases knows.
template <class F>
void Checker::Scene::release(const sim::Warp& warp, uint32_t lanes, F give) {
  Actor& a = actor(warp, lanes);
  WarpKnowledge& w = knowledge(warp);
  const auto from = [&](Actor& who) {
    who.note_present();
    give(std::as_const(who.view));
    ++who.epoch;
  };
  from(a);
  if (&a == &w.all) from(w.some);  // each of all lanes gives what it did alone
}

}  // namespace tw::check
