#include <algorithm>
#include <bit>
#include <utility>

#include "tilewright/check/scene.h"
#include "tilewright/sim/grid.h"

// What barriers hand over, and the rules of their use.
namespace tw::check {

using sim::BarrierEvent;
using Kind = BarrierEvent::Kind;
using Object = BarrierEvent::Object;

Checker::Scene::Phase& Checker::Scene::phase(Barrier& barrier, uint64_t number) {
  auto& phases = barrier.phases;
  auto [at, fresh] = phases.try_emplace(number);
  if (!fresh) return at->second;
  at->second.view = View(actors_);
  // Who sees a phase complete knows that those before it have.
  if (at != phases.begin()) {
    at->second.view.join(std::prev(at)->second.view);
    at->second.weak = std::prev(at)->second.weak;
  }
  constexpr size_t kKept = 4;
  while (phases.size() > kKept) phases.erase(phases.begin());
  return phases[number];
}

void Checker::Scene::barrier(const BarrierEvent& e) {
  const sim::Cta* cta = e.object == Object::cluster ? nullptr : e.cta;
  Barrier& b = barriers_[{static_cast<int>(e.object), cta, e.id}];
  if (e.object == Object::mbarrier) {
    places_.event(e);
    byte_counts_.event(e);
  }
  switch (e.kind) {
    case Kind::init:
      b = {};
      b.initialiser = e.warp;
      b.initialised = knowledge(*e.warp).instructions;
      b.pc = e.warp->pc();
      break;
    case Kind::invalidate: b = {}; break;
    case Kind::arrive:
    case Kind::arrive_drop:
    case Kind::complete_tx: arrive(e, b); break;
    case Kind::complete:
      if (e.object == Object::mbarrier) require_no_waiter(e, b);
      break;
    case Kind::passed: {
      auto it = b.phases.find(e.phase);
      if (it == b.phases.end()) break;
      Actor& a = actor(*e.warp, e.lanes);
      if (e.object == Object::mbarrier) require_phase_before(e, b, a.view);
      WarpKnowledge& w = knowledge(*e.warp);
      const Semantics how = semantics_.of(e.warp->pc(), e.warp->instruction());
      acquire(w, a, it->second, how);
      if (&a == &w.some && w.waits.all_came(&it->second, e.lanes, e.warp->live()))
        acquire(w, actor(*e.warp, w.full), it->second, how);
      hear(*e.warp, e.lanes, it->second);
      it->second.waiters.push_back({a.index, a.epoch, e.warp->pc(), e.warp});
      break;
    }
    default: break;
  }
}

void Checker::Scene::arrive(const BarrierEvent& e, Barrier& b) {
  Phase& p = phase(b, e.phase);
  const bool remote = e.object == Object::mbarrier && &e.warp->cta() != e.cta;
  const ptx::Instruction* copies = e.op ? instruction(e.op->pc) : nullptr;
  const bool generic = copies && copies->opcode() == "cp" && !copies->has("bulk");
  if ((e.op && !generic) || remote) require_init_fence(e, b);
  if (e.op) {
    if (&e.op->warp->cta() != e.cta) p.visitor = e.op->pc;
    if (auto it = in_flight_.find(e.op); it != in_flight_.end()) p.operations.push_back(it->second);
    return;
  }
  WarpKnowledge& w = knowledge(*e.warp);
  if (e.object == Object::mbarrier) require_one_phase(e, b);
  // Lanes that arrive together tell it one by one.
  const std::pair<uint64_t, const void*> now{w.instructions, &p};
  if (w.released == now) return;
  w.released = now;
  if (e.object != Object::mbarrier && w.lanes == e.warp->live()) join(w);
  if (remote) {
    const Actor& a = actor(*e.warp, w.lanes);
    visits_[e.cta->rank].arrivals[a.index] = {a.epoch, e.warp->pc()};
  }
  const Actor& a = actor(*e.warp, w.lanes);
  if (e.object == Object::named) require_use_before(e, b, a.view);
  p.arrivals.push_back({a.index, a.epoch, e.warp->pc(), e.warp});
  const Semantics how = semantics_.of(e.warp->pc(), e.warp->instruction());
  release(*e.warp, w.lanes, [&](const View& v) { give(p, v, how, remote, e.warp->pc()); });
}

// "mbarrier.arrive", "barrier.cluster": a relaxed arrival releases only what a fence before it did, and one
// of scope .cta nothing to another CTA. Both complete the phase, so what comes behind it does come later.
void Checker::Scene::give(Phase& phase, const View& view, const Semantics& how, bool remote, uint32_t pc) {
  if (how.releases && !remote) return phase.view.join(view);
  phase.view.join_all_but_ordinary(view);
  if (!how.releases && !remote) {
    const Scope fence = std::max(how.scope, Scope::cta);
    phase.view.ordinary.join(view.published[static_cast<size_t>(fence) - 1]);
  }
  const auto known =
      std::find_if(phase.weak.begin(), phase.weak.end(), [&](const Weak& w) { return w.pc == pc; });
  Weak& weak =
      known != phase.weak.end() ? *known : phase.weak.emplace_back(Weak{how.scope, how.releases, pc, {}, {}});
  weak.gave.join(how.releases ? view.ordinary : view.published[static_cast<size_t>(Scope::cluster) - 1]);
  if (!how.releases) weak.all.join(view.ordinary);
}

void Checker::Scene::acquire(WarpKnowledge& w, Actor& a, const Phase& phase, const Semantics& how) {
  a.view.join_all_but_ordinary(phase.view);
  const auto take = [&](const Clock& gave, Scope needed) {
    if (how.scope < needed) return a.view.narrow.join(gave);
    if (how.acquires) return a.view.ordinary.join(gave);
    a.view.narrow.join(gave);
    w.pending[static_cast<size_t>(needed) - 1].join(gave);
  };
  take(phase.view.ordinary, Scope::cta);
  for (const Weak& weak : phase.weak) {
    if (weak.scope < Scope::cluster) a.view.narrow.join(weak.gave);
    else take(weak.gave, Scope::cluster);
    a.view.narrow.join(weak.all);
  }
  ++a.epoch;
  for (const auto& op : phase.operations) learn(a, *op);
}

// Lanes that arrive together mean one phase: else the count is not that of those who arrive, and what the
// later lanes did is not handed over.
void Checker::Scene::require_one_phase(const BarrierEvent& e, Barrier& b) {
  const uint64_t now = knowledge(*e.warp).instructions;
  const bool split = b.arriving == e.warp && b.instruction == now && b.arriving_phase != e.phase;
  b.arriving = e.warp, b.instruction = now, b.arriving_phase = e.phase;
  if (!split) return;
  const auto at = e.cta->mbarriers().find(e.id);
  if (at != e.cta->mbarriers().end() && at->second.expected() == 1) {
    found(FaultKind::election, e.warp->pc(),
          tw::format("{}: {} lanes of {} arrive, and each completes a phase", e.cta->name_of_shared(e.id),
                     std::popcount(knowledge(*e.warp).lanes), where(*e.warp, e.warp->pc())),
          0, {},
          "let one lane arrive (elect.sync), or initialise the barrier with the number of lanes (PTX ISA, "
          "\"mbarrier.arrive\")");
    return;
  }
  found(FaultKind::lapping, e.warp->pc(),
        tw::format("{}: phase {} completes in the middle of an arrival of {}, whose other lanes count for "
                   "phase {}",
                   e.cta->name_of_shared(e.id), e.phase - 1, where(*e.warp, e.warp->pc()), e.phase),
        0, {},
        "initialise the barrier with the number of threads that arrive in a phase (PTX ISA, "
        "\"mbarrier.init\")");
}

// "mbarrier.init", "fence.mbarrier_init": the async proxy and other CTAs see the object only after a fence.
void Checker::Scene::require_init_fence(const BarrierEvent& e, const Barrier& b) {
  if (!b.initialiser || knowledge(*b.initialiser).init_fence > b.initialised) return;
  const ptx::Instruction* inst = instruction(e.op ? e.op->pc : e.warp->pc());
  found(
      FaultKind::init_fence, b.pc,
      tw::format("{} is initialised without a fence before others than its CTA's threads use it",
                 e.cta->name_of_shared(e.id)),
      e.op ? e.op->pc : e.warp->pc(), tw::format("used here: {}", inst ? inst->text() : "an operation"),
      "execute fence.mbarrier_init.release.cluster after the last mbarrier.init and before the barrier that "
      "publishes it (PTX ISA, \"fence.mbarrier_init\")");
}

// A thread that waits by parity misses a phase when the one after it completes as well: whoever completes a
// phase has to know that the waiters of the one before have seen it.
void Checker::Scene::require_no_waiter(const BarrierEvent& e, Barrier& b) {
  auto before = b.phases.find(e.phase - 1);
  auto now = b.phases.find(e.phase);
  if (e.phase == 0 || before == b.phases.end() || now == b.phases.end()) return;
  Clock known = now->second.view.caused;
  for (const auto& op : now->second.operations) known.join(op->start->caused);
  for (const Waiter& w : before->second.waiters) {
    if (w.epoch <= known[w.actor]) continue;
    const uint32_t completer = e.op ? e.op->pc : e.warp->pc();
    found(FaultKind::lapping, w.pc,
          tw::format(
              "{}: phase {} may complete while {} still waits for phase {}: by its parity it then waits for "
              "the wrong one",
              e.cta->name_of_shared(e.id), e.phase, where(*w.warp, w.pc), e.phase - 1),
          completer, "the next phase is completed here",
          "let every waiter arrive on a barrier that whoever completes the next phase waits for");
  }
}

// Whether a warp with this view knows that a phase is complete: it, or someone whose word it has, saw that;
// or it has the word of all that the phase waited for.
bool Checker::Scene::knows_complete(const Phase& p, const sim::Warp& warp, const View& view) const {
  const auto known = [&](const Waiter& w) { return w.warp == &warp || w.epoch <= view.caused[w.actor]; };
  return std::any_of(p.waiters.begin(), p.waiters.end(), known) ||
         (std::all_of(p.arrivals.begin(), p.arrivals.end(), known) &&
          std::all_of(p.operations.begin(), p.operations.end(),
                      [&](const auto& op) { return op->over(false, view.caused); }));
}

// A wait by parity ends at once while the phase before the wanted one is open: whoever waits has to know that
// it is over ("mbarrier.test_wait": only the current and the preceding phase can be told apart).
void Checker::Scene::require_phase_before(const BarrierEvent& e, const Barrier& b, const View& view) {
  if (e.phase == 0 || !e.warp->instruction().has("parity")) return;
  const auto before = b.phases.find(e.phase - 1);
  if (before == b.phases.end() || knows_complete(before->second, *e.warp, view)) return;
  found(FaultKind::unobserved, e.warp->pc(),
        tw::format("{}: {} waits for phase {} and may not know that phase {} is complete; before that the "
                   "wait ends at once",
                   e.cta->name_of_shared(e.id), where(*e.warp, e.warp->pc()), e.phase, e.phase - 1),
        0, {},
        "wait for every phase, or let whoever saw the one before hand over (PTX ISA, \"mbarrier.test_wait, "
        "mbarrier.try_wait\")");
}

// An arrival at a named barrier counts for the use that is open: whoever arrives for the next one has to know
// that the last is complete ("barrier": arrivals of one use are not told from those of another).
void Checker::Scene::require_use_before(const BarrierEvent& e, const Barrier& b, const View& view) {
  if (e.phase == 0) return;
  const auto before = b.phases.find(e.phase - 1);
  if (before == b.phases.end() || knows_complete(before->second, *e.warp, view)) return;
  const Waiter& earlier = before->second.arrivals.front();
  found(FaultKind::named_barrier, e.warp->pc(),
        tw::format("barrier {}: {} arrives for use {} and may not know that use {} is complete; it may be "
                   "counted for that one",
                   e.id, where(*e.warp, e.warp->pc()), e.phase, e.phase - 1),
        earlier.pc, tw::format("use {}: {} arrives here", e.phase - 1, where(*earlier.warp, earlier.pc)),
        "give each hand-shake a barrier of its own, or alternate two whose other side meets in between (PTX "
        "ISA, \"bar, barrier\")");
}

// ---- the end of a CTA ----

// An operation of a peer signals a barrier here: someone must have seen that before the barrier goes away.
void Checker::Scene::require_signals_seen(const sim::Cta& cta, const View& at_end) {
  for (const auto& [key, b] : barriers_) {
    if (std::get<1>(key) != &cta || std::get<0>(key) != static_cast<int>(Object::mbarrier)) continue;
    bool seen = false;  // whoever sees a phase complete knows that those before it have
    for (auto p = b.phases.rbegin(); p != b.phases.rend(); ++p) {
      for (const Waiter& w : p->second.waiters) seen |= w.epoch <= at_end.caused[w.actor];
      if (seen || p->second.visitor == 0) continue;
      found(FaultKind::exit, p->second.visitor,
            tw::format("the signal of another CTA to {} may come after {} has ended",
                       cta.name_of_shared(std::get<2>(key)), cta.name()),
            0, {}, "wait for the barrier's last phase before leaving");
    }
  }
}

void Checker::Scene::exited(const sim::Warp& warp) {
  if (warp.live() != 0) return;
  WarpKnowledge& w = knowledge(warp);
  Visits& visits = visits_[warp.cta().rank];
  for (Actor* a : {&w.all, &w.some}) {
    a->note_present();
    visits.at_end.join(a->view);
  }
  if (const auto pc = w.bulk.unwaited())
    found(FaultKind::exit, *pc,
          tw::format("a copy from shared memory may still read it when {} has ended", where(warp, *pc)), 0,
          {}, "wait with cp.async.bulk.wait_group.read 0 before the thread ends");
  if (warp.cta().live_threads() != 0) return;
  for (const auto& [actor, last] : visits.arrivals)
    if (last.first > std::max(visits.at_end.ordinary[actor], visits.at_end.narrow[actor]))
      found(FaultKind::exit, last.second,
            tw::format("an arrival from another CTA may reach {} after it has ended", warp.cta().name()), 0,
            {}, "meet at a cluster barrier before leaving");
  for (const auto& [actor, last] : visits.accesses)
    if (last.first > std::max(visits.at_end.ordinary[actor], visits.at_end.narrow[actor])) {
      const ptx::Instruction* inst = instruction(last.second);
      found(FaultKind::exit, last.second,
            tw::format("{} of another CTA may reach {} after it has ended", inst ? inst->text() : "an access",
                       warp.cta().name()),
            0, {}, "meet at a cluster barrier before leaving");
    }
  require_signals_seen(warp.cta(), visits.at_end);
  if (cluster_.in_flight() == 0) byte_counts_.ended(warp.cta());
  register_plan_.ended(warp.cta());
  for (const auto& op : visits.copies)
    if (!op->over(false, visits.at_end.caused))
      found(FaultKind::exit, op->pc,
            tw::format("{} may still write the shared memory of {} when it has ended", op->what,
                       warp.cta().name()),
            0, {}, "wait for every copy before leaving, also for one whose bytes nobody needs");
  for (const auto& op : visits.operations)
    if (!op->over(false, visits.at_end.caused))
      found(FaultKind::exit, op->pc,
            tw::format("{} from another CTA may reach {} after it has ended", op->what, warp.cta().name()), 0,
            {}, "wait for it, or meet at a cluster barrier, before leaving");
}

}  // namespace tw::check
