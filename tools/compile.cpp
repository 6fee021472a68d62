#include "tools/compile.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "tilewright/base/error.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"

namespace tw::tools {

kernels::GemmShape ShapeOptions::of(const kernels::GemmKernel& kernel) const {
  kernels::GemmShape s = kernel.demo;
  s.m = m.value_or(s.m), s.n = n.value_or(s.n), s.k = k.value_or(s.k);
  s.dtype = dtype_from_name(dtype);
  s.runtime_m = runtime_m;
  set_tile(s, tile);
  return s;
}

void set_tile(kernels::GemmShape& shape, const std::string& text) {
  if (text.empty()) return;
  const char* end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, shape.tile_m);
  if (rows.ec == std::errc{} && rows.ptr != end && *rows.ptr == 'x') {
    const auto columns = std::from_chars(rows.ptr + 1, end, shape.tile_n);
    if (columns.ec == std::errc{} && columns.ptr == end && shape.tile_m > 0 && shape.tile_n > 0) return;
  }
  user_error({}, "'{}' is no tile; write rows x columns of D: 128x256", text);
}

void add_shape_options(CLI::App& command, ShapeOptions& options) {
  command.add_option("-m", options.m, "rows of D (default: the shape of `tw demo`)");
  command.add_option("-n", options.n, "columns of D");
  command.add_option("-k", options.k, "inner extent");
  command.add_flag("--runtime-m", options.runtime_m, "compile for any number of rows, known at launch only");
  command.add_option("--dtype", options.dtype, "f16 or bf16")->capture_default_str();
  command.add_option("--tile", options.tile, "MxN, of D: the tile that `gemm` takes (default: its choice)");
}

ir::Kernel record(const kernels::GemmKernel& kernel, const kernels::GemmShape& shape, std::string_view arch) {
  if (std::find(kernel.archs.begin(), kernel.archs.end(), arch) == kernel.archs.end()) {
    std::string known;
    for (const std::string& a : kernel.archs) known += (known.empty() ? "" : ", ") + a;
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
