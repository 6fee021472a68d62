#include "tools/gemm_run.h"

namespace tw::tools {

GemmOutcome run_gemm(GemmProblem& problem, const GemmRequest& request) {
  problem.progress().stage(problem.label());
  LaunchOptions options;
  options.timed = true;
  options.sim.schedule = request.schedule;
  options.sim.observer = request.observer;
  options.sim.progress_user = &problem.progress();
  options.sim.progress = [](void* user, uint64_t done, uint64_t total) {
    static_cast<report::Progress*>(user)->update(done, total);
  };
  GemmOutcome outcome;
  outcome.launch = problem.launch(options);
  if (request.verify) outcome.judgement = problem.judge();
  problem.progress().clear();
  return outcome;
}

}  // namespace tw::tools
