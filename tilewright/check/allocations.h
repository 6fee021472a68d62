#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "tilewright/check/protocol.h"

namespace tw::check {

// Which warp was given which columns of tensor memory. Most kernels give them back by the same one, and some
// authors hold that it must be; the PTX ISA ("tcgen05.alloc") does not say, and either works.
class TensorAllocations {
 public:
  explicit TensorAllocations(Report report) : report_(std::move(report)) {}
  void given(const sim::Warp& warp, int column);
  void given_back(const sim::Warp& warp, int column);

 private:
  struct Owner {
    uint32_t warp, pc;
  };
  Report report_;
  std::map<std::pair<uint32_t, int>, Owner> owners_;  // by CTA rank and first column
};

}  // namespace tw::check
