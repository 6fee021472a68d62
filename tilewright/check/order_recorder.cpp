#include "tilewright/check/order_recorder.h"

#include "tilewright/check/order_domain.h"

namespace tw::check {

OrderRecorder::OrderRecorder(sim::Observer& next) : next_(next) {}
OrderRecorder::~OrderRecorder() = default;

void OrderRecorder::begin_run(std::map<DomainKey, Plan> plans) {
  plans_ = std::move(plans);
  domains_.clear();
  domain_of_.clear();
  steering_.clear();
  last_ = nullptr;
  launch_ = 0;
}

std::vector<OrderRecorder::Recorded> OrderRecorder::end_run() {
  std::vector<Recorded> all;
  for (auto& [key, domain] : domains_) {
    const bool followed = domain->followed();
    all.push_back({key, domain->take(), followed});
  }
  return all;
}

uint64_t OrderRecorder::instructions() const {
  uint64_t most = 0;
  for (const auto& [key, domain] : domains_) most = std::max(most, domain->instructions());
  return most;
}

OrderRecorder::Domain& OrderRecorder::of(const sim::Cluster& cluster) {
  if (last_ != &cluster) {
    last_ = &cluster;
    last_domain_ = domain_of_.at(&cluster);
  }
  return *last_domain_;
}

// ---- schedules ----

class OrderRecorder::ClusterSchedule final : public sim::Scheduler {
 public:
  explicit ClusterSchedule(Domain& domain) : domain_(domain) {}
  sim::Action next(sim::Cluster& cluster) override { return domain_.next(cluster); }
  void ran(sim::Warp& warp, uint32_t instructions) override { domain_.ran(warp, instructions); }

 private:
  Domain& domain_;
};

std::unique_ptr<sim::Scheduler> OrderRecorder::make(sim::Cluster& cluster) {
  return std::make_unique<ClusterSchedule>(of(cluster));
}

size_t OrderRecorder::pick(std::span<sim::Cluster* const> running) {
  return of(*running.front()).pick(running);
}

// ---- events ----

void OrderRecorder::launch_begin(const sim::Grid& grid) {
  ++launch_;
  next_.launch_begin(grid);
}
void OrderRecorder::launch_end() { next_.launch_end(); }

void OrderRecorder::cluster_begin(sim::Cluster& cluster) {
  const sim::Grid& grid = cluster.grid;
  const bool together = grid.program.ordered && grid.clusters > 1;
  const DomainKey key{launch_, together ? DomainKey::kAll : cluster.index};
  auto& domain = domains_[key];
  if (!domain) {
    auto& steering = steering_[launch_];
    if (!steering) steering = std::make_unique<Steering>(grid.program);
    auto plan = plans_.find(key);
    domain =
        std::make_unique<Domain>(*steering, spins_, not_explored_,
                                 plan == plans_.end() ? Plan{} : std::move(plan->second), together, cluster);
  }
  domain->started(cluster);
  domain_of_[&cluster] = domain.get();
  last_ = nullptr;
  next_.cluster_begin(cluster);
}

void OrderRecorder::cluster_end(sim::Cluster& cluster) {
  of(cluster).ended(cluster);
  next_.cluster_end(cluster);
}

void OrderRecorder::issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t pc, uint32_t lanes) {
  if (lanes) of(warp.cluster()).issue(warp, inst, pc);
  next_.issue(warp, inst, pc, lanes);
}
void OrderRecorder::access(const sim::Warp& warp, const sim::Access& access) {
  of(warp.cluster()).access(warp, access);
  next_.access(warp, access);
}
void OrderRecorder::fence(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  next_.fence(warp, inst, lanes);
}
void OrderRecorder::waited(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  next_.waited(warp, inst, lanes);
}
void OrderRecorder::tensor_memory(const sim::Warp& warp, int column, int columns) {
  of(warp.cluster()).tensor_memory(warp);
  next_.tensor_memory(warp, column, columns);
}
void OrderRecorder::warp_state(const sim::Warp& warp, sim::WarpState state, uint32_t lanes) {
  if (state == sim::WarpState::exited && warp.live() == 0) of(warp.cluster()).exited(warp);
  next_.warp_state(warp, state, lanes);
}
void OrderRecorder::async_issued(const sim::AsyncOp& op) {
  of(op.warp->cluster()).issued(op);
  next_.async_issued(op);
}
void OrderRecorder::async_access(const sim::AsyncOp& op, const sim::AsyncAccess& access) {
  next_.async_access(op, access);
}
void OrderRecorder::async_reached(const sim::AsyncOp& op, sim::Milestone milestone) {
  next_.async_reached(op, milestone);
}
void OrderRecorder::barrier(const sim::BarrierEvent& event) {
  if (event.warp) of(event.warp->cluster()).barrier(event);
  next_.barrier(event);
}

}  // namespace tw::check
