#pragma once
#include "tilewright/sim/memory_op.h"

namespace tw::sim {

// A handler for the common forms of loads and stores: all 32 lanes, the CTA's own shared memory or one
// allocation of global memory. Whatever it meets that is not so, faults included, it leaves to run_load and
// run_store. nullptr when the instruction itself is not of a common form.
Handler row_handler(const MemoryOp& op, bool load, bool wide_address);

}  // namespace tw::sim
