#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tilewright/ptx/module.h"
#include "tilewright/sim/inst.h"

// Calls of .func functions. A function has one copy of its code, its registers and its parameters, which lie
// in the threads' local memory; lanes that call it from different places run it together. Where a function
// can call itself, a call keeps what the lanes had in it and the return brings it back.
namespace tw::sim {

struct Subroutine {
  const ptx::Function* source = nullptr;
  uint32_t first_register = 0;            // index of its first register in the program's
  uint32_t begin = 0;                     // pc of its first instruction
  std::vector<uint32_t> returns;          // pcs of its ret instructions
  std::vector<uint32_t> return_sites;     // pcs that follow calls of it
  std::vector<uint32_t> params, results;  // offsets in local memory
  bool recursive = false;

  // What a recursive call has to keep: rows of registers, ranges of local memory.
  struct Row {
    Slot slot;
    uint32_t lane_bytes;  // 4 or 8; 0: a predicate
  };
  struct Range {
    uint32_t offset, bytes;
  };
  std::vector<Row> rows;
  std::vector<Range> ranges;
  std::vector<const Subroutine*> callees;
};

// One call instruction.
struct CallSite {
  const Subroutine* function = nullptr;
  uint32_t return_to = 0;  // pc
  struct Transfer {
    uint32_t bytes = 0, parameter = 0;  // of the function, in local memory
    bool in_memory = false;             // the caller's side: a variable at `variable`, or a register row
    uint32_t variable = 0;
    Slot row;
  };
  std::vector<Transfer> arguments, results;
};

// Where each lane of a warp has to return to.
class CallStack {
 public:
  static constexpr size_t kDepth =
      1000;  // calls within calls; a kernel's real limit is the size of its stack
  struct Record {
    const CallSite* site;
    std::shared_ptr<const std::vector<std::byte>> kept;  // of a recursive function
  };
  std::array<std::vector<Record>, kLanes> lanes;
};

}  // namespace tw::sim
