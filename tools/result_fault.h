#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/check/report.h"
#include "tilewright/runtime/reference.h"

// What a launch left in memory and should not have, as faults of a report: kernels of the registry and
// foreign PTX are judged in the same words.
namespace tw::tools {

// A row-major array as the user knows it.
struct NamedArray {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  SourceLoc loc;  // where the kernel or the launch file speaks of it

  int64_t elements() const;
  std::string element(int64_t number) const;  // "D[1, 2]"
};

// `missing` bytes were never written; the first of them lies at offset `first`.
check::Fault unwritten_fault(const NamedArray& array, uint64_t missing, uint64_t first);

// The error exceeds `limit`. Says how far off the whole is, which element is farthest off, and in which part
// of the array those lie that are off by far more than the limit lets the whole be.
check::Fault wrong_result_fault(const NamedArray& array, const Comparison& comparison, double limit,
                                const std::vector<double>& values, const std::vector<double>& expected);

}  // namespace tw::tools
