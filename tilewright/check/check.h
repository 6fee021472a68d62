#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tilewright/check/explore.h"
#include "tilewright/check/report.h"
#include "tilewright/sim/simulator.h"

namespace tw::check {

struct CheckOptions {
  // One run each, in the forms of sim::parse_schedule.
  std::vector<std::string> schedules{"eager", "late", "random:1"};
  bool stop_at_first = false;  // no further schedule once something was found
  // After each run that came to its end: what is wrong with what it left in memory.
  std::function<std::vector<Fault>()> judge = nullptr;
  // After the schedules: runs under other orders of synchronisation.
  ExploreBudget explore = {};
  // Before each run: which schedule it will have.
  std::function<void(const std::string& schedule)> progress = nullptr;
};

// Checks whatever `run` launches in the simulator with the options it is given:
//
//   check([&](const sim::RunOptions& sim) { device->launch(kernel, {a, b, d}, {.sim = sim}); });
//
// What the simulator stops at (undefined behaviour, a deadlock) becomes a fault of the report. Other errors,
// a launch that breaks a rule for one, are thrown; so is a user error for a schedule that there is not,
// before anything runs.
CheckReport check(const std::function<void(const sim::RunOptions&)>& run, const CheckOptions& options = {});

}  // namespace tw::check
