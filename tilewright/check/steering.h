#pragma once
#include <cstdint>
#include <vector>

#include "tilewright/sim/program.h"

namespace tw::check {

// What a static look at a program says about the instructions whose order among actors may matter.
class Steering {
 public:
  enum Flag : uint16_t {
    decides = 1,          // a wait whose failure leads elsewhere than back to it
    memory = 2,           // an atomic or strong access
    steers = 4,           // its result reaches a branch, an address, shared memory or another actor
    polls = 8,            // a loop may come back to it with nothing done in between
    signals = 16,         // issues an asynchronous operation that signals an mbarrier
    commutes = 32,        // an atomic whose order with its like cannot be seen in memory
    registers = 64,       // setmaxnreg
    tensor_memory = 128,  // its allocation
    other = 256,          // anything else that other actors can notice, or a CTA's end
  };

  explicit Steering(const sim::Program::Impl& program);
  uint16_t of(uint32_t pc) const { return pc < flags_.size() ? flags_[pc] : 0; }

 private:
  uint16_t flags_of(uint32_t pc) const;
  bool returns_when_false(uint32_t wait) const;
  bool may_return(uint32_t read) const;
  bool result_steers(uint32_t atomic) const;

  const sim::Code& code_;
  std::vector<uint16_t> flags_;
};

}  // namespace tw::check
