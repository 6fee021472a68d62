#include "tilewright/check/checker.h"

#include "tilewright/check/scene.h"

namespace tw::check {

Checker::Checker() = default;
Checker::~Checker() = default;

Checker::Scene& Checker::of(const sim::Warp& warp) {
  return *static_cast<Scene*>(warp.cluster().observer_data);
}

void Checker::schedule(std::string name) {
  std::lock_guard lock(mutex_);
  schedule_ = name;
  report_.schedules.push_back(std::move(name));
}

void Checker::found(Fault fault, std::string one, std::string two) {
  std::lock_guard lock(mutex_);
  if (two < one) std::swap(one, two);  // which came first is chance
  if (!known_.emplace(fault.kind, std::move(one), std::move(two)).second) return;
  fault.schedule = schedule_;
  report_.faults.push_back(std::move(fault));
}

void Checker::found(Fault fault) {
  std::string place = fault.loc ? to_string(fault.loc) : fault.message;
  found(std::move(fault), std::move(place), {});
}

void Checker::not_checked(std::string what) {
  std::lock_guard lock(mutex_);
  unchecked_.insert(std::move(what));
}

bool Checker::take(const Error& error) {
  if (error.kind() == ErrorKind::not_modelled) {
    not_checked(error.what());
    return true;
  }
  if (error.kind() != ErrorKind::fault) return false;
  Fault f;
  f.kind = error.message().find("deadlock") != std::string::npos ? FaultKind::deadlock : FaultKind::undefined;
  f.message = error.message();
  f.loc = error.loc();
  f.notes = error.notes();
  std::lock_guard lock(mutex_);
  for (const Fault& known : report_.faults)
    if (known.kind == f.kind && known.loc == f.loc) return true;
  f.schedule = schedule_;
  report_.faults.push_back(std::move(f));
  return true;
}

CheckReport Checker::report() const {
  std::lock_guard lock(mutex_);
  CheckReport r = report_;
  r.not_checked.assign(unchecked_.begin(), unchecked_.end());
  r.verdict = !r.faults.empty()        ? Verdict::faults
              : !r.not_checked.empty() ? Verdict::incomplete
                                       : Verdict::clean;
  return r;
}

void Checker::cluster_begin(sim::Cluster& cluster) {
  auto scene = std::make_unique<Scene>(*this, cluster);
  cluster.observer_data = scene.get();
  std::lock_guard lock(mutex_);
  scenes_[&cluster] = std::move(scene);
}

void Checker::cluster_end(sim::Cluster& cluster) {
  cluster.observer_data = nullptr;
  std::lock_guard lock(mutex_);
  scenes_.erase(&cluster);
}

void Checker::issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t, uint32_t lanes) {
  of(warp).issue(warp, inst, lanes);
}
void Checker::access(const sim::Warp& warp, const sim::Access& access) { of(warp).access(warp, access); }
void Checker::fence(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  of(warp).fence(warp, inst, lanes);
}
void Checker::waited(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  of(warp).waited(warp, inst, lanes);
}
void Checker::tensor_memory(const sim::Warp& warp, int column, int columns) {
  of(warp).tensor_memory(warp, column, columns);
}
void Checker::warp_state(const sim::Warp& warp, sim::WarpState state, uint32_t lanes) {
  if (state == sim::WarpState::started) of(warp).started(warp, lanes);
  if (state == sim::WarpState::exited) of(warp).exited(warp);
}
void Checker::async_issued(const sim::AsyncOp& op) { of(*op.warp).issued(op); }
void Checker::async_access(const sim::AsyncOp& op, const sim::AsyncAccess& access) {
  of(*op.warp).access(op, access);
}
void Checker::async_reached(const sim::AsyncOp& op, sim::Milestone milestone) {
  if (milestone == sim::Milestone::signalled) of(*op.warp).signalled(op);
}
void Checker::barrier(const sim::BarrierEvent& event) {
  if (event.warp) of(*event.warp).barrier(event);
}

}  // namespace tw::check
