#include "tools/compile.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"

namespace tw::tools {

kernels::GemmShape complete(const kernels::GemmKernel& kernel, kernels::GemmShape asked) {
  if (asked.m == 0) asked.m = kernel.demo.m;
  if (asked.n == 0) asked.n = kernel.demo.n;
  if (asked.k == 0) asked.k = kernel.demo.k;
  if (std::min({asked.m, asked.n, asked.k}) < 0)
    user_error({}, "a gemm has positive extents; got {}", to_string(asked));
  return asked;
}

ir::Kernel record(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch) {
  if (std::find(kernel.archs.begin(), kernel.archs.end(), arch) == kernel.archs.end()) {
    std::string known;
    for (const std::string& a : kernel.archs) known += (known.empty() ? "" : " and ") + a;
    user_error({}, "{} is written for {}, not for {}", kernel.name, known, arch);
  }
  return kernel.build(shape, arch);
}

Compiled compile(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch) {
  return lower(record(kernel, shape, arch));
}

std::string to_string(const kernels::GemmShape& s) {
  return format("{}x{}x{} {}", s.m, s.n, s.k, name(s.dtype));
}

}  // namespace tw::tools
