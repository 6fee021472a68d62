#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tilewright/sim/observer.h"

// What every role and engine of a run did, in order, as a Chrome JSON trace ("Trace Event Format"), which
// ui.perfetto.dev and chrome://tracing open.
//
// The functional simulator has no clock: the time of an event is its number in its cluster's order of warp
// instructions and milestones, shown as one microsecond each.
namespace tw::sim {

struct TraceOptions {
  uint64_t first_cta = 0;       // in the order of %clusterid, ranks within a cluster one after the other
  uint64_t ctas = 0;            // 0: those of first_cta's cluster
  size_t max_events = 200'000;  // of a cluster; what follows is counted, not kept
};

// One process a CTA; in it a track for each warp (named after its roles), for each engine with work in
// flight, and for the barriers. Works for runs that end in a fault as well: what was under way then ends with
// the trace.
class Trace final : public Observer {
 public:
  explicit Trace(const TraceOptions& options = {});
  ~Trace() override;
  std::string json() const;  // after the run, while its Program lives

  void cluster_begin(Cluster& cluster) override;
  void issue(const Warp& warp, const ptx::Instruction& inst, uint32_t pc, uint32_t lanes) override;
  void async_issued(const AsyncOp& op) override;
  void async_reached(const AsyncOp& op, Milestone milestone) override;
  void barrier(const BarrierEvent& event) override;
  void warp_state(const Warp& warp, WarpState state, uint32_t lanes) override;

 private:
  struct Recording;
  Recording* of(const Warp& warp) const;
  const TraceOptions options_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::unique_ptr<Recording>> recordings_;  // by cluster
};

}  // namespace tw::sim
