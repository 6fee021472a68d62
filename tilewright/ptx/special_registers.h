#pragma once
#include <span>
#include <string_view>

#include "tilewright/ptx/module.h"

namespace tw::ptx {

// A predefined read-only variable (PTX ISA, chapter "Special Registers").
struct SpecialRegister {
  std::string_view name;  // "%tid.x"
  Type type = Type::u32;
};
std::span<const SpecialRegister> special_registers();
const SpecialRegister* find_special_register(std::string_view name);  // nullptr if there is none

}  // namespace tw::ptx
