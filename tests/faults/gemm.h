#pragma once
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "tilewright/lower/compiled.h"
#include "tilewright/runtime/device.h"

// Kernels of the ladder, as the tests of the checker launch them.
namespace tw::faults {

struct Case {
  std::string kernel, device;
};
void PrintTo(const Case& c, std::ostream* out);
std::string test_name(const Case& c);  // "gemm_step7_b200"

// Steps 4 to 9 on both machines.
std::vector<Case> ladder_cases();

// A kernel and its operands on a machine with two SMs' worth of workers.
struct Gemm {
  std::shared_ptr<Device> device;
  Compiled kernel;
  Tensor a, b, d;  // a and b: random integers from -2 to 2, so that sums are exact in every order

  Gemm(const Case& c, kernels::GemmShape shape);
  // `k`: the kernel, or what was made of it. D is poisoned first.
  void launch(const Compiled& k, const sim::RunOptions& sim) const;
  void launch(const sim::RunOptions& sim) const { launch(kernel, sim); }
};

}  // namespace tw::faults
