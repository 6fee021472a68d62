#pragma once
#include <bit>
#include <cstdint>

namespace tw::sim {

// A member mask is a register of each lane: lanes that come to an instruction together may belong to several
// groups, each of which waits for its own members alone. f(mask, group) hears of each group's lanes among
// `lanes`.
template <class F>
void each_group(const uint32_t* masks, uint32_t lanes, F f) {
  while (lanes != 0) {
    const uint32_t mask = masks[std::countr_zero(lanes)];
    uint32_t group = 0;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1)
      if (masks[std::countr_zero(rest)] == mask) group |= rest & (~rest + 1);
    lanes &= ~group;
    f(mask, group);
  }
}

}  // namespace tw::sim
