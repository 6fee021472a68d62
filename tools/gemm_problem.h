#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "tilewright/check/report.h"
#include "tilewright/report/progress.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/reference.h"

// One product, by a kernel of the registry: what `run`, `check` and `demo` launch, and what they judge a
// launch by.
namespace tw::tools {

// The relative Frobenius error that a product of 16-bit inputs with fp32 accumulation stays under.
inline constexpr double error_limit = 2e-3;

// How a result stands to its fp64 reference.
struct GemmJudgement {
  Comparison comparison;
  std::optional<check::Fault> fault;  // none: the result is right

  bool good() const { return !fault; }
};

class GemmProblem {
 public:
  // Compiles the kernel and makes random operands. User errors: what the kernel cannot do.
  GemmProblem(const kernels::GemmKernel& kernel, Device& device, const kernels::GemmShape& shape,
              report::Progress& progress, uint64_t seed = 1);

  Device& device() const { return device_; }
  report::Progress& progress() const { return progress_; }
  const kernels::GemmShape& shape() const { return shape_; }
  const std::string& label() const { return label_; }  // "gemm.step3 384x256x512 f16 on sim:b200"
  const std::vector<std::string>& notes() const { return compiled_.notes; }
  double compile_seconds() const { return compile_seconds_; }  // C++ to PTX text

  // Poisons D first, so that no launch is judged by what an earlier one left.
  LaunchResult launch(const LaunchOptions& options);
  // D as the last launch left it. The reference is computed once, whatever number of launches it judges.
  GemmJudgement judge();

 private:
  Device& device_;
  kernels::GemmShape shape_;
  report::Progress& progress_;
  std::string label_;
  Compiled compiled_;
  double compile_seconds_ = 0;
  std::optional<Tensor> a_, b_, d_;
  std::optional<std::vector<double>> reference_;
};

}  // namespace tw::tools
