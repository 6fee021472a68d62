#pragma once
#include <cstdint>
#include <memory>

#include "tilewright/ir/expr.h"

namespace tw::ir::testing {

// A run-time value in [lo, hi].
inline Expr bounded(const char* name, int64_t lo, int64_t hi) {
  auto v = std::make_shared<Variable>();
  v->name = name;
  v->lo = lo;
  v->hi = hi;
  return Expr(VarRef(v));
}

}  // namespace tw::ir::testing
