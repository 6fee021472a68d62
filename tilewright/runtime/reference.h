#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tilewright/runtime/device.h"

// What results are judged against.
namespace tw {

// D[i, j] = sum_k A[i, k] * B[j, k] in fp64, from values as stored: A is m x k, B n x k, D m x n, all
// row-major. Runs on all host threads; the result does not depend on their number.
std::vector<double> reference_gemm(std::span<const float> a, std::span<const float> b, int64_t m, int64_t n,
                                   int64_t k);

// The same for the tensors of a launch. User error unless A is [m, k] and B is [n, k].
std::vector<double> reference_gemm(const Tensor& a, const Tensor& b);

// How far an output stands from its reference. Errors are relative Frobenius norms, |D - R| / |R|; infinite
// when an element is not finite where the reference is.
struct Comparison {
  double error = 0;  // against the fp64 reference
  double error_rounded =
      0;  // against the reference rounded to the output's type: 0 if every element is the nearest one
  int64_t non_finite = 0;  // elements that are NaN or infinite and should not be
  uint64_t unwritten = 0;  // bytes no kernel wrote
  int64_t worst = 0;       // row-major index of the element farthest from the reference
  double worst_given = 0, worst_expected = 0;

  bool good(double limit) const {
    return error < limit && error_rounded < limit && non_finite == 0 && unwritten == 0;
  }
};
Comparison compare(std::span<const float> values, DType dtype, std::span<const double> reference);
// Also counts unwritten bytes: poison the output before the launch.
Comparison compare(const Tensor& output, std::span<const double> reference);

// One line: "error 1.9e-04, rounded 2.1e-05", and what is wrong if something is.
std::string to_string(const Comparison& comparison);

}  // namespace tw
