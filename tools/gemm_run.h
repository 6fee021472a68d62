#pragma once
#include <optional>

#include "tools/gemm_problem.h"

// Running a kernel of the registry on random inputs and judging its result: what `run` and `demo` share.
namespace tw::tools {

struct GemmRequest {
  sim::ScheduleSpec schedule = {};
  bool verify = true;
  sim::Observer* observer = nullptr;  // of the simulator
};

struct GemmOutcome {
  LaunchResult launch;
  std::optional<GemmJudgement> judgement;  // when verified

  bool good() const { return !judgement || judgement->good(); }
};

GemmOutcome run_gemm(GemmProblem& problem, const GemmRequest& request);

}  // namespace tw::tools
