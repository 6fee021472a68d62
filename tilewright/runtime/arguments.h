#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/lower/compiled.h"
#include "tilewright/runtime/device.h"

namespace tw {

// Matches the arguments of one launch with the parameters of a kernel. Arguments stand in the order of the
// parameters; `size` parameters take none, they follow from shapes, and neither do tensor maps, which
// describe tensors among the arguments.
class ArgumentBinder {
 public:
  // Checks number, kind, element type, shape, device and alignment, and collects run-time sizes.
  ArgumentBinder(const Compiled& kernel, std::span<const Argument> arguments, const Device& device);

  void check_requirements() const;
  // The entry's parameter block: every parameter at its naturally aligned offset, tensor maps at multiples of
  // 64 (PTX ISA, "Kernel Function Parameters", "Tensor-map"). User errors of a tensor map name the parameter
  // and the rule.
  std::vector<std::byte> pack() const;

  int64_t size(const std::string& symbol) const;  // user error when no tensor has it
  const std::vector<std::pair<std::string, int64_t>>& sizes() const { return sizes_; }
  std::string sizes_text() const;  // "M = 128, K = 64"

 private:
  void check_tensor(const Param& param, const Tensor& tensor, const Device& device);
  void check_extent(const Param& param, const Tensor& tensor, size_t axis);
  const Tensor& tensor(size_t param) const;  // the argument for kernel_.params[param]
  sim::TensorMapObject tensor_map(const Param& param) const;

  const Compiled& kernel_;
  const Device& device_;
  std::span<const Argument> arguments_;
  std::vector<std::pair<std::string, int64_t>> sizes_;
  std::vector<const Param*> origins_;  // of sizes_
};

// "f16 [128, 64] at 0x7f0000000000", "64"; for messages.
std::string argument_text(const Argument& argument);

}  // namespace tw
