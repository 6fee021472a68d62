#include "tilewright/check/sync_order.h"

#include <algorithm>

namespace tw::check {

// ---- steps ----

void SyncOrder::begin(ActorKey actor, uint32_t pc) {
  if (open_ && now_.actor == actor) return;
  if (open_) finish();
  open_ = true;
  now_ = {};
  now_.actor = actor;
  now_.pc = pc;
  found_.clear();
  if (now_.is_op()) {
    now_.op = static_cast<uint32_t>(trace_.ops.size());
    trace_.ops.push_back(actor);
    past_ = starts_[actor];
    if (auto it = chain_.find(actor); it != chain_.end())
      if (const Step* before = trace_.find(it->second, 0)) past_.join(*before->past);
    past_.add_op(now_.op);
  } else {
    past_ = warps_[actor];
    now_.index = past_.of_warp(actor);
    past_.set_warp(actor, now_.index + 1);
  }
}

void SyncOrder::finish() {
  if (!open_) return;
  open_ = false;
  uint64_t before = 0;
  const auto add = [&](ActorKey actor, uint32_t index) {
    if (const Step* s = trace_.find(actor, index)) before += mix(s->hash, mix(actor, index));
  };
  for (size_t w = 0; w < past_.warps().size(); ++w) {
    const uint32_t steps = past_.warps()[w] - (w == now_.actor ? 1 : 0);
    if (steps && past_.warps()[w]) add(w, steps - 1);
  }
  past_.each_op([&](size_t op) { add(trace_.ops[op], 0); });
  now_.hash = mix(mix(now_.actor, now_.index), mix(mix(now_.pc, now_.hash), before));
  now_.past = std::make_shared<const Past>(past_);
  for (const auto& [object, number] : given_)
    if (Phase* p = find(barriers_[object], number)) p->view.join(past_);
  given_.clear();
  if (!now_.is_op()) {
    // The last to arrive goes on at once, the others later: that makes no difference to what they know.
    for (const auto& [object, number] : behind_) follow(object, number);
    warps_[now_.actor] = past_;
  }
  behind_.clear();
  trace_.by_actor[now_.actor].push_back(id());
  trace_.steps.push_back(now_);
}

SyncTrace SyncOrder::take() {
  finish();
  return std::move(trace_);
}

void SyncOrder::issued(ActorKey op) { starts_[op] = past_; }
void SyncOrder::chained(ActorKey op, ActorKey after) { chain_[op] = after; }

// ---- conflicts ----

bool SyncOrder::knows(const Past& past, const Step& s) {
  return s.is_op() ? past.has_op(s.op) : past.of_warp(s.actor) > s.index;
}

bool SyncOrder::known(uint32_t earlier) const {
  if (earlier == id()) return true;
  return knows(past_, trace_.steps[earlier]);
}

// The open step comes after one that it does not commute with.
void SyncOrder::conflict(uint32_t earlier, const SyncObject& o, bool expire) {
  if (known(earlier)) return;
  reversal(earlier, id(), o, expire);
  past_.join(*trace_.steps[earlier].past);
}

// The newest first: what it follows is no neighbour of the open step.
void SyncOrder::conflicts(const std::vector<uint32_t>& earlier, const SyncObject& o) {
  for (size_t i = earlier.size(); i-- > 0;) conflict(earlier[i], o);
}

void SyncOrder::reversal(uint32_t earlier, uint32_t later, const SyncObject& o, bool expire) {
  if (std::find(found_.begin(), found_.end(), std::pair(earlier, later)) != found_.end()) return;
  found_.emplace_back(earlier, later);
  const Step& first = trace_.steps[earlier];
  const Step& second = later == id() ? now_ : trace_.steps[later];
  SyncObject named = o;
  if (o.kind == SyncObject::Kind::memory) named.id = 0;
  auto& text = texts_[{first.pc, second.pc, named}];
  if (!text) text = std::make_shared<const std::string>(describe_(first, second, o));
  trace_.reversals.push_back({earlier, later, expire, text});
}

void SyncOrder::note(const SyncObject& o, uint64_t what, uint64_t phase) {
  now_.hash = mix(now_.hash, mix(mix(static_cast<uint64_t>(o.kind) << 32 | o.place, o.id), mix(what, phase)));
}

// ---- barriers ----

SyncOrder::Phase* SyncOrder::find(Barrier& b, uint64_t number) {
  for (Phase& p : b.phases)
    if (p.number == number) return &p;
  return nullptr;
}

SyncOrder::Phase& SyncOrder::phase(const SyncObject& o, uint64_t number) {
  Barrier& b = barriers_[o];
  if (Phase* p = find(b, number)) return *p;
  Phase fresh;
  fresh.number = number;
  // Who sees a phase complete knows that those before it have.
  if (!b.phases.empty()) fresh.view = b.phases.back().view;
  b.phases.push_back(std::move(fresh));
  constexpr size_t kKept = 4;
  if (b.phases.size() > kKept) b.phases.pop_front();
  return b.phases.back();
}

// Before its initialisation a barrier cannot be used at all.
SyncOrder::Barrier& SyncOrder::initialised(const SyncObject& o) {
  Barrier& b = barriers_[o];
  if (b.init >= 0) conflict(static_cast<uint32_t>(b.init), o);
  return b;
}

void SyncOrder::init(const SyncObject& o) {
  note(o, 1, 0);
  Barrier& b = barriers_[o] = {};
  b.init = id();
  b.phases.emplace_back();  // number 0: what a wait for the phase before the first sees
}

void SyncOrder::invalidate(const SyncObject& o) {
  note(o, 2, 0);
  for (Phase& p : initialised(o).phases) {
    conflicts(p.counted, o);
    conflicts(p.transfers, o);
    conflicts(p.passes, o);
  }
  barriers_[o] = {};
}

void SyncOrder::arrive(const SyncObject& o, uint64_t number, Arrival how) {
  note(o, 3 + static_cast<uint64_t>(how), number);
  Barrier& b = initialised(o);
  if (Phase* before = number ? find(b, number - 1) : nullptr) {
    conflicts(before->counted, o);
    conflicts(before->transfers, o);
  }
  Phase& p = phase(o, number);
  auto& list = how == Arrival::counted ? p.counted : how == Arrival::transfer ? p.transfers : p.adjustments;
  if (list.empty() || list.back() != id()) list.push_back(id());
  give(o, number);
}

void SyncOrder::complete(const SyncObject& o, uint64_t number) {
  Barrier& b = barriers_[o];
  if (Phase* before = number ? find(b, number - 1) : nullptr) conflicts(before->passes, o);
  Phase& p = phase(o, number);
  conflicts(p.fails, o);
  protect(p, o);
  p.completer = id();
}

// What a phase expects was adjusted in it: was there an arrival that had to come later? Otherwise the phase
// might have been complete before.
void SyncOrder::protect(const Phase& p, const SyncObject& o) {
  for (uint32_t a : p.adjustments) {
    const auto follows = [&](uint32_t arrival) {
      if (arrival == a) return true;
      if (arrival == id()) return known(a);
      return a != id() && trace_.follows(trace_.steps[arrival], trace_.steps[a]);
    };
    if (p.counted.empty() || std::any_of(p.counted.begin(), p.counted.end(), follows)) continue;
    const uint32_t last = p.counted.back();
    if (a < last) reversal(a, last, o, false);
  }
}

void SyncOrder::pass(const SyncObject& o, uint64_t number, bool decides) {
  note(o, 6, number);
  Phase* p = find(initialised(o), number);
  if (!p) return;
  if (decides && p->completer >= 0) conflict(static_cast<uint32_t>(p->completer), o, true);
  past_.join(p->view);
  p->passes.push_back(id());
}

void SyncOrder::resume(ActorKey warp, const SyncObject& o, uint64_t number) {
  if (open_ && now_.actor == warp) behind_.emplace_back(o, number);
  else if (Phase* p = find(barriers_[o], number)) warps_[warp].join(p->view);
}

void SyncOrder::fail(const SyncObject& o, uint64_t number) {
  note(o, 7, number);
  Barrier& b = initialised(o);
  if (Phase* before = number ? find(b, number - 1) : nullptr; before && before->completer >= 0)
    conflict(static_cast<uint32_t>(before->completer), o);
  phase(o, number).fails.push_back(id());
}

void SyncOrder::give(const SyncObject& o, uint64_t number) {
  phase(o, number);
  given_.emplace_back(o, number);
}

void SyncOrder::follow(const SyncObject& o, uint64_t number) {
  if (Phase* p = find(barriers_[o], number)) past_.join(p->view);
}

// ---- memory, allocations ----

// What makes an access possible (the write that a polling read waits for, the memory given back that an
// allocation waited for) comes before it in every order; then it competes with what came before that.
void SyncOrder::access(const SyncObject& o, Access how, uint64_t operation, uint64_t before, bool waited) {
  note(o, 8 + static_cast<uint64_t>(how), operation);
  // Whether memory that was given back was needed is not known: both sides of it count.
  const bool allocates = o.kind == SyncObject::Kind::tensor_memory;
  Past neighbours = past_;  // what it follows without anything it waited for
  auto& list = touches_[o];
  for (size_t i = list.size(); i-- > 0;) {
    const Touch& t = list[i];
    if (t.step == id()) continue;
    const bool commute =
        how == t.how && how != Access::exclusive && (how == Access::read || t.operation == operation);
    if (commute) continue;
    const Step& earlier = trace_.steps[t.step];
    const bool enables =
        (t.how != Access::read && spins_(now_.pc, t.before)) || (waited && t.how == Access::update);
    if (!enables) {
      if (!knows(neighbours, earlier)) reversal(t.step, id(), o, false);
      if (!(allocates && t.how == Access::update)) neighbours.join(*earlier.past);
    }
    past_.join(*earlier.past);
    if (t.how == Access::exclusive && !enables) break;  // whatever came before it is in its past
  }
  if (how != Access::exclusive)  // the newest of an actor stands for those before it
    std::erase_if(list, [&](const Touch& t) {
      return t.how == how && t.operation == operation &&
             (t.step == id() || trace_.steps[t.step].actor == now_.actor);
    });
  else if (!list.empty() && list.back().step == id() && list.back().how == how) return;
  list.push_back({id(), how, operation, before});
  constexpr size_t kKept = 256;
  if (list.size() > kKept) list.erase(list.begin());
}

}  // namespace tw::check
