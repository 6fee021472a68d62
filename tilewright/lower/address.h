#pragma once
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/lower/context.h"

namespace tw::lowering {

// Address in bytes of an element of a tile in global memory (i64) or shared memory (i32). `coordinate` counts
// along the tile's kept dimensions.
ir::Expr element_address(const Context& c, const ir::Tile& tile, std::span<const ir::Expr> coordinate);

// Address in bytes of a shared tile's first element before the swizzle, which matrix descriptors leave to the
// hardware, within the CTA's shared memory.
ir::Expr unswizzled_address(const Context& c, const ir::Tile& tile);

// Whether the element lies inside its tensor: what is not certain at compile time, over global tensors only.
ir::Expr in_bounds(const Context& c, const ir::Tile& tile, std::span<const ir::Expr> coordinate);

// How a tile in registers is spread over a scope's threads. The element in slot s of a thread has the
// coordinate thread[d] + slots[s].coordinate[d] along kept dimension d.
struct Fragment {
  struct Slot {
    int64_t element;  // index among the thread's elements of the buffer
    std::vector<int64_t> coordinate;
  };
  std::vector<ir::Expr> thread;
  std::vector<Slot> slots;  // by element
};
// Or the reason why the tile has no such form for this scope.
std::variant<Fragment, std::string> fragment_of(const Context& c, const ir::Tile& tile, ir::Scope scope,
                                                const SourceLoc& loc);

// A run of consecutive slots whose elements lie side by side in memory.
struct Run {
  size_t first;        // slot
  ir::Expr address;    // bytes
  ir::Expr in_bounds;  // of the run's elements
};
struct Runs {
  int64_t elements = 1;  // per run
  std::vector<Run> runs;
};
// The widest vectors, up to 16 bytes, in which a fragment's elements move to or from a tile in memory.
Runs vectorize(const Context& c, const Fragment& f, const ir::Tile& memory);

}  // namespace tw::lowering
