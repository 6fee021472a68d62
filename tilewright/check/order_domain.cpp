#include "tilewright/check/order_domain.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tilewright/base/format.h"
#include "tilewright/sim/global_memory_impl.h"

namespace tw::check {

using sim::AccessKind;
using sim::Action;
using sim::BarrierEvent;
using sim::Milestone;
using Arrival = SyncOrder::Arrival;
using Object = SyncObject::Kind;
using Domain = OrderRecorder::Domain;

namespace {

constexpr uint32_t kSlice = 2048;

Action run_action(sim::Warp* warp, uint32_t limit) { return {Action::Kind::run, warp, limit, nullptr, {}}; }
Action advance_action(sim::AsyncOp* op, Milestone to) { return {Action::Kind::advance, nullptr, 0, op, to}; }
Action pause_action() { return {Action::Kind::pause, nullptr, 0, nullptr, {}}; }

}  // namespace

Domain::Domain(const Steering& steering, std::set<std::pair<uint32_t, uint64_t>>& spins,
               std::set<std::string>& not_explored, Plan plan, bool together, const sim::Cluster& first)
    : together_(together),
      steering_(steering),
      spins_(spins),
      not_explored_(not_explored),
      plan_(std::move(plan)),
      done_(plan_.items.size(), false),
      warps_(first.warps.size()),
      ctas_(first.ctas.size()),
      order_(
          warps_ * (together ? first.grid.clusters : 1),
          [this](const Step& one, const Step& two, const SyncObject& o) { return describe(one, two, o); },
          [this](uint32_t pc, uint64_t value) {
            return spins_.count({pc, value}) != 0;
          }) {
  const size_t all = warps_ * (together ? first.grid.clusters : 1);
  issued_.resize(all);
  last_commit_.resize(all);
  spun_.resize(all);
  took_.resize(all);
}

void Domain::started(sim::Cluster& cluster) { clusters_[together_ ? cluster.index : 0] = &cluster; }

void Domain::ended(sim::Cluster& cluster) {
  close();
  clusters_.erase(together_ ? cluster.index : 0);
}

SyncTrace Domain::take() {
  words_open_ = false;
  words_.clear();
  return order_.take();
}

uint32_t Domain::place(const sim::Cta& cta) const {
  return static_cast<uint32_t>((together_ ? cta.cluster.index : 0) * ctas_) + cta.rank;
}
ActorKey Domain::key(const sim::Warp& warp) const {
  return (together_ ? warp.cluster().index : 0) * warps_ + warp.cluster().position(warp);
}
sim::Warp* Domain::warp(ActorKey actor) const {
  auto it = clusters_.find(actor / warps_);
  return it == clusters_.end() ? nullptr : it->second->warps[actor % warps_];
}

// ---- steps ----

void Domain::visible(const sim::Warp& warp) {
  const ActorKey k = key(warp);
  const bool fresh = !order_.open() || order_.actor() != k;
  order_.begin(k, warp.pc());
  if (fresh && took_[k]) {
    order_.follow({Object::registers, place(warp.cta()), 0});
    took_[k] = false;
  }
  warp.cluster().warps[warp.cluster().position(warp)]->end_slice();
}

void Domain::close() {
  if (words_open_) apply_words();
  order_.finish();
  step_done();
}

void Domain::step_done() {
  for (; closed_ < order_.steps(); ++closed_) {
    idle_ = tries_ = 0;
    if (at_ == plan_.items.size()) continue;
    const ActorKey actor = order_.step(closed_).actor;
    for (size_t i = at_; i < plan_.items.size(); ++i) {
      if (done_[i] || plan_.items[i].actor != actor) continue;
      done_[i] = true;
      break;
    }
    while (at_ < done_.size() && done_[at_]) ++at_;
  }
}

// What an access of memory was can be told once it has happened.
void Domain::apply_words() {
  const uint16_t flags = steering_.of(words_pc_);
  const bool update =
      words_kind_ == AccessKind::atomic && (flags & Steering::commutes) && !(flags & Steering::steers);
  bool changed = false;
  for (const Word& w : words_) {
    uint32_t now = 0;
    std::memcpy(&now, w.at, 4);
    changed |= now != w.before;
  }
  const bool reads =
      words_kind_ == AccessKind::read || (words_kind_ == AccessKind::atomic && !update && !changed);
  // Commutative operations of one kind only: add with add.
  uint64_t operation = 0;
  if (const ptx::Instruction* inst = current_->grid.program.code.source[words_pc_]; update && inst)
    for (std::string_view op : {"add", "min", "max", "and", "or", "xor"})
      operation += inst->has(op) ? op[0] + op[1] : 0;
  for (const Word& w : words_)
    order_.access(w.object,
                  reads    ? SyncOrder::Access::read
                  : update ? SyncOrder::Access::update
                           : SyncOrder::Access::exclusive,
                  update ? operation : 0, w.before);
  words_.clear();
  words_open_ = false;
}

// After a read that a loop may repeat: lets its warp go on alone, until it stands at the read again or at
// something else that others can notice. A repeated read is no step.
std::optional<Action> Domain::probe() {
  const sim::Warp& w = *probed_;
  bool again = false, final = !w.runnable() || ++probes_ > 64;
  for (const sim::Fragment& f : w.fragments()) {
    if (f.state != sim::Fragment::State::runnable) continue;
    if (f.pc == words_pc_) again = true;
    else final |= steering_.of(f.pc) != 0;
  }
  if (!again && !final) return run_action(probed_, 1);
  if (again) {
    for (const Word& word : words_) spins_.emplace(words_pc_, word.before);
    words_.clear();
    words_open_ = false;
    order_.discard();
    spun_[key(w)] = order_.steps() + 1;
  }
  probed_ = nullptr;
  return std::nullopt;
}

// ---- schedule ----

void Domain::ran(sim::Warp&, uint32_t instructions) { instructions_ += instructions; }

Action Domain::next(sim::Cluster& cluster) {
  current_ = &cluster;
  if (words_open_ && !probed_ && (steering_.of(words_pc_) & Steering::polls)) {
    const bool unchanged = std::all_of(words_.begin(), words_.end(), [](const Word& w) {
      uint32_t now = 0;
      std::memcpy(&now, w.at, 4);
      return now == w.before;
    });
    if (unchanged) probed_ = warp(order_.actor()), probes_ = 0;
  }
  if (probed_)
    if (auto action = probe()) return *action;
  close();
  if (auto action = advance_hidden(cluster)) return *action;
  if (followed_ && at_ < plan_.items.size()) {
    if (const auto choice = planned()) return choice->cluster == &cluster ? perform(*choice) : pause_action();
    followed_ = false;
  }
  return freely(cluster);
}

size_t Domain::pick(std::span<sim::Cluster* const> running) {
  const auto index = [&](const sim::Cluster* c) {
    return static_cast<size_t>(std::find(running.begin(), running.end(), c) - running.begin());
  };
  if (probed_) return index(&probed_->cluster());
  size_t at = current_ ? index(current_) : running.size();
  if (followed_ && at_ < plan_.items.size()) {
    if (words_open_ || order_.open()) {
      if (at < running.size()) return at;
    } else if (const auto choice = planned()) {
      at = index(choice->cluster);
      if (at < running.size()) return at;
    }
    followed_ = false;
  }
  return at < running.size() ? (at + 1) % running.size() : 0;
}

ActorKey Domain::ready(const sim::AsyncOp& op) const {
  auto it = ops_.find(&op);
  if (it == ops_.end()) return 0;
  if (it->second.take && op.milestone() == Milestone::issued) return it->second.take;
  return op.milestone() == Milestone::writes_done ? it->second.signal : 0;
}

// What nobody can tell the order of happens at once.
std::optional<Action> Domain::advance_hidden(sim::Cluster& cluster) {
  for (sim::AsyncOp* op : cluster.advanceable()) {
    if (ready(*op)) continue;
    return advance_action(op, ops_.count(op) ? Milestone::writes_done : Milestone::signalled);
  }
  return std::nullopt;
}

Action Domain::perform(const Choice& choice) {
  if (choice.op) {
    auto it = ops_.find(choice.op);
    const bool take = choice.op->milestone() == Milestone::issued;
    order_.begin(take ? it->second.take : it->second.signal, choice.op->pc);
    if (take) {
      order_.access({Object::launches, 0, 0}, SyncOrder::Access::exclusive);
      order_.issued(it->second.signal);
      return advance_action(choice.op, Milestone::reads_done);
    }
    ops_.erase(it);
    return advance_action(choice.op, Milestone::signalled);
  }
  if (choice.expire) choice.warp->expire_waits();
  return run_action(choice.warp, kSlice);
}

bool Domain::can_run(const sim::Warp& w) const { return w.runnable() && spun_[key(w)] != order_.steps() + 1; }

// The first step of the plan that can be made now. If its actors have to wait for one that has no step in
// the plan, that one goes on, but not the one whose step is to come later.
std::optional<Domain::Choice> Domain::planned() {
  constexpr uint64_t kMany = 20000;
  if (++tries_ > kMany) return std::nullopt;
  std::vector<ActorKey> seen;
  for (size_t i = at_; i < plan_.items.size() && seen.size() < warps_ * 4 + 64; ++i) {
    const auto& item = plan_.items[i];
    if (done_[i] || std::find(seen.begin(), seen.end(), item.actor) != seen.end()) continue;
    seen.push_back(item.actor);
    if (!(item.actor & kOperation)) {
      sim::Warp* w = warp(item.actor);
      if (!w) continue;
      const auto expires = [](const sim::Fragment& f) {
        return f.state == sim::Fragment::State::waiting && f.wait.kind->times_out;
      };
      if (can_run(*w)) return Choice{&w->cluster(), w, nullptr, false};
      if (item.expire && std::any_of(w->fragments().begin(), w->fragments().end(), expires))
        return Choice{&w->cluster(), w, nullptr, true};
      continue;
    }
    for (const auto& [index, cluster] : clusters_)
      for (sim::AsyncOp* op : cluster->advanceable())
        if (ready(*op) == item.actor) return Choice{cluster, nullptr, op, false};
  }
  for (const auto& [index, cluster] : clusters_)
    for (sim::Warp* w : cluster->warps)
      if (can_run(*w) && key(*w) != plan_.held) return Choice{cluster, w, nullptr, false};
  return std::nullopt;
}

// Warps in turn, and signals as soon as they may.
Action Domain::freely(sim::Cluster& cluster) {
  for (sim::AsyncOp* op : cluster.advanceable())
    if (ready(*op)) return perform({&cluster, nullptr, op, false});
  constexpr uint64_t kTurn = 256;
  if (clusters_.size() > 1 && ++actions_ % kTurn == 0) return pause_action();
  const size_t n = cluster.warps.size();
  for (size_t i = 0; i < n; ++i) {
    sim::Warp* w = cluster.warps[(turn_ + i) % n];
    if (!can_run(*w)) continue;
    turn_ = cluster.position(*w) + 1;
    return run_action(w, kSlice);
  }
  // Only warps that poll are left; when they have all done so in vain nothing will change any more.
  sim::Warp* polling = cluster.next_runnable(turn_);
  if (!polling || ++idle_ > 4 * n * clusters_.size() + 64) return nothing(cluster);
  spun_[key(*polling)] = 0;
  if (clusters_.size() > 1 && idle_ % (n + 1) == 0) return pause_action();
  turn_ = cluster.position(*polling) + 1;
  return run_action(polling, kSlice);
}

// A warp that waits for tensor memory may be the loser of another order.
Action Domain::nothing(const sim::Cluster& cluster) {
  for (const auto& [k, pc] : std::exchange(allocating_, {})) {
    const sim::Warp* w = warp(k);
    if (!w || &w->cluster() != &cluster) continue;
    order_.begin(k, pc);
    order_.access({Object::tensor_memory, place(w->cta()), 0}, SyncOrder::Access::exclusive);
    order_.finish();
  }
  return {};
}

// ---- events ----

void Domain::issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t pc) {
  const uint16_t flags = steering_.of(pc);
  if (!(flags & (Steering::registers | Steering::tensor_memory))) return;
  const uint32_t cta = place(warp.cta());
  if (flags & Steering::registers) {
    if (warp.registers == 0) return;  // the launch does not account for them
    visible(warp);
    const SyncObject pool{Object::registers, cta, 0};
    if (inst.has("inc")) {
      grants_[cta].push_back(static_cast<uint32_t>(order_.steps()));
      took_[key(warp)] = true;
      return;
    }
    for (uint32_t grant : grants_[cta])
      if (order_.step(grant).actor != key(warp) && order_.knows(grant))
        not_explored_.insert("orders in which setmaxnreg.inc is granted");
    order_.give(pool);
    return;
  }
  const bool pair = inst.has("cta_group::2");
  if (pair) {
    visible(warp);
    order_.give({Object::tensor_memory, cta / 2, 1});
  }
  if (inst.has("alloc")) allocating_[key(warp)] = pc;
  if (inst.has("relinquish_alloc_permit")) {
    visible(warp);
    order_.access({Object::tensor_memory, cta, 0}, SyncOrder::Access::update);
  }
}

// Told when the allocation is granted, or something is given back.
void Domain::tensor_memory(const sim::Warp& warp) {
  const ptx::Instruction& inst = warp.instruction();
  const uint32_t cta = place(warp.cta());
  visible(warp);
  if (inst.has("cta_group::2")) order_.follow({Object::tensor_memory, cta / 2, 1});
  const bool alloc = inst.has("alloc");
  if (alloc) allocating_.erase(key(warp));
  order_.access({Object::tensor_memory, cta, 0},
                alloc ? SyncOrder::Access::exclusive : SyncOrder::Access::update, 0, 0,
                warp.wake() == sim::Wake::ready);
}

void Domain::access(const sim::Warp& warp, const sim::Access& access) {
  if (!(steering_.of(warp.pc()) & Steering::memory)) return;
  if (access.space != sim::MemorySpace::shared && access.space != sim::MemorySpace::global) return;
  visible(warp);
  words_open_ = true;
  words_kind_ = access.kind;
  words_pc_ = warp.pc();
  for (uint32_t rest = access.lanes; rest; rest &= rest - 1) {
    const uint64_t address = access.addresses[std::countr_zero(rest)];
    for (uint64_t at = address & ~uint64_t{3}; at < address + access.bytes; at += 4) {
      Word w{{Object::memory, 0, at / 4}, nullptr, 0};
      if (access.space == sim::MemorySpace::shared) {
        const auto where = warp.cluster().locate_or_null(static_cast<uint32_t>(at), 4);
        if (!where.cta) continue;
        w.object = {Object::memory, place(*where.cta) + 1, where.offset / 4};
        w.at = where.cta->shared.data() + where.offset;
      } else {
        const sim::Allocation* a = warp.cluster().grid.memory.impl().find(at);
        if (!a || !a->contains(at, 4)) continue;
        w.at = a->data + (at - a->address);
      }
      if (std::any_of(words_.begin(), words_.end(), [&](const Word& o) { return o.object == w.object; }))
        continue;
      uint32_t before = 0;
      std::memcpy(&before, w.at, 4);
      w.before = before;
      words_.push_back(w);
    }
  }
}

// Barriers that wait for all threads no longer wait for these.
void Domain::exited(const sim::Warp& warp) {
  visible(warp);
  const uint32_t cta = place(warp.cta());
  for (uint32_t i = 0; i < warp.cta().barriers.size(); ++i)
    if (const sim::NamedBarrier& b = warp.cta().barriers[i]; b.everyone)
      order_.give({Object::named, cta, i}, b.generation);
  const uint32_t first = static_cast<uint32_t>((together_ ? warp.cluster().index : 0) * ctas_);
  order_.give({Object::cluster, first, 0}, warp.cluster().barrier.generation);
}

void Domain::issued(const sim::AsyncOp& op) {
  ops_.erase(&op);  // of an earlier one at this place
  if (!(steering_.of(op.pc) & Steering::signals)) return;
  const ActorKey w = key(*op.warp);
  visible(*op.warp);
  const ptx::Instruction* inst = op.warp->cluster().grid.program.code.source[op.pc];
  const ActorKey k = kOperation | w << 32 | uint64_t{issued_[w]++} << 1;
  InFlight& flight = ops_[&op];
  flight.signal = k | 1;
  order_.issued(flight.signal);
  if (inst->opcode() == "clusterlaunchcontrol") {
    flight.take = k;
    order_.issued(k);
  }
  // A commit covers what the ones before it cover.
  if (inst->opcode() == "tcgen05") {
    if (last_commit_[w]) order_.chained(flight.signal, last_commit_[w]);
    last_commit_[w] = flight.signal;
  }
}

SyncObject Domain::object(const BarrierEvent& e) const {
  if (e.object == BarrierEvent::Object::cluster)
    return {Object::cluster, static_cast<uint32_t>((together_ ? e.warp->cluster().index : 0) * ctas_), 0};
  return {e.object == BarrierEvent::Object::named ? Object::named : Object::mbarrier, place(*e.cta), e.id};
}

void Domain::barrier(const BarrierEvent& e) {
  using Kind = BarrierEvent::Kind;
  if (e.object == BarrierEvent::Object::warp || e.kind == Kind::wait) return;
  const SyncObject o = object(e);
  const bool decides = !e.op && (steering_.of(e.warp->pc()) & Steering::decides);
  if (o.kind != Object::mbarrier && e.kind == Kind::passed) return order_.resume(key(*e.warp), o, e.phase);
  if (e.kind == Kind::timed_out && !decides) {
    spun_[key(*e.warp)] = order_.steps() + 1;
    return;
  }
  if (!e.op || !order_.open() || !(order_.actor() & kOperation)) visible(*e.warp);
  const uint64_t phase = o.kind == Object::mbarrier ? e.phase + 1 : e.phase;
  switch (e.kind) {
    case Kind::init: return order_.init(o);
    case Kind::invalidate: return order_.invalidate(o);
    case Kind::arrive:
    case Kind::arrive_drop: return order_.arrive(o, phase, Arrival::counted);
    case Kind::complete_tx: return order_.arrive(o, phase, Arrival::transfer);
    case Kind::expect_tx:
    case Kind::increase_pending: return order_.arrive(o, phase, Arrival::adjustment);
    case Kind::complete: return o.kind == Object::mbarrier ? order_.complete(o, phase) : void();
    case Kind::passed: return order_.pass(o, phase, decides);
    case Kind::timed_out: return order_.fail(o, phase);
    case Kind::wait: return;
  }
}

// ---- words for people ----

std::string Domain::describe(const SyncObject& o) const {
  const size_t number = o.kind == Object::memory ? o.place - 1 : o.place;
  const auto it = clusters_.find(number / ctas_);
  const sim::Cta* cta = it == clusters_.end() ? nullptr : it->second->ctas[number % ctas_].get();
  switch (o.kind) {
    case Object::mbarrier:
      return "mbarrier " + (cta ? cta->name_of_shared(static_cast<uint32_t>(o.id)) : std::to_string(o.id));
    case Object::named: return tw::format("barrier {}", o.id);
    case Object::cluster: return "the cluster barrier";
    case Object::tensor_memory: return "tensor memory";
    case Object::launches: return "clusters that have not started";
    case Object::registers: return "the pool of registers";
    case Object::memory: break;
  }
  if (o.place) return cta ? cta->name_of_shared(static_cast<uint32_t>(o.id * 4)) : "shared memory";
  const sim::Allocation* a = current_->grid.memory.impl().find(o.id * 4);
  if (!a || a->name.empty()) return tw::format("global memory at {:#x}", o.id * 4);
  return o.id * 4 == a->address ? a->name : tw::format("{} + {} bytes", a->name, o.id * 4 - a->address);
}

std::string Domain::describe(const Step& s) const {
  const ActorKey by = s.is_op() ? (s.actor & ~kOperation) >> 32 : s.actor;
  const sim::Warp* w = warp(by);
  std::string who = w ? tw::format("{}, warp {}", w->cta().name(), w->index())
                      : tw::format("warp {} of cluster {}", by % warps_, by / warps_);
  const sim::Program::Impl& program = current_->grid.program;
  const ptx::Instruction* inst = s.pc < program.code.source.size() ? program.code.source[s.pc] : nullptr;
  if (!inst) return who;
  if (program.names && inst->role >= 0 && static_cast<size_t>(inst->role) < program.names->roles.size())
    who += ", role " + program.names->roles[static_cast<size_t>(inst->role)];
  const std::string at = inst->loc ? " at " + to_string(inst->loc) : "";
  return s.is_op() ? tw::format("the signal of {}{} ({})", inst->text(), at, who)
                   : tw::format("{}{} ({})", inst->text(), at, who);
}

std::string Domain::describe(const Step& first, const Step& second, const SyncObject& o) const {
  return tw::format("{}: {} before {}", describe(o), describe(second), describe(first));
}

}  // namespace tw::check
