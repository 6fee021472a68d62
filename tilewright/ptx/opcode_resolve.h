#pragma once
#include "tilewright/ptx/opcode.h"

namespace tw::ptx {

// Fills `candidate.operands` from its row and its modifiers.
void resolve_operands(const OpcodeText& text, OpcodeText::Candidate& candidate);

}  // namespace tw::ptx
