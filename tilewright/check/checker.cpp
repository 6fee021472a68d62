#include "tilewright/check/checker.h"

#include <algorithm>

#include "tilewright/check/global.h"
#include "tilewright/check/scene.h"

namespace tw::check {
namespace {

FaultKind kind_of(const Error& stopped) {
  if (stopped.kind() == ErrorKind::deadlock) return FaultKind::deadlock;
  return stopped.cause() == Cause::exited ? FaultKind::exit : FaultKind::undefined;
}

}  // namespace

Checker::Checker() = default;
Checker::~Checker() = default;

Checker::Scene& Checker::of(const sim::Warp& warp) {
  return *static_cast<Scene*>(warp.cluster().observer_data);
}

void Checker::schedule(std::string name) {
  std::lock_guard lock(mutex_);
  ++runs_;
  schedule_ = name;
  schedules_.push_back(std::move(name));
}

void Checker::under_order(std::string name) {
  std::lock_guard lock(mutex_);
  ++runs_;
  schedule_ = std::move(name);
}

void Checker::found(Fault fault, std::string one, std::string two, uint64_t cluster) {
  std::lock_guard lock(mutex_);
  if (two < one) std::swap(one, two);  // which came first is chance
  const FaultKind kind = fault.kind;
  add(std::move(fault), {kind, std::move(one), std::move(two)}, cluster);
}

// Clusters run on several host threads: what is kept must not depend on which came first.
void Checker::add(Fault fault, std::tuple<FaultKind, std::string, std::string> key, uint64_t cluster) {
  const Place place{runs_, cluster, sequence_++};
  const auto [at, fresh] = faults_.try_emplace(std::move(key), place, Fault());
  auto& [known, kept] = at->second;
  if (!fresh && place >= known) return;
  fault.schedule = schedule_;
  known = place;
  kept = std::move(fault);
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
  if (error.kind() != ErrorKind::fault && error.kind() != ErrorKind::deadlock) return false;
  Fault f;
  f.kind = kind_of(error);
  f.message = error.message();
  f.loc = error.loc();
  f.notes = error.notes();
  if (error.cause() == Cause::unwritten)
    f.notes.push_back(
        {{},
         "if another thread or a copy fills it, nothing makes that come first in every run: wait for it"});
  std::lock_guard lock(mutex_);
  const FaultKind kind = f.kind;
  std::string where = f.loc ? to_string(f.loc) : "";
  add(std::move(f), {kind, std::move(where), "stopped"}, kBetween);
  return true;
}

CheckReport Checker::report() const {
  std::lock_guard lock(mutex_);
  CheckReport r;
  r.schedules = schedules_;
  std::vector<std::pair<Place, const Fault*>> in_order;
  for (const auto& [key, entry] : faults_) in_order.emplace_back(entry.first, &entry.second);
  std::sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, fault] : in_order)
    (severity(fault->kind) == Severity::remark ? r.remarks : r.faults).push_back(*fault);
  r.not_checked.assign(unchecked_.begin(), unchecked_.end());
  r.verdict = !r.faults.empty()        ? Verdict::faults
              : !r.not_checked.empty() ? Verdict::incomplete
                                       : Verdict::clean;
  return r;
}

void Checker::launch_begin(const sim::Grid& grid) { launch_ = std::make_unique<Launch>(*this, grid); }
void Checker::launch_end() {
  launch_->finish();
  launch_.reset();
}

void Checker::cluster_begin(sim::Cluster& cluster) {
  auto scene = std::make_unique<Scene>(*this, *launch_, cluster);
  cluster.observer_data = scene.get();
  std::lock_guard lock(mutex_);
  scenes_[&cluster] = std::move(scene);
}

void Checker::cluster_end(sim::Cluster& cluster) {
  launch_->ended(cluster.index, static_cast<Scene*>(cluster.observer_data)->take_global());
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
