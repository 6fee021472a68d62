#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "tilewright/sim/async.h"
#include "tilewright/sim/simulator.h"

namespace tw::sim {

class Cluster;
class Warp;

// What happens next in a cluster.
struct Action {
  enum class Kind : uint8_t {
    run,      // `warp` executes up to `limit` instructions
    advance,  // `op` moves to milestone `to` (through those before it)
    idle,     // nothing can run and nothing can advance
    pause,    // another cluster's turn; only where clusters are interleaved
  } kind = Kind::idle;
  Warp* warp = nullptr;
  uint32_t limit = 0;
  AsyncOp* op = nullptr;
  Milestone to = Milestone::signalled;
};

// Decides at every scheduling point of one cluster. A scheduling point is: a warp used up its limit,
// suspended, yielded, exited, or issued an asynchronous operation; an operation advanced.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Chooses among Cluster::next_runnable and Cluster::advanceable. Must not answer idle while either offers
  // something.
  virtual Action next(Cluster& cluster) = 0;
  // After a run: how many warp instructions were executed.
  virtual void ran(Warp& warp, uint32_t instructions) { (void)warp, (void)instructions; }
};

// Makes one scheduler per cluster; `RunOptions::schedulers` overrides the schedule's own.
class SchedulerFactory {
 public:
  virtual ~SchedulerFactory() = default;
  virtual std::unique_ptr<Scheduler> make(Cluster& cluster) = 0;
  // True: clusters that may wait for each other run on one host thread, each until its scheduler pauses it,
  // and access global memory in just that order.
  virtual bool interleaves() const { return false; }
  // Which of them runs next.
  virtual size_t pick(std::span<Cluster* const> running) { return (void)running, 0; }
};

// Those of ScheduleSpec; `cluster_index` makes random streams of clusters differ.
std::unique_ptr<Scheduler> make_scheduler(const ScheduleSpec& spec, uint64_t cluster_index);

}  // namespace tw::sim
