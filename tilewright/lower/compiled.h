#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/source.h"
#include "tilewright/ptx/debug_map.h"
#include "tilewright/ptx/module.h"

namespace tw {

// A size that is a number, or a run-time size of the kernel, looked up by name at launch.
struct Size {
  int64_t value = 0;
  std::string symbol;  // empty: `value` holds

  bool fixed() const { return symbol.empty(); }
  bool operator==(const Size&) const = default;
};

// One parameter of the entry, in the order of the entry's parameter list.
struct Param {
  enum class Kind {
    tensor,      // .u64 address of a dense row-major tensor
    size,        // .u32 value of a run-time size, taken from the tensors' shapes
    scalar,      // a number the caller passes
    tensor_map,  // 128 bytes, encoded at launch from a tensor argument
  };
  Kind kind = Kind::tensor;
  std::string name;
  DType dtype = DType::u8;  // element type, or the scalar's type
  std::vector<Size> shape;  // tensor: logical extents
  uint32_t align = 16;      // tensor: required alignment of the address in bytes
  SourceLoc loc;            // where the kernel declares it
};

// A grid extent, evaluated at launch: a number, or a function of the run-time sizes.
using Extent = std::function<int64_t(const std::function<int64_t(const std::string&)>& size)>;

// A requirement on run-time sizes that the kernel states ("K is a multiple of 64"); checked before a launch.
struct Requirement {
  std::function<bool(const std::function<int64_t(const std::string&)>& size)> holds;
  std::string text;
  SourceLoc loc;
};

// What lowering makes of a kernel: everything a launch needs.
struct Compiled {
  std::string name;   // "gemm.step1"
  std::string entry;  // PTX entry name
  std::shared_ptr<const ptx::Module> module;
  std::shared_ptr<const std::string> text;  // the printed module: what runs
  std::shared_ptr<const ptx::DebugMap> names;
  std::vector<Param> params;
  std::vector<Requirement> requirements;
  Extent grid[3];
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;     // bytes
  std::vector<std::string> notes;  // what the author should know: a scalar fallback, wasted alignment
};

}  // namespace tw
