#pragma once
#include <cstdint>
#include <string>

namespace tw::sim {

// An mbarrier object (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"). Phases
// are counted in 64 bits, so that a wait which is several phases late can be told from one that is on time.
class MBarrier {
 public:
  static constexpr uint32_t kMaxCount = (1u << 20) - 1;  // "Contents of the mbarrier object"

  explicit MBarrier(uint32_t count) : pending_(count), expected_(count) {}

  // Each answers "" or the rule that was broken.
  const char* expect_tx(int64_t bytes);    // tx-count += bytes
  const char* complete_tx(int64_t bytes);  // tx-count -= bytes; may complete the phase
  const char* arrive(uint32_t count);      // may complete the phase
  const char* arrive_no_complete(uint32_t count);
  const char* arrive_drop(uint32_t count);       // also lowers the count of the following phases
  const char* increase_pending(uint32_t count);  // cp.async.mbarrier.arrive without .noinc

  uint64_t phase() const { return phase_; }  // index of the incomplete phase
  uint32_t pending() const { return pending_; }
  uint32_t expected() const { return expected_; }
  int64_t tx() const { return tx_; }
  // wait on parity: true when the phase with this parity is the one that completed last.
  bool passes_parity(uint32_t parity) const { return (phase_ & 1) != (parity & 1); }

  // The opaque state of the .b64 forms: the phase, and the pending count before the arrive.
  uint64_t state() const { return (phase_ << 20) | pending_; }
  static uint64_t phase_of(uint64_t state) { return state >> 20; }
  static uint32_t pending_of(uint64_t state) { return static_cast<uint32_t>(state & kMaxCount); }

 private:
  void complete_if_done();
  uint64_t phase_ = 0;
  uint32_t pending_;
  uint32_t expected_;
  int64_t tx_ = 0;
};

}  // namespace tw::sim
