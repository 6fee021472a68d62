#include "tools/ptx_check.h"

#include <memory>

#include "tilewright/base/error.h"
#include "tilewright/check/check.h"

namespace tw::tools {
namespace {

// "d[1, 2]" for the element with that row-major number.
std::string element_text(const BufferSpec& buffer, int64_t number) {
  std::string text;
  for (size_t d = buffer.shape.size(); d-- > 0; number /= buffer.shape[d])
    text = format("{}{}{}", number % buffer.shape[d], text.empty() ? "" : ", ", text);
  return format("{}[{}]", buffer.name, text);
}

check::Fault fault_of(const BufferOutcome& o) {
  const BufferSpec& b = *o.spec;
  check::Fault f;
  f.loc = b.expect->loc;
  if (const uint64_t missing = o.comparison->unwritten) {
    f.kind = check::FaultKind::unwritten;
    const auto first = static_cast<int64_t>(o.first_unwritten * 8 / static_cast<uint64_t>(bits(b.dtype)));
    f.message = format("nothing wrote {} of the {} bytes of buffer '{}'; the first are those of {}", missing,
                       b.extent() * bits(b.dtype) / 8, b.name, element_text(b, first));
    return f;
  }
  f.kind = check::FaultKind::wrong_result;
  if (b.expect->tolerance == 0) {
    f.message = format("{} is {}, expected {}; {} of {} elements differ", element_text(b, o.first_different),
                       o.values[static_cast<size_t>(o.first_different)], o.first_expected, o.different,
                       o.values.size());
  } else {
    f.message = format("buffer '{}': {}, the tolerance is {:g}; farthest off is {}: {}, expected {}", b.name,
                       to_string(*o.comparison), b.expect->tolerance, element_text(b, o.comparison->worst),
                       o.comparison->worst_given, o.comparison->worst_expected);
  }
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
    device.launch_ptx(module, bound.entry->name, bound.launch, launch);
  };
  check::CheckReport report = check::check(run, options);
  progress.clear();
  return report;
}

}  // namespace tw::tools
