#pragma once

namespace tw::ptx {

extern const char* const opcode_rows;    // grammar: opcode_table.cpp
extern const char* const rejected_rows;  // "reason: opcodes"

}  // namespace tw::ptx
