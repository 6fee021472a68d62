#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/sim/async.h"
#include "tilewright/sim/barrier_log.h"
#include "tilewright/sim/observer.h"
#include "tilewright/sim/scheduler.h"
#include "tilewright/sim/shared_memory.h"
#include "tilewright/sim/simulator.h"
#include "tilewright/sim/warp.h"

namespace tw::sim {

class Grid;  // grid.h: what all clusters of a launch share

// State that a family of instructions hangs on a CTA or cluster without the core knowing it:
//   auto& tmem = cta.extensions.get<TensorMemory>([&] { return std::make_unique<TensorMemory>(cta); });
class Extensions {
 public:
  template <class T, class Make>
  T& get(Make make) {
    auto& p = table_[&key<T>];
    if (!p) p = std::shared_ptr<T>(make());
    return *static_cast<T*>(p.get());
  }
  template <class T>
  T* find() const {
    auto it = table_.find(&key<T>);
    return it == table_.end() ? nullptr : static_cast<T*>(it->second.get());
  }
  void clear() { table_.clear(); }

 private:
  template <class T>
  static inline char key = 0;
  std::unordered_map<const void*, std::shared_ptr<void>> table_;
};

// A named barrier (0 to 15) of a CTA: PTX ISA, "bar, barrier".
struct NamedBarrier {
  uint32_t expected = 0;  // threads, as the first arrival said; 0 while nobody has arrived
  bool everyone = false;  // expects all threads of the CTA that have not exited
  uint32_t arrived = 0;
  uint64_t generation = 0;          // completed uses
  uint32_t warps = 0, earlier = 0;  // that have arrived, one bit each; in the use before
  uint32_t reduction = 0;           // bar.red: count, or truth so far
  uint32_t last_reduction = 0;
  int reduction_kind = -1;
};

class Cta {
 public:
  Cta(Cluster& owner, uint32_t cluster_rank);

  Cluster& cluster;
  const uint32_t rank;  // in the cluster
  Dim3 id;              // %ctaid
  SharedMemory shared;
  std::vector<Warp> warps;
  std::array<NamedBarrier, 16> barriers;
  void complete_if_all_arrived(NamedBarrier& barrier);
  Extensions extensions;
  std::vector<void (*)(Warp& last)>
      at_end;                  // called when the CTA's last thread exits; families add their checks
  uint32_t register_pool = 0;  // registers that setmaxnreg.inc may take
  bool exited() const { return exited_; }  // all its threads have
  uint32_t live_threads() const;
  uint32_t live_threads_by_warp() const;  // 32 for each warp with a live lane

  LoggedMBarrier* find_mbarrier(uint32_t offset);  // at this shared offset, or nullptr
  void init_mbarrier(uint32_t offset, uint32_t count);
  void invalidate_mbarrier(uint32_t offset);
  // Until it changes, what find_mbarrier answered stays where it is.
  uint64_t mbarrier_generation() const { return mbarrier_generation_; }
  const std::unordered_map<uint32_t, LoggedMBarrier>& mbarriers() const { return mbarriers_; }

  void start();                                       // a fresh CTA: poison memory, all warps at the entry
  std::string name() const;                           // "CTA (1, 0, 0)"
  std::string name_of_shared(uint32_t offset) const;  // "As[1] + 64 bytes", "shared byte 4096"

 private:
  std::unordered_map<uint32_t, LoggedMBarrier> mbarriers_;
  uint64_t mbarrier_generation_ = 0;
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> registers_;  // of all warps, 64-byte aligned
  std::vector<std::byte> local_;
  bool exited_ = false;
  friend class Warp;
  friend class Cluster;
};

// A cluster of CTAs (of one, by default): the unit of execution. One host thread at a time runs it.
class Cluster {
 public:
  explicit Cluster(const Grid& owner);
  ~Cluster();

  const Grid& grid;
  uint64_t index = 0;  // in the grid; clusters start in this order
  std::vector<std::unique_ptr<Cta>> ctas;
  Extensions extensions;
  void* observer_data = nullptr;  // free for the observer
  Observer* observer() const { return observer_; }

  // Any change that a wait could depend on counts this up; waits are tested again only then.
  uint64_t epoch = 1;
  void changed() { ++epoch; }

  // --- shared memory of the cluster ---
  // A 32-bit shared::cluster address: which CTA and which offset; a fault of `warp` when it names none, or
  // another CTA that has exited.
  struct Location {
    Cta* cta;
    uint32_t offset;
  };
  Location locate(const Warp& warp, uint32_t lanes, uint32_t shared_address, uint32_t bytes) const;
  // {nullptr, 0} when it names none, or a CTA that has exited.
  Location locate_or_null(uint32_t shared_address, uint32_t bytes) const;

  // --- mbarriers ---
  // The barrier at a shared address; a fault when there is none. Async operations pass the warp that issued
  // them.
  LoggedMBarrier& mbarrier(const Warp& warp, uint32_t lanes, uint32_t shared_address);
  // Operations with their checks and events. Whoever did it: `op` for an asynchronous operation, else the
  // warp alone.
  enum class BarrierOp : uint8_t {
    arrive,
    arrive_no_complete,
    arrive_drop,
    expect_tx,
    complete_tx,
    increase_pending
  };
  void mbarrier_op(const Warp& warp, uint32_t lanes, BarrierOp what, uint32_t shared_address, int64_t amount,
                   const AsyncOp* op = nullptr);

  // --- asynchronous operations ---
  Engine& engine(std::string_view name, Engine::Order order, int cta_rank);  // made on first use
  // Puts an operation in flight; the issuing warp's slice ends, so that the schedule can advance it.
  void issue(std::shared_ptr<AsyncOp> op, Engine& engine, Warp& warp, uint32_t lanes);
  void advance(AsyncOp& op, Milestone to);
  bool may_advance(const AsyncOp& op) const;  // to its next milestone
  const std::vector<std::unique_ptr<Engine>>& engines() const { return engines_; }
  // Tell the observer, if there is one, what an operation reads or writes.
  void touches(const AsyncOp& op, AccessKind kind, const Cta& cta, uint32_t offset, uint32_t bytes) const {
    const Stretch stretch{offset, bytes};
    touches(op, kind, cta, {&stretch, 1});
  }
  void touches(const AsyncOp& op, AccessKind kind, const Cta& cta, std::span<const Stretch> stretches) const {
    if (observer_) [[unlikely]]
      observer_->async_access(op, {kind, MemorySpace::shared, &cta, stretches});
  }
  void touches(const AsyncOp& op, AccessKind kind, uint64_t address, uint64_t bytes, uint32_t rows = 1,
               uint64_t pitch = 0) const {
    if (!observer_) [[likely]]
      return;
    AsyncAccess a{kind, MemorySpace::global, nullptr};
    a.bytes = static_cast<uint32_t>(bytes);
    a.address = address;
    a.rows = rows;
    a.pitch = pitch;
    observer_->async_access(op, a);
  }
  // All in flight that may move now, oldest first.
  const std::vector<AsyncOp*>& advanceable();
  size_t in_flight() const { return in_flight_; }

  // --- cluster barrier ("barrier.cluster") ---
  struct ClusterBarrier {
    uint32_t arrived = 0;  // threads
    uint64_t generation = 0;
  } barrier;
  uint32_t live_threads() const;
  // The lanes of a warp that have arrived and wait for the others.
  uint32_t at_cluster_barrier(const Warp& warp) const;
  void complete_cluster_barrier();  // if all threads that have not exited have arrived

  // --- running ---
  enum class Stop : uint8_t { finished, budget, order };
  // Runs until the end, until `budget` more warp instructions are spent, or until an access needs its turn
  // between clusters.
  Stop run(uint64_t budget);
  void take_turn();  // performs the access that stopped it; the grid lets one cluster at a time do so
  bool has_turn() const { return has_turn_; }
  void keep_turn() { has_turn_ = true; }  // no other cluster runs while this one does
  uint64_t instructions() const { return instructions_; }
  std::vector<Warp*> warps;                 // of all CTAs in rank order
  Warp* next_runnable(size_t from) const;   // cyclic search from warps[from]; nullptr if none
  size_t position(const Warp& warp) const;  // in `warps`

  void thread_exited(Warp& warp, uint32_t lanes);  // barriers that only waited for these complete
  void start(uint64_t cluster_index);              // this object becomes that cluster, with fresh CTAs

 private:
  void wake();
  bool finished() const { return live_warps_ == 0 && in_flight_ == 0; }
  void quiescent();
  void check_livelock();
  Observer* observer_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<AsyncOp*> advanceable_;
  std::unique_ptr<Scheduler> scheduler_;
  size_t live_warps_ = 0;
  size_t in_flight_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t instructions_ = 0;
  uint64_t woken_epoch_ = 0;    // waits were last tested at this epoch
  uint64_t timeout_epoch_ = 0;  // waits last timed out at this epoch
  uint64_t idle_polls_ = 0;     // unsuccessful polls since the epoch changed
  bool has_turn_ = false;
  AsyncOp* ordered_op_ = nullptr;
  Warp* ordered_warp_ = nullptr;
};

// A waiting instruction lets `lanes` go on.
inline Flow passed(const Warp& warp, uint32_t lanes) {
  if (Observer* o = warp.cluster().observer()) [[unlikely]]
    o->waited(warp, warp.instruction(), lanes);
  return Flow::next;
}

}  // namespace tw::sim
