#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/source.h"

// What a module's author called things. It travels beside the module: reports name buffer, stage, barrier and
// role instead of addresses and registers. Empty for foreign PTX.
namespace tw::ptx {

struct Region {  // bytes of shared memory, or columns of tensor memory, that carry a name
  std::string name;
  uint64_t begin = 0, end = 0;  // [begin, end): bytes from the CTA's shared base, or tensor-memory columns
  DType dtype = DType::u8;
  std::vector<int64_t> shape;  // logical; when staged the first extent counts stages
  bool staged = false;
  bool is_barrier = false;
  SourceLoc loc;
};

struct DebugMap {
  std::string kernel;
  std::vector<Region> shared;
  std::vector<Region> tensor_memory;
  std::vector<std::string> roles;                              // Instruction::role indexes this
  std::vector<std::pair<std::string, std::string>> registers;  // PTX register name, the author's name
  std::vector<std::string> params;                             // by parameter index
};

}  // namespace tw::ptx
