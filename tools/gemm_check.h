#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "tilewright/check/explore.h"
#include "tilewright/check/report.h"
#include "tilewright/report/progress.h"
#include "tilewright/runtime/device.h"

// Checking a kernel of the registry: what `check` and `demo` share.
namespace tw::tools {

// Runs the kernel on random inputs, once for each schedule, with a checker attached. User errors: the device
// is no simulated one, a schedule that there is not, what the kernel cannot do.
check::CheckReport check_gemm(const kernels::GemmKernel& kernel, Device& device,
                              const kernels::GemmShape& shape, const std::vector<std::string>& schedules,
                              report::Progress& progress, const check::ExploreBudget& explore = {});

nlohmann::ordered_json to_json(const check::CheckReport& report);
// SARIF 2.1.0 (OASIS), which editors and code review show at the lines.
nlohmann::ordered_json to_sarif(const check::CheckReport& report);

}  // namespace tw::tools
