#pragma once
#include <functional>

#include "tilewright/lower/context.h"

namespace tw::lowering {

// Elements of register tiles. A 32-bit element is a register; two 16-bit elements share one, the even one
// below.

// A register that holds element `index` (of the type's own width).
ptx::RegId read_element(Context& c, const ir::Buffer& b, int64_t index);
void write_element(Context& c, const ir::Buffer& b, int64_t index, ptx::RegId value);
// Elements index and index + 1 of a 16-bit tile; two conversions from f32 become one packed instruction.
void write_pair(Context& c, const ir::Buffer& b, int64_t index, const ir::Expr& low, const ir::Expr& high);
// The element as an expression.
ir::Expr element_value(Context& c, const ir::Buffer& b, int64_t index);

// The expression with each element() and coordinate() leaf replaced.
ir::Expr instantiate(const ir::Expr& e, const std::function<ir::Expr(const ir::Expr&)>& leaf);

}  // namespace tw::lowering
