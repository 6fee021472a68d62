#pragma once
#include "tilewright/ptx/module.h"

namespace tw::ptx {

// Checks what the grammar leaves open: register types against instruction types (PTX ISA, "Type Information
// for Instructions and Operands" and "Operand Size Exceeding Instruction-Type Size"), kinds of constants,
// elements that must fill a packed move, the target architecture, labels. A user error names the first
// violation; its notes, up to ten more.
void verify(const Module& module);

}  // namespace tw::ptx
