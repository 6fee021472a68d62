#pragma once
#include <cstddef>
#include <cstdint>

#include "tilewright/check/clock.h"
#include "tilewright/ptx/module.h"

// PTX ISA, "membar, fence": the order of a proxy fence "is limited only to operations performed on objects in
// the state space specified. If no state space is specified, then the memory ordering applies on all state
// spaces". So what is visible to the async proxy is known for each kind of memory by itself.
namespace tw::check {

// The memories of one cluster that state spaces tell apart: the shared memory of each of its CTAs
// (.shared::cta is the executing CTA's, .shared::cluster that of all), and global memory. A clock of
// what proxy fences made visible has one part for each, one behind the other; each begins at the place given
// here. Global memory is last: kernels that fence shared memory alone keep short clocks.
class Spaces {
 public:
  Spaces(size_t actors, size_t ctas) : actors_(actors), ctas_(ctas) {}
  static constexpr size_t kMost = 17;  // a cluster has at most 16 CTAs
  size_t shared(size_t rank) const { return begin(rank); }
  size_t global() const { return begin(ctas_); }
  size_t count() const { return ctas_ + 1; }
  size_t actors() const { return actors_; }
  // The last actor: the grid before a dependent launch.
  size_t grid_before() const { return actors_ - 1; }
  size_t begin(size_t number) const { return number * actors_; }

 private:
  size_t actors_, ctas_;
};

// What a proxy fence between threads and the async proxy orders.
struct ProxyFence {
  bool own = false, peers = false, global = false;  // shared memory of its CTA, of the others; global memory
  bool back = false;                                // also async accesses before threads' accesses

  bool shared() const { return own || peers; }
  // f(begin) of the part of a clock for each memory that it orders, for a thread of CTA `rank`.
  template <class F>
  void each(const Spaces& spaces, size_t rank, F f) const {
    for (size_t r = 0; r + 1 < spaces.count(); ++r)
      if (r == rank ? own : peers) f(spaces.shared(r));
    if (global) f(spaces.global());
  }
};
// Orders nothing where the instruction is no such fence: "fence.proxy.alias".
ProxyFence proxy_fence(const ptx::Instruction& inst);

}  // namespace tw::check
