#pragma once
#include <string>
#include <vector>

#include "tilewright/check/explore.h"
#include "tilewright/check/report.h"
#include "tilewright/report/progress.h"
#include "tools/ptx_launch.h"

namespace tw::tools {

// Runs an entry of a foreign module as `spec` says, once for each schedule, with a checker attached; every
// run starts from fresh buffers. Buffers that do not hold what the launch expects are faults too. User
// errors: the device is no simulated one, a schedule that there is not, a launch that breaks a rule.
check::CheckReport check_ptx(const ptx::Module& module, const LaunchSpec& spec, Device& device,
                             const std::vector<std::string>& schedules, report::Progress& progress,
                             const check::ExploreBudget& explore = {});

}  // namespace tw::tools
