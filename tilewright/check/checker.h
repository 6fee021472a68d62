#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "tilewright/check/report.h"
#include "tilewright/sim/observer.h"

namespace tw::check {

// Watches a simulation and finds accesses of shared and tensor memory that nothing orders. What it finds does
// not depend on the schedule's luck: two accesses are ordered when synchronisation orders them, not when they
// happened to come one after the other. One checker may watch several launches; it is attached by
// sim::RunOptions::observer.
class Checker final : public sim::Observer {
 public:
  Checker();
  ~Checker() override;

  // Names the runs that follow: "late".
  void schedule(std::string name);
  // The same for a run under an order of synchronisation of its own, which is no schedule.
  void under_order(std::string name);
  // What the simulator stopped at becomes a fault; other kinds than fault, deadlock and not_modelled are not
  // taken.
  bool take(const Error& error);
  CheckReport report() const;

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

  class Scene;   // what is known of one cluster
  class Launch;  // what clusters know of each other
  // `one`, `two`: where both accesses stand, as source lines or places in the program. Reported once, as the
  // first cluster met it; `cluster` is kBetween for what came out between clusters.
  static constexpr uint64_t kBetween = ~uint64_t{0};
  void found(Fault fault, std::string one, std::string two, uint64_t cluster = kBetween);
  void found(Fault fault);  // known by its place alone, or without one by its message
  void not_checked(std::string what);

 private:
  static Scene& of(const sim::Warp& warp);

  mutable std::mutex mutex_;  // clusters run on several host threads
  std::string schedule_;
  // Runs before it, the cluster, and how many were found before: the order that reports have.
  using Place = std::tuple<size_t, uint64_t, size_t>;
  void add(Fault fault, std::tuple<FaultKind, std::string, std::string> key, uint64_t cluster);
  std::vector<std::string> schedules_;
  size_t runs_ = 0;
  std::map<std::tuple<FaultKind, std::string, std::string>, std::pair<Place, Fault>> faults_;
  size_t sequence_ = 0;
  std::set<std::string> unchecked_;
  // A run that stops does not end its clusters: their scenes go with the next run or the checker.
  std::map<const sim::Cluster*, std::unique_ptr<Scene>> scenes_;
  std::unique_ptr<Launch> launch_;
};

}  // namespace tw::check
