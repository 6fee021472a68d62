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
  size_t map = 0;           // tensor_map: index into Compiled::maps
  SourceLoc loc;            // where the kernel declares it
};

// A grid extent, evaluated at launch: a number, or a function of the run-time sizes.
using Extent = std::function<int64_t(const std::function<int64_t(const std::string&)>& size)>;

// How a tensor is cut into boxes for TMA: the arguments of cuTensorMapEncodeTiled (CUDA driver API, "Tensor
// Map Object Management"), innermost dimension first. Extents that depend on run-time sizes are evaluated at
// launch.
struct TensorMap {
  enum class Swizzle : uint8_t { none, b32, b64, b128 };
  enum class L2Promotion : uint8_t { none, b64, b128, b256 };

  size_t tensor = 0;  // index into Compiled::params of the tensor it describes
  DType dtype = DType::f16;
  std::vector<Extent> dims;     // elements
  std::vector<Extent> strides;  // bytes, of dims 1 and up
  std::vector<uint32_t> box;    // elements
  Swizzle swizzle = Swizzle::none;
  L2Promotion l2 = L2Promotion::b128;
  bool nan_fill = false;  // what lies outside reads as NaN instead of zero
};

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
  std::vector<TensorMap> maps;
  std::vector<Requirement> requirements;
  Extent grid[3];
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;     // bytes
  std::vector<std::string> notes;  // what the author should know: a scalar fallback, wasted alignment
};

}  // namespace tw
