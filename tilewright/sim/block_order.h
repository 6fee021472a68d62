#pragma once
#include <cstdint>
#include <vector>

namespace tw::sim {

// The control flow of one instruction, as the block order needs it.
struct Successors {
  std::vector<uint32_t> targets;  // where it may branch to
  bool falls_through = true;
};

// Gives every instruction its position in an order for reconvergence: a lane that is behind in this order can
// still reach what lies ahead without going round a loop, and everything in a loop comes before everything
// after the loop. The order is a weak topological order of the basic blocks (F. Bourdoncle, "Efficient
// chaotic iteration strategies with widenings", 1993); running the lanes that are furthest behind first is
// the scheduling of thread frontiers (G. Diamos et al., "SIMD re-convergence at thread frontiers", MICRO
// 2011).
std::vector<uint32_t> block_order(const std::vector<Successors>& instructions);

// For every instruction a number of the outermost loop it lies in (or its own): a lane can come back to an
// instruction that is behind it in the order only if both have the same.
std::vector<uint32_t> outermost_loops(const std::vector<Successors>& instructions);

}  // namespace tw::sim
