#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tw::ptx {

// What ptxas says about PTX text.
struct Assembly {
  bool ok = false;
  std::string log;  // errors, warnings, and for each entry its registers, shared memory, spills
};
// Assembles `ptx` for `arch` ("sm_90a") when ptxas is on PATH or in /usr/local/cuda/bin; nullopt when it is
// not.
std::optional<Assembly> assemble(std::string_view ptx, std::string_view arch);

// Path of a program on PATH or in /usr/local/cuda/bin; empty when there is none.
std::string find_cuda_tool(std::string_view name);

}  // namespace tw::ptx
