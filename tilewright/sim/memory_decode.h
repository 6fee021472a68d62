#pragma once
#include "tilewright/sim/decode.h"
#include "tilewright/sim/memory_access.h"

// What loads, stores, atomics and copies share in their modifiers.
namespace tw::sim {

struct MemoryModifiers {
  std::string_view space, scope;
  uint32_t vector = 1;
  bool strong = false;  // volatile or with an order, at a scope that other clusters belong to
};
// Takes order, scope, space, cache operators and hints (which change no values), and the vector length.
MemoryModifiers take_memory_modifiers(Decoding& d);
AddressSpace memory_space(Decoding& d, const MemoryModifiers& m, const Decoding::Address& address);

}  // namespace tw::sim
