#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/check/paged.h"
#include "tilewright/check/protocol.h"
#include "tilewright/sim/grid.h"

namespace tw::check {

// PTX ISA, "griddepcontrol": a dependent launch may start before the grid before it has ended, and
// "must use griddepcontrol.wait to ensure correct functional execution". That grid is an actor which uses
// what the launch says; the wait acquires it. It "causes the executing thread to wait", and makes the memory
// operations "visible to the current grid": whoever comes after a wait may go on, whatever handed over.
class DependencyWaits {
 public:
  DependencyWaits(Report report, const sim::Grid& grid);
  bool any() const { return before_ && !before_->uses.empty(); }
  // The first address of these that has to be behind a wait, by a thread that knows of none. Reads only need
  // one where the grid before writes.
  std::optional<uint64_t> needed(const PagedShadow::Rows& rows, bool write) const;
  // `what`: "ld.global.u32 reads it (CTA (0, 0, 0), warp 1)".
  void missing(uint32_t pc, uint64_t address, const std::string& place, const std::string& what);

 private:
  const sim::GridBefore::Use* use_of(uint64_t begin, uint64_t end, bool write) const;

  Report report_;
  const sim::Grid& grid_;
  const std::optional<sim::GridBefore>& before_;
  std::vector<uint32_t> waits_;  // where the kernel waits
  std::set<std::pair<uint32_t, const sim::GridBefore::Use*>> reported_;
};

}  // namespace tw::check
