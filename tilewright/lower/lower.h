#pragma once
#include "tilewright/ir/kernel.h"
#include "tilewright/lower/compiled.h"

namespace tw {

// Compiles a kernel to one PTX module. User errors carry the kernel's source lines: no matching dispatch
// (every rule with its reason), too much shared or tensor memory.
Compiled lower(const ir::Kernel& kernel);

// From now on `seen` is called with every kernel that lower() has compiled, by the thread that did.
void on_compiled(void (*seen)(const Compiled&));

}  // namespace tw
