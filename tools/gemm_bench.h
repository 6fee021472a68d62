#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "tilewright/report/progress.h"
#include "tilewright/runtime/cublas.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/reference.h"

// Measuring kernels of the registry and cuBLAS side by side in one process.
namespace tw::tools {

struct GemmBenchOptions {
  std::vector<const kernels::GemmKernel*> kernels;
  int rounds = 15;
  uint64_t working_set = 400'000'000;  // bytes of all copies: three times the largest L2 of these GPUs
  uint64_t seed = 1;
};

// What became of one kernel on one shape.
struct GemmBenchEntry {
  std::string kernel;
  std::string refusal;  // why the kernel does not serve the shape; then nothing below is set
  double seconds = 0;   // median over rounds
  double fastest = 0;   // seconds, over rounds
  Comparison sample;    // some rows against fp64
  int64_t sampled_rows = 0;
  std::optional<double> from_cublas;  // relative Frobenius distance to cuBLAS' results, all elements
  double from_cublas_limit = 0;       // error_limit and cuBLAS' own error together

  bool good() const;
};

struct GemmBenchResult {
  kernels::GemmShape shape;
  int buffer_sets = 0;
  std::vector<GemmBenchEntry> entries;
  std::optional<double> cublas_seconds;  // median over rounds
  std::optional<double> cublas_error;    // of its sampled rows, against fp64

  // cuBLAS' time over the kernel's: above 1 the kernel is faster.
  std::optional<double> ratio(const GemmBenchEntry& entry) const;
};

// "square", "llm", "all" or shapes such as "4096x4096x4096,128x6144x4096". A user error names what is wrong.
std::vector<kernels::GemmShape> parse_gemm_shapes(const std::string& text, DType dtype);

// On a GPU: operands are normal random numbers; launches rotate through copies of the operands and results
// that together exceed the L2 cache several times; launches of one contender are timed in batches between two
// events that follow a long fill, so that the queue never runs dry; the contenders take turns, and the order
// changes every round. `cublas` may be null. Each kernel's results, taken from such a batch, are compared
// with cuBLAS' results and, in a sample of rows, with an fp64 product.
GemmBenchResult bench_gemm(Device& device, cuda::Cublas* cublas, const kernels::GemmShape& shape,
                           const GemmBenchOptions& options, report::Progress& progress);

}  // namespace tw::tools
