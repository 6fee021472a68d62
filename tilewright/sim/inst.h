#pragma once
#include <cstdint>

// A decoded instruction and where its operands live. Decode functions fill it once; handlers read it.
namespace tw::sim {

class Warp;

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kAllLanes = ~0u;

// Where an operand's row is: a base of the warp (Warp::base) and a byte offset from it.
//   registers of up to 32 bits, and immediates:  uint32_t[32], a narrower value in the low bits, the rest
//   zero 64-bit registers:                            uint64_t[32] 128-bit registers: uint64_t[32] low
//   halves, then uint64_t[32] high halves predicates:                                  one uint32_t, bit i
//   belongs to lane i
struct Slot {
  enum Base : uint32_t { registers, constants, launch };
  uint32_t offset = 0;
  Base base = registers;
  bool operator==(const Slot&) const = default;
};

// What a handler tells the warp's loop.
enum class Flow : uint8_t {
  next,   // done: go on with the following instruction
  jump,   // the handler set the fragments itself (branch, exit)
  wait,   // suspended: Warp::suspend was called; the handler runs again with Warp::wake() set when the wait
          // ends
  yield,  // done, but other warps should run before this one goes on (an unsuccessful poll)
  order,  // nothing done: must be executed in the deterministic order of accesses between clusters
          // (cluster.h)
};

struct Inst;
// `lanes`: the active lanes whose guard holds; never empty. Warp::active() gives all active lanes.
using Handler = Flow (*)(Warp& warp, const Inst& inst, uint32_t lanes);

// Which lanes have to be at a collective instruction before it executes; the warp's loop waits for them.
enum class Gather : uint8_t {
  none,
  aligned,  // ".aligned": every live lane of the warp
  warp,     // every live lane of the warp, however late (barrier.sync without .aligned)
  members,  // ".sync": the lanes of the member mask in s[4] that have not exited
};

struct Inst {
  Handler run = nullptr;
  uint32_t guard = 0;       // offset of the guard predicate; offset 0 holds "true"
  uint32_t guard_flip = 0;  // all ones for "@!p"
  Slot s[5];                // as the handler likes it; by custom s[0] is the destination
  int64_t imm = 0;          // an address offset, a lookup table, a branch target: as the handler likes it
  uint32_t aux = 0;
  Gather gather = Gather::none;
  uint8_t always = 0;           // run the handler even when no lane's guard holds
  const void* extra = nullptr;  // what does not fit above; owned by the Program (Decoding::keep)
};

}  // namespace tw::sim
