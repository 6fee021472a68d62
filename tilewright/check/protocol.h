#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/check/report.h"
#include "tilewright/sim/cluster.h"

// Rules of how barriers are used, beyond what they order. Each class takes the events of one cluster.
namespace tw::check {

// A broken rule; places are instructions.
struct Finding {
  FaultKind kind;
  uint32_t pc;
  std::string message;
  uint32_t other = 0;
  std::string other_text;  // empty: there is no second place
  std::string advice;
};
using Report = std::function<void(Finding)>;

// Bytes armed against bytes delivered ("Tracking asynchronous operations by the mbarrier object"): when all
// arrivals of a phase are in, whoever arms has armed; bytes beyond that keep the phase open for ever.
class ByteCounts {
 public:
  explicit ByteCounts(Report report) : report_(std::move(report)) {}
  void event(const sim::BarrierEvent& e) const;
  void ended(const sim::Cta& cta) const;  // all its threads, and no operation is in flight

 private:
  void mismatch(const sim::Cta& cta, uint32_t offset, const sim::LoggedMBarrier& b) const;
  Report report_;
};

// "Issue Granularity": an operation of the tensor core is issued by one thread. Lanes that each issue it lack
// an election.
class Elections {
 public:
  explicit Elections(Report report) : report_(std::move(report)) {}
  void issued(const sim::AsyncOp& op, const ptx::Instruction& inst, uint32_t lanes) const;

 private:
  Report report_;
};

// Shared memory that holds mbarriers may be used otherwise only after "mbarrier.inval".
class BarrierPlaces {
 public:
  BarrierPlaces(Report report, size_t ctas) : report_(std::move(report)), live_(ctas) {}
  void event(const sim::BarrierEvent& e);
  void write(const sim::Warp& warp, const sim::Cta& cta, uint32_t offset, uint32_t bytes) const;

 private:
  Report report_;
  std::vector<std::map<uint32_t, uint32_t>> live_;  // by CTA rank: offset, and where it was initialised
};

}  // namespace tw::check
