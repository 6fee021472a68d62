#pragma once
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tilewright/check/steering.h"
#include "tilewright/check/sync_order.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/observer.h"
#include "tilewright/sim/scheduler.h"

namespace tw::check {

// Clusters that can notice each other's order: one, or all of a launch that communicates through global
// memory. The launch's number in the run, and the cluster's or kAll.
struct DomainKey {
  static constexpr uint64_t kAll = ~uint64_t{0};
  uint32_t launch = 0;
  uint64_t cluster = kAll;
  auto operator<=>(const DomainKey&) const = default;
};

// Records the order of synchronisation of a run, and makes the run follow a plan first: the schedule and an
// observer in one. What the observer sees goes on to another one.
//
// A warp runs until it did something that others can notice; a signal of an asynchronous operation is a step
// of its own; all else an operation does happens as soon as it may. One host thread, so that the same plan
// gives the same run.
class OrderRecorder final : public sim::Observer, public sim::SchedulerFactory {
 public:
  class Domain;
  explicit OrderRecorder(sim::Observer& next);
  ~OrderRecorder() override;

  struct Recorded {
    DomainKey domain;
    SyncTrace trace;
    bool followed = true;  // the plan to its end
  };
  void begin_run(std::map<DomainKey, Plan> plans);
  std::vector<Recorded> end_run();  // of the domains that began, in order
  uint64_t instructions() const;    // the most that a cluster executed in the run
  const std::set<std::string>& not_explored() const { return not_explored_; }

  // --- sim::SchedulerFactory ---
  std::unique_ptr<sim::Scheduler> make(sim::Cluster& cluster) override;
  bool interleaves() const override { return true; }
  size_t pick(std::span<sim::Cluster* const> running) override;

  // --- sim::Observer ---
  void launch_begin(const sim::Grid& grid) override;
  void launch_end() override;
  void cluster_begin(sim::Cluster& cluster) override;
  void cluster_end(sim::Cluster& cluster) override;
  void issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t pc, uint32_t lanes) override;
  void access(const sim::Warp& warp, const sim::Access& access) override;
  void fence(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) override;
  void waited(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) override;
  void tensor_memory(const sim::Warp& warp, int column, int columns) override;
  void warp_state(const sim::Warp& warp, sim::WarpState state, uint32_t lanes) override;
  void async_issued(const sim::AsyncOp& op) override;
  void async_access(const sim::AsyncOp& op, const sim::AsyncAccess& access) override;
  void async_reached(const sim::AsyncOp& op, sim::Milestone milestone) override;
  void barrier(const sim::BarrierEvent& event) override;

 private:
  class ClusterSchedule;
  Domain& of(const sim::Cluster& cluster);

  sim::Observer& next_;
  std::map<DomainKey, Plan> plans_;
  std::map<DomainKey, std::unique_ptr<Domain>> domains_;
  std::map<uint32_t, std::unique_ptr<Steering>> steering_;  // by launch
  std::set<std::pair<uint32_t, uint64_t>> spins_;           // reads that were repeated: where, what they saw
  std::set<std::string> not_explored_;
  uint32_t launch_ = 0;  // of the run, from 1
  const sim::Cluster* last_ = nullptr;
  Domain* last_domain_ = nullptr;
  std::map<const sim::Cluster*, Domain*> domain_of_;
};

}  // namespace tw::check
