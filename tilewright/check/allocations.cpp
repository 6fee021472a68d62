#include "tilewright/check/allocations.h"

#include "tilewright/base/format.h"

namespace tw::check {

void TensorAllocations::given(const sim::Warp& warp, int column) {
  owners_[{warp.cta().rank, column}] = {warp.index(), warp.pc()};
}

void TensorAllocations::given_back(const sim::Warp& warp, int column) {
  const auto at = owners_.find({warp.cta().rank, column});
  if (at == owners_.end()) return;
  const Owner owner = at->second;
  owners_.erase(at);
  if (owner.warp == warp.index()) return;
  report_({FaultKind::freed_elsewhere, warp.pc(),
           tw::format("warp {} gives back tensor memory from column {} on that warp {} allocated",
                      warp.index(), column, owner.warp),
           owner.pc, tw::format("allocated here, by warp {}", owner.warp),
           "whether another warp may is disputed: the PTX ISA (\"tcgen05.alloc\") asks of tcgen05.dealloc "
           "only that one warp executes it. The warp that allocated is on the safe side"});
}

}  // namespace tw::check
