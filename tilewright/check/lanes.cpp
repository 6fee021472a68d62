#include "tilewright/check/scene.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/member_mask.h"
#include "tilewright/sim/program.h"

// Where the lanes of one warp meet, and what one of them hears of the others.
namespace tw::check {
namespace {

// CUDA Programming Guide, "Warp Vote Functions", "Warp Match Functions", "Warp Reduce Functions", "Warp
// Shuffle Functions": they do not provide any memory ordering.
bool exchanges(const ptx::Instruction& inst) {
  const std::string_view op = inst.opcode();
  return op == "shfl" || op == "vote" || op == "match" || op == "redux";
}

LaneEpochs begin_epochs(WarpKnowledge& w) { return {++w.all.epoch, ++w.some.epoch}; }

}  // namespace

// One copy by all lanes: each may read any of it before the others have come.
bool Checker::Scene::collective(const sim::Warp& warp) const {
  const ptx::Instruction* inst = instruction(warp.pc());
  return inst && inst->opcode() == "tensormap" && inst->has("cp_fenceproxy");
}

// A collective instruction executes: the lanes that it names are there.
void Checker::Scene::gathered(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  if (cluster_.grid.program.code.insts[warp.pc()].gather == sim::Gather::none || lanes == 0 ||
      collective(warp))
    return;
  if (!exchanges(inst)) return met(warp, lanes);
  WarpKnowledge& w = knowledge(warp);
  if ((warp.live() & ~lanes) == 0) w.lane_order.exchange_all(begin_epochs(w));
  else w.lane_order.exchange(lanes, begin_epochs(w));
}

void Checker::Scene::met(const sim::Warp& warp, uint32_t lanes) {
  WarpKnowledge& w = knowledge(warp);
  if (!w.lane_order.apart()) return;
  if ((warp.live() & ~lanes) == 0) w.lane_order.meet_all(begin_epochs(w));
  else w.lane_order.meet(lanes, begin_epochs(w));
}

// Lanes pass; those of one mask may do so one after the other.
void Checker::Scene::warp_barrier(const sim::Warp& warp, uint32_t lanes) {
  WarpKnowledge& w = knowledge(warp);
  const sim::Slot masks = cluster_.grid.program.code.insts[warp.pc()].s[1];
  sim::each_group(warp.row<uint32_t>(masks), lanes, [&](uint32_t mask, uint32_t group) {
    const uint32_t members = mask & warp.live();
    if (!w.lane_order.first_of(members, group)) return;
    if (members == warp.live()) join(w);
    else met(warp, members);
  });
}

void Checker::Scene::hear(const sim::Warp& warp, uint32_t lanes, const Clock& told) {
  WarpKnowledge& w = knowledge(warp);
  const LaneEpochs before{told[w.all.index] + 1, told[w.some.index] + 1};
  if ((warp.live() & ~lanes) == 0) w.lane_order.hear_all(before);
  else w.lane_order.hear(lanes, before);
}

// Whatever the scope: in one warp, what is heard at all has come to pass.
void Checker::Scene::hear(const sim::Warp& warp, uint32_t lanes, const Phase& phase) {
  hear(warp, lanes, phase.view.ordinary);
  if (!phase.view.narrow.empty()) hear(warp, lanes, phase.view.narrow);
  for (const Weak& weak : phase.weak) {
    hear(warp, lanes, weak.gave);
    hear(warp, lanes, weak.all);
  }
}

void Checker::Scene::hear(const sim::Warp& warp, uint32_t lanes, const Handed& handed) {
  if (handed.cluster == cluster_.index) hear(warp, lanes, handed.view.ordinary);
  else if (const Known* mine = find(handed.elsewhere, cluster_.index)) hear(warp, lanes, mine->ordinary);
}

}  // namespace tw::check
