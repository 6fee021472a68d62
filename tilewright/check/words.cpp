#include "tilewright/check/scene.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/tensor_memory.h"

// What the checker says.
namespace tw::check {

using sim::BarrierEvent;

std::string Checker::Scene::name_of(const sim::Cta& cta, bool tensor, uint64_t at) const {
  if (!tensor) return cta.name_of_shared(static_cast<uint32_t>(at));
  const auto column = at / sim::TensorMemory::kLanes;
  if (const auto& names = cluster_.grid.program.names) {
    for (const ptx::Region& r : names->tensor_memory)
      if (column >= r.begin && column < r.end) return tw::format("{}, column {}", r.name, column - r.begin);
  }
  return tw::format("tensor memory column {}", column);
}

std::string Checker::Scene::describe(const Stamp& s) const {
  const ptx::Instruction* inst = instruction(s.pc);
  const std::string what = s.op ? s.op->what : inst ? inst->text() : "an access";
  return tw::format("{} {} it ({})", what, s.write ? "writes" : "reads", where(*s.warp, s.pc));
}

// The arrival that hands `earlier` over only in part.
std::string Checker::Scene::too_narrow(const Stamp& earlier) const {
  for (const auto& [key, barrier] : barriers_)
    for (const auto& [number, phase] : barrier.phases)
      for (const Weak& w : phase.weak) {
        if (std::max(w.gave[earlier.actor], w.all[earlier.actor]) < earlier.epoch) continue;
        const ptx::Instruction* inst = instruction(w.pc);
        const std::string what =
            inst ? tw::format("{} at {}", inst->text(), to_string(inst->loc)) : "an arrival";
        if (!w.releases) return what + " is relaxed, and no fence before it releases";
        if (w.scope < Scope::cluster) return what + " releases at scope .cta, to another CTA";
        return what + " releases at scope .cluster, but the wait acquires at .cta";
      }
  return "a wait on the way is relaxed, or its scope too small";
}

std::string Checker::Scene::where(const sim::Warp& warp, uint32_t pc) const {
  const ptx::Instruction* inst = instruction(pc);
  std::string role;
  const auto& names = cluster_.grid.program.names;
  if (inst && names && inst->role >= 0 && static_cast<size_t>(inst->role) < names->roles.size())
    role = tw::format(", role {}", names->roles[static_cast<size_t>(inst->role)]);
  return tw::format("{}, warp {}{}", warp.cta().name(), warp.index(), role);
}

// Which barrier was told of the earlier access, so that the later thread could have waited for it.
std::string Checker::Scene::hand_over_of(const Stamp& earlier, const Stamp& later) const {
  for (const auto& [key, barrier] : barriers_) {
    const auto& [object, cta, id] = key;
    if (static_cast<BarrierEvent::Object>(object) != BarrierEvent::Object::mbarrier) continue;
    for (const auto& [number, phase] : barrier.phases) {
      bool told = earlier.op ? earlier.op->over(!earlier.write, phase.view.caused)
                             : phase.view.ordinary[earlier.actor] >= earlier.epoch;
      for (const auto& op : phase.operations)
        told |=
            earlier.op && earlier.op->done && op->done == earlier.op->done && op->index >= earlier.op->index;
      if (told)
        return tw::format(
            "{} is signalled after the earlier access (phase {}), but {} has not waited for that",
            cta->name_of_shared(id), number, where(*later.warp, later.pc));
    }
  }
  return earlier.op
             ? "no barrier has been told of its completion: wait for that (mbarrier, group or wait) first"
             : "no mbarrier has been told of it: the earlier thread arrives on a barrier, the later one "
               "waits";
}

void Checker::Scene::found(FaultKind kind, uint32_t pc, std::string message, uint32_t other,
                           std::string other_text, std::string advice) {
  Fault f;
  f.kind = kind;
  f.message = std::move(message);
  if (const ptx::Instruction* inst = instruction(pc)) f.loc = inst->loc;
  const ptx::Instruction* second = other_text.empty() ? nullptr : instruction(other);
  if (!other_text.empty()) f.notes.push_back({second ? second->loc : SourceLoc{}, std::move(other_text)});
  f.notes.push_back({{}, std::move(advice)});
  const auto place = [this](uint32_t at) {
    const ptx::Instruction* inst = instruction(at);
    return inst && inst->loc ? to_string(inst->loc) : std::to_string(at);
  };
  const std::string one = place(pc), two = f.notes.size() > 1 ? place(other) : one;
  owner_.found(std::move(f), one, two, cluster_.index);
}

Report Checker::Scene::reporter() {
  return [this](Finding f) {
    found(f.kind, f.pc, std::move(f.message), f.other, std::move(f.other_text), std::move(f.advice));
  };
}

// The proxy fence that such memory needs behind the earlier access.
std::string Checker::Scene::fence_for(const Stamp& earlier, size_t space) const {
  if (space == spaces_.global())
    return "fence.proxy.async or fence.proxy.async.global (one for shared memory orders no global memory)";
  if (space != spaces_.shared(earlier.warp->cta().rank))
    return "fence.proxy.async or fence.proxy.async.shared::cluster (.shared::cta orders the shared memory of "
           "their own CTA alone)";
  return "fence.proxy.async";
}

void Checker::Scene::report(Order how, const Stamp& earlier, const Stamp& later, size_t space,
                            const std::string& place) {
  if (!reported_.emplace(how, earlier.pc, later.pc).second) return;
  const std::string what = describe(later);
  FaultKind kind = FaultKind::race;
  std::string message, advice;
  switch (how) {
    case Order::ordered:
    case Order::lanes: return;  // two lanes have a report of their own
    case Order::unordered:
      message = tw::format("{}: {}, and nothing orders this after an earlier access", place, what);
      advice = hand_over_of(earlier, later);
      break;
    case Order::narrow:
      kind = FaultKind::scope;
      message =
          tw::format("{}: {} after an earlier write, but what orders them need not make that visible: {}",
                     place, what, too_narrow(earlier));
      advice =
          "release and acquire at a scope that both threads belong to: mbarrier.arrive.release.cluster and "
          "mbarrier.try_wait.acquire.cluster between CTAs of a cluster (PTX ISA, \"Scope\")";
      break;
    case Order::no_proxy_fence:
      kind = FaultKind::proxy_fence;
      if (earlier.op) {
        message =
            tw::format("{}: {}, and no proxy fence gives it back after {} used it through the async proxy",
                       place, what, earlier.op->what);
        advice =
            "fence.proxy.async after the wait for its completion, which implies none for tcgen05 operations "
            "(PTX ISA, tcgen05 \"Shared Memory Accesses\")";
        break;
      }
      message = tw::format("{}: {} through the async proxy, which may not see an earlier access of threads",
                           place, what);
      advice = tw::format(
          "the threads execute {} after their access and before the barrier (PTX ISA, \"Async proxy\")",
          fence_for(earlier, space));
      break;
    case Order::no_map_fence:
      kind = FaultKind::proxy_fence;
      message = tw::format("{}: {} as a tensor map, and may not see what threads wrote to it", place, what);
      advice =
          "fence.proxy.tensormap::generic.release after the writes and, before the copy, "
          "fence.proxy.tensormap::generic.acquire on the map (PTX ISA, \"membar, fence\")";
      break;
    case Order::no_tensor_fence:
      kind = FaultKind::tensor_fence;
      message = tw::format("{}: {} without a tcgen05.fence since an earlier operation of another thread",
                           place, what);
      advice =
          "tcgen05.fence::before_thread_sync before the barrier, ::after_thread_sync behind it (PTX ISA, "
          "\"tcgen05 Memory Consistency Model\")";
      break;
    case Order::by_use:
      kind = FaultKind::not_waited_for;
      message = tw::format("{}: {} behind a tcgen05.ld whose values its thread has used, but not waited for",
                           place, what);
      advice =
          "tcgen05.wait::ld before the hand-over. Kernels do without and get the loaded values; but the PTX "
          "ISA promises no order of memory accesses by a use (\"Register dependencies, same thread\"), and a "
          "compiler may move the use";
      break;
    case Order::not_handed_back:
      kind = FaultKind::not_handed_back;
      message = tw::format(
          "{}: {}, and no proxy fence gives it back after tcgen05.mma read it through the async proxy", place,
          what);
      advice =
          "fence.proxy.async between the wait for its completion and the access. Kernels do without; the PTX "
          "ISA asks for the fence (tcgen05, \"Shared Memory Accesses\") and names no implicit one, as it "
          "does for wgmma and bulk copies (\"Async proxy\")";
      break;
  }
  found(kind, later.pc, std::move(message), earlier.pc, "the other access: " + describe(earlier),
        std::move(advice));
}

void Checker::Scene::report(Order how, Shadow::Entry earlier, Shadow::Entry later, const sim::Cta& cta,
                            bool tensor, uint64_t begin) {
  const std::string place = name_of(cta, tensor, begin);
  if (how == Order::lanes) report_lanes(earlier, later, place);
  else report(how, stamps_[earlier.stamp()], stamps_[later.stamp()], spaces_.shared(cta.rank), place);
}

void Checker::Scene::report_lanes(Shadow::Entry before, Shadow::Entry now, const std::string& place) {
  const Stamp &earlier = stamps_[before.stamp()], &later = stamps_[now.stamp()];
  const auto lanes = knowledge(*later.warp).lane_order.unordered(before, now, earlier);
  if (!lanes || !reported_.emplace(Order::lanes, earlier.pc, later.pc).second) return;
  const std::string other =
      lanes->earlier == LaneOrder::kSeveral ? "other lanes" : tw::format("lane {}", lanes->earlier);
  found(FaultKind::race, later.pc,
        tw::format("{}: {} in lane {}, and nothing orders this after an access of {} of the same warp", place,
                   describe(later), lanes->later, other),
        earlier.pc, "the other access: " + describe(earlier),
        "bar.warp.sync by these lanes between the two: lanes of a warp run apart, and to be at the same "
        "instruction orders no memory (PTX ISA, \"bar.warp.sync\")");
}

}  // namespace tw::check
