#pragma once
#include <string>
#include <string_view>

#include "kernels/registry.h"
#include "tilewright/lower/compiled.h"

// A kernel of the registry for one shape and architecture.
namespace tw::tools {

// Extents that the command line leaves out (0) come from the kernel's demo shape; a user error when one is
// negative.
kernels::GemmShape complete(const kernels::GemmKernel& kernel, kernels::GemmShape asked);

// A user error when the kernel is not written for `arch`.
ir::Kernel record(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch);
Compiled compile(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch);

std::string to_string(const kernels::GemmShape& shape);  // "256x384x128 f16"

}  // namespace tw::tools
