#include "tools/ptx_check.h"

#include <memory>

#include "tilewright/base/error.h"
#include "tilewright/check/checker.h"

namespace tw::tools {

check::CheckReport check_ptx(const ptx::Module& module, const LaunchSpec& spec, Device& device,
                             const std::vector<std::string>& schedules, report::Progress& progress) {
  if (!device.simulated()) user_error({}, "{} cannot be checked; only a simulated device can", device.name());
  std::vector<sim::ScheduleSpec> specs;
  for (const std::string& text : schedules) specs.push_back(sim::parse_schedule(text));
  const auto names = std::make_shared<ptx::DebugMap>(spec.names);
  check::Checker checker;
  for (size_t i = 0; i < specs.size(); ++i) {
    progress.stage(format("{} on {}: checking, schedule {}", module.name, device.name(), schedules[i]));
    const BoundLaunch bound = bind_launch(spec, module, device);
    checker.schedule(schedules[i]);
    LaunchOptions options;
    options.names = names;
    options.sim.schedule = specs[i];
    options.sim.observer = &checker;
    try {
      device.launch_ptx(module, bound.entry->name, bound.launch, options);
    } catch (const Error& e) {
      if (!checker.take(e)) throw;
    }
  }
  progress.clear();
  return checker.report();
}

}  // namespace tw::tools
