#pragma once
#include <array>
#include <cstdint>

#include "tilewright/sim/inst.h"
#include "tilewright/sim/memory_access.h"

namespace tw::sim {

// How one element of a load or store fits between memory and a register.
struct ElementSpec {
  uint32_t bytes = 4;           // in memory
  uint32_t register_bytes = 4;  // row elements: 4, 8 or 16
  bool sign = false;            // extend with the sign
};

// A decoded "ld" or "st" (Inst::extra); the address is in s[0], imm and aux, as decode_access leaves it.
struct MemoryOp {
  AddressSpace space = AddressSpace::generic;
  ElementSpec element;
  uint32_t count = 1;
  std::array<Slot, 8> registers;
  std::array<bool, 8> used{};  // "_" in a vector is skipped
  bool strong = false;         // other clusters may wait for it: ordered between clusters when global
};

// Any load and any store.
Flow run_load(Warp& w, const Inst& i, uint32_t lanes);
Flow run_store(Warp& w, const Inst& i, uint32_t lanes);

}  // namespace tw::sim
