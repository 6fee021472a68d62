#include "tools/gemm_run.h"

#include <chrono>

#include "tilewright/base/format.h"
#include "tilewright/runtime/random.h"
#include "tools/compile.h"

namespace tw::tools {

GemmOutcome run_gemm(const kernels::GemmKernel& kernel, Device& device, const GemmRequest& request,
                     report::Progress& progress) {
  const auto& s = request.shape;
  const std::string label = format("{} {} on {}", kernel.name, to_string(s), device.name());
  GemmOutcome outcome;
  progress.stage(label + ": compiling");
  const auto start = std::chrono::steady_clock::now();
  const Compiled compiled = compile(kernel, s, device.target());
  outcome.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.notes = compiled.notes;

  Tensor a = device.tensor(s.dtype, {s.m, s.k}, "A");
  Tensor b = device.tensor(s.dtype, {s.n, s.k}, "B");
  Tensor d = device.tensor(s.dtype, {s.m, s.n}, "D");
  fill_normal(a, request.seed);
  fill_normal(b, request.seed + 1);
  d.poison();

  progress.stage(label);
  LaunchOptions options;
  options.timed = true;
  options.sim.schedule = request.schedule;
  options.sim.observer = request.observer;
  options.sim.progress_user = &progress;
  options.sim.progress = [](void* user, uint64_t done, uint64_t total) {
    static_cast<report::Progress*>(user)->update(done, total);
  };
  outcome.launch = device.launch(compiled, {a, b, d}, options);
  device.synchronize();

  if (request.verify) {
    progress.stage(label + ": fp64 reference");
    outcome.comparison = compare(d, reference_gemm(a, b));
  }
  progress.clear();
  return outcome;
}

}  // namespace tw::tools
