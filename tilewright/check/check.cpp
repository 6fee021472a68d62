#include "tilewright/check/check.h"

#include "tilewright/check/checker.h"

namespace tw::check {

CheckReport check(const std::function<void(const sim::RunOptions&)>& run, const CheckOptions& options) {
  std::vector<sim::ScheduleSpec> specs;
  for (const std::string& text : options.schedules) specs.push_back(sim::parse_schedule(text));
  Checker checker;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (options.progress) options.progress(options.schedules[i]);
    checker.schedule(options.schedules[i]);
    sim::RunOptions sim;
    sim.schedule = specs[i];
    sim.observer = &checker;
    try {
      run(sim);
      if (options.judge)
        for (Fault& f : options.judge()) checker.found(std::move(f));
    } catch (const Error& e) {
      if (!checker.take(e)) throw;
    }
    if (options.stop_at_first && !checker.report().faults.empty()) break;
  }
  return checker.report();
}

}  // namespace tw::check
