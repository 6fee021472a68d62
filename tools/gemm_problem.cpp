#include "tools/gemm_problem.h"

#include <algorithm>
#include <chrono>

#include "tilewright/base/format.h"
#include "tilewright/runtime/random.h"
#include "tools/compile.h"
#include "tools/result_fault.h"

namespace tw::tools {

GemmProblem::GemmProblem(const kernels::GemmKernel& kernel, Device& device, const kernels::GemmShape& s,
                         report::Progress& progress, uint64_t seed)
    : device_(device),
      shape_(s),
      progress_(progress),
      label_(format("{} {} on {}", kernel.name, to_string(s), device.name())) {
  progress_.stage(label_ + ": compiling");
  const auto start = std::chrono::steady_clock::now();
  compiled_ = compile(kernel, s, device.target());
  compile_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  a_ = device.tensor(s.dtype, {s.m, s.k}, "A");
  b_ = device.tensor(s.dtype, {s.n, s.k}, "B");
  d_ = device.tensor(s.dtype, {s.m, s.n}, "D");
  fill_normal(*a_, seed);
  fill_normal(*b_, seed + 1);
}

LaunchResult GemmProblem::launch(const LaunchOptions& options) {
  d_->poison();
  const LaunchResult result = device_.launch(compiled_, {*a_, *b_, *d_}, options);
  device_.synchronize();
  return result;
}

GemmJudgement GemmProblem::judge() {
  if (!reference_) {
    progress_.stage(label_ + ": fp64 reference");
    reference_ = reference_gemm(*a_, *b_);
  }
  GemmJudgement j{compare(*d_, *reference_), {}};
  if (j.comparison.good(error_limit)) return j;
  const auto declared = std::find_if(compiled_.params.begin(), compiled_.params.end(),
                                     [](const Param& p) { return p.name == "D"; });
  const NamedArray array{"D", d_->dtype(), d_->shape(),
                         declared != compiled_.params.end() ? declared->loc : SourceLoc{}};
  if (j.comparison.unwritten) {
    j.fault = unwritten_fault(array, j.comparison.unwritten, d_->first_unwritten());
  } else {
    const std::vector<float> values = d_->download_f32();
    j.fault =
        wrong_result_fault(array, j.comparison, error_limit, {values.begin(), values.end()}, *reference_);
  }
  return j;
}

}  // namespace tw::tools
