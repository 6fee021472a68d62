#include "tilewright/sim/mbarrier.h"

namespace tw::sim {

namespace {
constexpr const char* kTxRange = "the tx-count leaves its range of -(2^20-1) to 2^20-1";
constexpr const char* kTooMany = "more arrivals than the phase still expects";
}  // namespace

const char* MBarrier::expect_tx(int64_t bytes) {
  if (bytes < 0 || bytes > kMaxCount || tx_ + bytes > kMaxCount) return kTxRange;
  tx_ += bytes;
  complete_if_done();
  return "";
}

const char* MBarrier::complete_tx(int64_t bytes) {
  if (bytes < 0 || bytes > kMaxCount || tx_ - bytes < -int64_t{kMaxCount}) return kTxRange;
  tx_ -= bytes;
  complete_if_done();
  return "";
}

const char* MBarrier::arrive(uint32_t count) {
  if (count == 0 || count > kMaxCount) return "the arrival count must be 1 to 2^20-1";
  if (count > pending_) return kTooMany;
  pending_ -= count;
  complete_if_done();
  return "";
}

const char* MBarrier::arrive_no_complete(uint32_t count) {
  if (count == 0 || count > kMaxCount) return "the arrival count must be 1 to 2^20-1";
  if (count > pending_) return kTooMany;
  if (count == pending_ && tx_ == 0) return "an arrival with .noComplete completes the phase";
  pending_ -= count;
  return "";
}

const char* MBarrier::arrive_drop(uint32_t count) {
  if (count == 0 || count > kMaxCount) return "the arrival count must be 1 to 2^20-1";
  if (count > pending_) return kTooMany;
  if (count >= expected_)
    return "arrive_drop leaves no arrivals to expect; the expected count must stay at least 1";
  expected_ -= count;
  pending_ -= count;
  complete_if_done();
  return "";
}

const char* MBarrier::increase_pending(uint32_t count) {
  if (pending_ + count > kMaxCount) return "the pending count leaves its range of 0 to 2^20-1";
  pending_ += count;
  return "";
}

void MBarrier::complete_if_done() {
  if (pending_ != 0 || tx_ != 0) return;
  ++phase_;
  pending_ = expected_;
}

}  // namespace tw::sim
