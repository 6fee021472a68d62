#pragma once
#include "tilewright/lower/context.h"

namespace tw::lowering {

// Writes a block of statements executed by `active`.
void lower_block(Context& c, const ir::Block& block, const ir::ActiveSet& active);

// Address of stage `stage` of a barrier, in bytes.
ir::Expr barrier_address(const Context& c, const ir::Buffer& barrier, const ir::Expr& stage);

}  // namespace tw::lowering
