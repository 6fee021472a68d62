#include "tilewright/check/protocol.h"

#include <bit>

#include "tilewright/sim/grid.h"

namespace tw::check {

using sim::BarrierEvent;
using Kind = BarrierEvent::Kind;
using Part = sim::BarrierLog::Part;

// ---- bytes ----

void ByteCounts::event(const BarrierEvent& e) const {
  if (e.kind != Kind::arrive && e.kind != Kind::complete_tx) return;
  const auto at = e.cta->mbarriers().find(e.id);
  if (at == e.cta->mbarriers().end()) return;
  const sim::LoggedMBarrier& b = at->second;
  if (b.phase() == e.phase && b.pending() == 0 && b.tx() < 0) mismatch(*e.cta, e.id, b);
}

void ByteCounts::ended(const sim::Cta& cta) const {
  // One that was only armed, or only delivered to, is of no consequence when nobody waits for it.
  for (const auto& [offset, b] : cta.mbarriers())
    if (b.tx() != 0 && b.log.amount(Part::expects, b.phase()) && b.log.amount(Part::delivers, b.phase()))
      mismatch(cta, offset, b);
}

void ByteCounts::mismatch(const sim::Cta& cta, uint32_t offset, const sim::LoggedMBarrier& b) const {
  const sim::BarrierLog::Entry *arms = nullptr, *delivers = nullptr;
  for (const auto& e : b.log.entries()) {
    if (e.phase != b.phase()) continue;
    if (e.part == Part::expects && !arms) arms = &e;
    if (e.part == Part::delivers && (!delivers || e.amount > delivers->amount)) delivers = &e;
  }
  const auto& program = cta.cluster.grid.program.code.source;
  const auto text = [&](const sim::BarrierLog::Entry* e) {
    return e && program[e->pc] ? program[e->pc]->text() : std::string("nothing");
  };
  Finding f;
  f.kind = FaultKind::bytes;
  f.pc = delivers ? delivers->pc : arms ? arms->pc : 0;
  f.message = tw::format("{}, phase {}: armed with {} bytes, {} are delivered to it ({})",
                         cta.name_of_shared(offset), b.phase(), b.log.amount(Part::expects, b.phase()),
                         b.log.amount(Part::delivers, b.phase()), text(delivers));
  f.other = arms ? arms->pc : f.pc;
  f.other_text = "armed here: " + text(arms);
  f.advice =
      "arm a phase with all bytes of the copies that complete on it. A copy delivers its whole box, also "
      "rows "
      "that lie outside of the tensor (PTX ISA, \"Tracking asynchronous operations by the mbarrier object\")";
  report_(std::move(f));
}

// ---- elections ----

void Elections::issued(const sim::AsyncOp& op, const ptx::Instruction& inst, uint32_t lanes) const {
  if (std::popcount(lanes) < 2 || !(inst.has("mma") || inst.has("commit") || inst.has("cp"))) return;
  report_({FaultKind::election, op.pc,
           tw::format("{} is executed by {} lanes of warp {}: each of them issues it once more", inst.text(),
                      std::popcount(lanes), op.warp->index()),
           0, "", "one thread issues it: elect a lane (PTX ISA, \"Issue Granularity\")"});
}

// ---- places ----

void BarrierPlaces::event(const BarrierEvent& e) {
  auto& live = live_[e.cta->rank];
  if (e.kind == Kind::init) live[e.id] = e.warp->pc();
  else if (e.kind == Kind::invalidate) live.erase(e.id);
}

void BarrierPlaces::write(const sim::Warp& warp, const sim::Cta& cta, uint32_t offset, uint32_t bytes) const {
  const auto& live = live_[cta.rank];
  auto at = live.lower_bound(offset < 8 ? 0 : offset - 7);
  if (at == live.end() || at->first >= offset + bytes) return;
  report_({FaultKind::overwritten, warp.pc(),
           tw::format("{}: {} writes {} bytes at {}, where an mbarrier lives", cta.name_of_shared(at->first),
                      warp.instruction().text(), bytes, cta.name_of_shared(offset)),
           at->second, "it was initialised here",
           "mbarrier.inval before the memory is used for anything else (PTX ISA, \"mbarrier.inval\")"});
}

}  // namespace tw::check
