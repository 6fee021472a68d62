#pragma once
#include "tilewright/lower/context.h"

namespace tw::lowering {

// Writes a block of statements executed by `active`.
void lower_block(Context& c, const ir::Block& block, const ir::ActiveSet& active);

// A loop that runs at least once: its counter and branch around `body`, which may change `assigned`. The
// loop's own block is not looked at; begin and end are resolved.
void counted_loop(Emitter& e, const ir::For& loop, const std::unordered_set<const ir::Variable*>& assigned,
                  const std::function<void()>& body);

// Address of stage `stage` of a barrier, in bytes: in this CTA's shared memory, and, of a barrier of a CTA
// pair, where the pair's is.
ir::Expr barrier_address(const Context& c, const ir::Buffer& barrier, const ir::Expr& stage);
ir::Expr signal_address(const Context& c, const ir::Buffer& barrier, const ir::Expr& stage);

}  // namespace tw::lowering
