#include "tools/ptx_check.h"

#include <memory>

#include "tilewright/base/error.h"
#include "tilewright/check/check.h"
#include "tools/result_fault.h"

namespace tw::tools {
namespace {

check::Fault fault_of(const BufferOutcome& o) {
  const BufferSpec& b = *o.spec;
  const NamedArray array{b.name, b.dtype, b.shape, b.expect->loc};
  if (o.comparison->unwritten) return unwritten_fault(array, o.comparison->unwritten, o.first_unwritten);
  if (b.expect->tolerance != 0)
    return wrong_result_fault(array, *o.comparison, b.expect->tolerance, o.values, o.expected);
  const auto first = static_cast<size_t>(o.first_different);
  check::Fault f;
  f.kind = check::FaultKind::wrong_result;
  f.loc = array.loc;
  f.message = format("{} is {}, expected {}; {} of {} elements differ", array.element(o.first_different),
                     o.values[first], o.expected[first], o.different, o.values.size());
  return f;
}

}  // namespace

check::CheckReport check_ptx(const ptx::Module& module, const LaunchSpec& spec, Device& device,
                             const std::vector<std::string>& schedules, report::Progress& progress,
                             const check::ExploreBudget& explore) {
  if (!device.simulated()) user_error({}, "{} cannot be checked; only a simulated device can", device.name());
  check::CheckOptions options;
  options.schedules = schedules;
  options.explore = explore;
  options.progress = [&](const std::string& schedule) {
    progress.stage(format("{} on {}: checking, schedule {}", module.name, device.name(), schedule));
  };
  LaunchSpec judged = spec;
  for (BufferSpec& b : judged.buffers) b.print = false, b.keep.clear();
  BoundLaunch bound;
  options.judge = [&] {
    std::vector<check::Fault> faults;
    for (const BufferOutcome& o : judge(judged, bound))
      if (!o.good()) faults.push_back(fault_of(o));
    return faults;
  };
  const auto run = [&](const sim::RunOptions& sim) {
    bound = bind_launch(judged, module, device);
    LaunchOptions launch;
    // Names of its own make a run decode the module anew, so that its variables start from their first
    // values.
    launch.names = std::make_shared<ptx::DebugMap>(spec.names);
    launch.sim = sim;
    launch.dependent = bound.dependent;
    device.launch_ptx(module, bound.entry->name, bound.launch, launch);
  };
  check::CheckReport report = check::check(run, options);
  progress.clear();
  return report;
}

}  // namespace tw::tools
