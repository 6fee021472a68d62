#pragma once
#include <functional>

#include "tilewright/check/report.h"
#include "tilewright/sim/simulator.h"

namespace tw::check {

class Checker;

struct ExploreBudget {
  uint64_t runs = 0;   // 0: no exploration
  double seconds = 0;  // begins no further run after; 0: no limit
};

// Runs `run` under other orders of synchronisation than the observed one, wherever two steps on one object
// (sync_order.h) compete: the run is repeated up to the earlier one, which is then held back until the later
// one has happened (stateless search with dynamic partial-order reduction: C. Flanagan and P. Godefroid,
// "Dynamic partial-order reduction for model checking software", POPL 2005; that no order is run twice is the
// aim of P. Abdulla et al., "Optimal dynamic partial order reduction", POPL 2014). `run` has to start from
// the same memory each time. Faults go to the checker; what it stops at ends that run, not the search, unless
// `stop_at_first`.
Exploration explore(Checker& checker, const std::function<void(const sim::RunOptions&)>& run,
                    const ExploreBudget& budget, bool stop_at_first,
                    const std::function<void(const std::string&)>& progress);

}  // namespace tw::check
