#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tilewright/check/explore.h"
#include "tilewright/check/report.h"
#include "tools/gemm_problem.h"

// Checking a kernel of the registry: what `check` and `demo` share.
namespace tw::tools {

// Runs the kernel once for each schedule, with a checker attached; a result that is not the product is a
// fault too. User errors: the device is no simulated one, a schedule that there is not.
check::CheckReport check_gemm(GemmProblem& problem, const std::vector<std::string>& schedules,
                              const check::ExploreBudget& explore = {});

nlohmann::ordered_json to_json(const check::CheckReport& report);
// SARIF 2.1.0 (OASIS), which editors and code review show at the lines.
nlohmann::ordered_json to_sarif(const check::CheckReport& report);

}  // namespace tw::tools
