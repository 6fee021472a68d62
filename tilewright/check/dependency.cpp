#include "tilewright/check/dependency.h"

#include <algorithm>

#include "tilewright/base/format.h"

namespace tw::check {

DependencyWaits::DependencyWaits(Report report, const sim::Grid& grid)
    : report_(std::move(report)), grid_(grid), before_(grid.launch.grid_before) {
  if (!before_) return;
  const auto& source = grid.program.code.source;
  for (uint32_t pc = 0; pc < source.size(); ++pc)
    if (source[pc] && source[pc]->opcode() == "griddepcontrol" && source[pc]->has("wait"))
      waits_.push_back(pc);
}

const sim::GridBefore::Use* DependencyWaits::use_of(uint64_t begin, uint64_t end, bool write) const {
  for (const sim::GridBefore::Use& u : before_->uses)
    if (begin < u.end && u.begin < end && (u.writes || write)) return &u;
  return nullptr;
}

std::optional<uint64_t> DependencyWaits::needed(const PagedShadow::Rows& rows, bool write) const {
  for (uint32_t i = 0; i < rows.count; ++i) {
    const uint64_t begin = rows.begin + i * rows.pitch;
    if (const auto* use = use_of(begin, begin + rows.bytes, write)) return std::max(begin, use->begin);
  }
  return std::nullopt;
}

void DependencyWaits::missing(uint32_t pc, uint64_t address, const std::string& place,
                              const std::string& what) {
  const sim::GridBefore::Use* use = use_of(address, address + 1, true);
  if (!reported_.emplace(pc, use).second) return;
  Finding f;
  f.kind = FaultKind::dependency;
  f.pc = pc;
  f.message =
      tw::format("{}: {} before any dependency wait; the grid before this one {} it, and may not have ended",
                 place, what, use->writes ? "writes" : "reads");
  if (!waits_.empty()) {
    const ptx::Instruction& wait = *grid_.program.code.source[waits_.front()];
    const auto& names = grid_.program.names;
    const auto role = static_cast<size_t>(wait.role);
    f.other = waits_.front();
    f.other_text = wait.role >= 0 && names && role < names->roles.size()
                       ? tw::format("role {} waits here", names->roles[role])
                       : "a wait is here";
    f.other_text += ", and nothing puts the access behind it";
  } else {
    f.message += "; the kernel has no wait";
  }
  f.advice =
      "griddepcontrol.wait (cudaGridDependencySynchronize) before the access, in each thread that makes "
      "one or in one that hands over to it by a barrier (PTX ISA, \"griddepcontrol\")";
  report_(std::move(f));
}

}  // namespace tw::check
