#pragma once
#include "tilewright/ir/kernel.h"
#include "tilewright/lower/compiled.h"

namespace tw {

// Compiles a kernel to one PTX module. User errors carry the kernel's source lines: no matching dispatch
// (every rule with its reason), too much shared or tensor memory.
Compiled lower(const ir::Kernel& kernel);

}  // namespace tw
