#pragma once
#include <cstdint>
#include <unordered_map>

#include "tilewright/ir/kernel.h"
#include "tilewright/ptx/debug_map.h"

namespace tw::lowering {

// Where the kernel's buffers lie: byte offsets in the CTA's shared memory, first columns in tensor memory.
struct MemoryPlan {
  std::unordered_map<const ir::Buffer*, uint64_t> shared;   // bytes from the start of dynamic shared memory
  std::unordered_map<const ir::Buffer*, uint32_t> columns;  // from the allocated base
  uint64_t shared_bytes = 0;
  uint64_t tensor_memory_slot = 0;     // where the allocation's address is stored
  uint32_t tensor_memory_columns = 0;  // what is allocated: a power of two, at least 32; 0: none
  // The CTAs that allocate together, and with them the .cta_group of every tcgen05 instruction: "all must
  // specify the same value".
  int cta_group = 1;
};

// A user error lists every buffer with its size when the machine has too little.
MemoryPlan plan_memory(const ir::Kernel& kernel, ptx::DebugMap& names);

}  // namespace tw::lowering
