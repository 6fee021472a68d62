#pragma once
#include <cstdint>
#include <vector>

#include "tilewright/sim/mbarrier.h"

namespace tw::sim {

class Warp;

// Who took which part in an mbarrier, for those who explain why a phase does not complete: one entry for each
// warp and instruction.
class BarrierLog {
 public:
  enum class Part : uint8_t {
    arrives,   // threads
    expects,   // expect_tx, by itself or with an arrive
    delivers,  // complete_tx, mostly by a copy
    signals,   // arrivals of asynchronous operations: commits
    waits,     // and was let through
  };
  struct Entry {
    const Warp* warp;
    uint32_t pc;
    Part part;
    uint64_t phase;  // the last in which it did; for waits, how many phases it has seen complete
    int64_t amount;  // in that phase: arrivals or bytes
  };

  void add(const Warp& warp, uint32_t pc, Part part, uint64_t phase, int64_t amount);
  const std::vector<Entry>& entries() const { return entries_; }
  // Bytes or arrivals of this kind in a phase.
  int64_t amount(Part part, uint64_t phase) const;

 private:
  std::vector<Entry> entries_;
  size_t last_ = 0;
};

// An mbarrier in shared memory.
struct LoggedMBarrier : MBarrier {
  using MBarrier::MBarrier;
  BarrierLog log;
};

}  // namespace tw::sim
