#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewright/sim/program.h"

namespace tw::check {

// Which shared variable an address was computed from. PTX does not say how variables lie to each other, so an
// access through the address of one must stay inside it.
//
// Found in the text, without regard to the order of instructions: a register has an origin when all that is
// written to it comes from one variable.
class AddressOrigins {
 public:
  explicit AddressOrigins(const sim::Program::Impl& program);

  // Of the address that is operand 0 or 1 of an instruction; nothing: several, or unknown.
  const sim::SharedSymbol* of(uint32_t pc, size_t operand) const {
    return pc < of_.size() ? of_[pc][operand] : nullptr;
  }

 private:
  std::vector<std::array<const sim::SharedSymbol*, 2>> of_;  // empty: there is nothing to tell apart
};

}  // namespace tw::check
