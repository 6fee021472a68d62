#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/registry.h"
#include "tilewright/lower/compiled.h"

namespace CLI {
class App;
}

// A kernel of the registry for one shape and architecture.
namespace tw::tools {

// What the command line says about a shape; what it leaves out comes from the kernel's demo shape.
struct ShapeOptions {
  std::optional<int64_t> m, n, k;
  std::string dtype = "f16", tile;
  bool runtime_m = false;

  kernels::GemmShape of(const kernels::GemmKernel& kernel) const;
};
void add_shape_options(CLI::App& command, ShapeOptions& options);

// "128x256" as the tile of `gemm`; empty: it chooses. A user error when the text is nothing of the kind.
void set_tile(kernels::GemmShape& shape, const std::string& text);

// A user error when the kernel is not written for `arch`.
ir::Kernel record(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch);
Compiled compile(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch);

std::string to_string(const kernels::GemmShape& shape);  // "256x384x128 f16"

}  // namespace tw::tools
