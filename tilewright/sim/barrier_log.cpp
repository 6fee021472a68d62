#include "tilewright/sim/barrier_log.h"

namespace tw::sim {

void BarrierLog::add(const Warp& warp, uint32_t pc, Part part, uint64_t phase, int64_t amount) {
  // Parts mostly come again in the order in which they first came, or once for each lane.
  for (size_t i = 0; i < entries_.size(); ++i) {
    const size_t at = (last_ + i) % entries_.size();
    Entry& e = entries_[at];
    if (e.warp != &warp || e.pc != pc || e.part != part) continue;
    e.amount = amount + (e.phase == phase ? e.amount : 0);
    e.phase = phase;
    last_ = at;
    return;
  }
  last_ = entries_.size();
  entries_.push_back({&warp, pc, part, phase, amount});
}

int64_t BarrierLog::amount(Part part, uint64_t phase) const {
  int64_t sum = 0;
  for (const Entry& e : entries_) sum += e.part == part && e.phase == phase ? e.amount : 0;
  return sum;
}

}  // namespace tw::sim
