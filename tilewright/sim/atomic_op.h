#pragma once
#include <cstdint>

#include "tilewright/ptx/module.h"

// The operations that combine a value with memory: "atom", "red", "red.async", and the reductions of bulk
// copies.
namespace tw::sim {

class Decoding;

enum class AtomicOp : uint8_t { and_, or_, xor_, exch, cas, add, inc, dec, min, max };
AtomicOp take_atomic_op(Decoding& d);  // not modelled: any other

// What memory holds after `op` (none of exch and cas) with operand `b`; values sit in the low bits.
// `flushes`: whether an f32 add flushes subnormals, as "atom" and "red" do in global memory; bulk reductions
// do not, against the ISA (conformance cases copies/global_add_f32 and tma/reduce_add_f32).
uint64_t atomic_result(AtomicOp op, ptx::Type type, uint64_t old, uint64_t b, bool flushes);

}  // namespace tw::sim
