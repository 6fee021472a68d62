#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/lower/context.h"

namespace tw::lowering {

// A tile operation where it stands.
struct Site {
  const ir::TileOp& op;
  const ir::ActiveSet& active;
  SourceLoc loc;
};

// A way to carry out an operation: what it costs (relative to the other ways), and the code.
struct Plan {
  int cost = 0;
  std::function<void()> emit;
};
using Answer = std::variant<Plan, std::string>;  // or the reason why this rule does not fit

struct Rule {
  std::string_view name;
  ir::TileOpKind kind;
  Answer (*match)(Context& c, const Site& site);
};
std::span<const Rule> rules();

// Chooses the cheapest rule that matches (among those of the requested name) and emits it. A user error lists
// every rule with its reason when none matches.
void dispatch(Context& c, const Site& site);

// One file per primitive.
Answer copy_vector(Context& c, const Site& site);  // global <-> shared, by vectors that the threads share out
Answer copy_registers(Context& c, const Site& site);  // registers <-> global, shared, as their layout says
Answer copy_stmatrix(Context& c, const Site& site);   // wgmma accumulators -> shared memory
Answer copy_tma(Context& c, const Site& site);        // global <-> shared by the copy engine
Answer copy_tensor_memory(Context& c, const Site& site);  // tensor memory -> registers, tcgen05.ld
Answer fill_registers(Context& c, const Site& site);
Answer compute_registers(Context& c, const Site& site);
Answer gemm_tcgen05(Context& c, const Site& site);
Answer gemm_wgmma(Context& c, const Site& site);

}  // namespace tw::lowering
