#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dsl/dsl.h"

// The kernels that come with Tilewright, by name.
namespace tw::kernels {

// D (m x n) = A (m x k) * B (n x k)^T; A, B and D hold dtype, sums are f32.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f16;
  bool runtime_m = false;      // M is A's number of rows at launch; m is only what `gemm` plans for
  int sms = 0;                 // SMs that a persistent kernel takes; 0: all the architecture's GPU has
  int tile_m = 0, tile_n = 0;  // of `gemm`; 0: it chooses
};

struct GemmKernel {
  std::string name;                // "gemm.step1"
  std::string idea;                // what it adds to the step before
  std::vector<std::string> archs;  // "sm_90a", "sm_100a"
  // A user error names what the step cannot do.
  std::function<ir::Kernel(const GemmShape&, std::string_view arch)> build;
  GemmShape demo;  // a shape that shows the idea
};

std::span<const GemmKernel> gemm_kernels();
const GemmKernel& gemm_kernel(std::string_view name);  // user error that lists the names

}  // namespace tw::kernels
