#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "tilewright/report/progress.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/reference.h"

// Running a kernel of the registry on random inputs and judging its result: what `run` and `demo` share.
namespace tw::tools {

// The relative Frobenius error that a product of 16-bit inputs with fp32 accumulation stays under.
inline constexpr double error_limit = 2e-3;

struct GemmRequest {
  kernels::GemmShape shape;
  sim::ScheduleSpec schedule;
  uint64_t seed = 1;
  bool verify = true;
  sim::Observer* observer = nullptr;  // of the simulator
};

struct GemmOutcome {
  LaunchResult launch;
  double compile_seconds = 0;            // C++ to PTX text
  std::vector<std::string> notes;        // of the compiler
  std::optional<Comparison> comparison;  // when verified

  bool good() const { return !comparison || comparison->good(error_limit); }
};

GemmOutcome run_gemm(const kernels::GemmKernel& kernel, Device& device, const GemmRequest& request,
                     report::Progress& progress);

}  // namespace tw::tools
