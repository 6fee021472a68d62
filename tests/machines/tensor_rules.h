#pragma once
#include <cstdint>

namespace tw::machines {

// What an operation on the allocator of tensor memory breaks (PTX ISA, "tcgen05.alloc, tcgen05.dealloc,
// tcgen05.relinquish_alloc_permit"), and words of the message that says so.
enum class Rule : uint8_t {
  none,
  power,
  increase,
  relinquished,
  no_allocation,
  other_columns,
  differ,
  peer_gone,
  leak,
};
inline constexpr const char* kRuleWords[] = {"",
                                             "power of two in [32, 512]",
                                             "should not increase",
                                             "after tcgen05.relinquish_alloc_permit",
                                             "where no allocation begins",
                                             "were allocated",
                                             "both must name the same",
                                             "has exited",
                                             "are still allocated when the CTA ends"};

}  // namespace tw::machines
