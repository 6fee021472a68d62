#include "tools/ptx_check.h"

#include <memory>

#include "tilewright/base/error.h"
#include "tilewright/check/check.h"

namespace tw::tools {

check::CheckReport check_ptx(const ptx::Module& module, const LaunchSpec& spec, Device& device,
                             const std::vector<std::string>& schedules, report::Progress& progress) {
  if (!device.simulated()) user_error({}, "{} cannot be checked; only a simulated device can", device.name());
  const auto names = std::make_shared<ptx::DebugMap>(spec.names);
  check::CheckOptions options;
  options.schedules = schedules;
  options.progress = [&](const std::string& schedule) {
    progress.stage(format("{} on {}: checking, schedule {}", module.name, device.name(), schedule));
  };
  const auto run = [&](const sim::RunOptions& sim) {
    const BoundLaunch bound = bind_launch(spec, module, device);
    LaunchOptions launch;
    launch.names = names;
    launch.sim = sim;
    device.launch_ptx(module, bound.entry->name, bound.launch, launch);
  };
  check::CheckReport report = check::check(run, options);
  progress.clear();
  return report;
}

}  // namespace tw::tools
