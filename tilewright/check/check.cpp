#include "tilewright/check/check.h"

#include "tilewright/check/checker.h"
#include "tilewright/check/explore.h"

namespace tw::check {

CheckReport check(const std::function<void(const sim::RunOptions&)>& run, const CheckOptions& options) {
  std::vector<sim::ScheduleSpec> specs;
  for (const std::string& text : options.schedules) specs.push_back(sim::parse_schedule(text));
  Checker checker;
  const auto judged = [&](const sim::RunOptions& sim) {
    run(sim);
    if (options.judge)
      for (Fault& f : options.judge()) checker.found(std::move(f));
  };
  for (size_t i = 0; i < specs.size(); ++i) {
    if (options.progress) options.progress(options.schedules[i]);
    checker.schedule(options.schedules[i]);
    sim::RunOptions sim;
    sim.schedule = specs[i];
    sim.observer = &checker;
    try {
      judged(sim);
    } catch (const Error& e) {
      if (!checker.take(e)) throw;
    }
    if (options.stop_at_first && !checker.report().faults.empty()) break;
  }
  const bool enough = options.stop_at_first && !checker.report().faults.empty();
  std::optional<Exploration> exploration;
  if (options.explore.runs > 0 && !enough)
    exploration = explore(checker, judged, options.explore, options.stop_at_first, options.progress);
  CheckReport report = checker.report();
  report.exploration = std::move(exploration);
  return report;
}

}  // namespace tw::check
