#pragma once
#include <cstdint>
#include <vector>

#include "tilewright/ir/expr.h"

// Integer arithmetic in normal form. An integer expression is a sum of coefficient * atom plus a constant,
// where an atom is whatever addition and multiplication by constants cannot open: a variable, a quotient, an
// exclusive or. Division and remainder by constants split off what divides exactly, and vanish where the
// range says so. ptxas does not do this for us, and an address without it costs a division in the main loop.
namespace tw::ir {

struct Term {
  int64_t coefficient = 0;
  Expr atom;
};
struct Linear {
  std::vector<Term> terms;  // atoms differ, coefficients are not zero
  int64_t constant = 0;
};

Linear linear(const Expr& e);
Expr to_expr(const Linear& sum, DType type);
Range range(const Linear& sum);

// Terms and constant part whose coefficients `divisor` divides, and the rest.
struct Split {
  Linear exact, rest;
};
Split split(const Linear& sum, int64_t divisor);

Expr simplify_div(const Expr& a, int64_t divisor);  // divisor > 0
Expr simplify_mod(const Expr& a, int64_t divisor);

// x ^ (((x >> (base + shift)) mod 2^bits) << base): the swizzle of shared memory. What lies above the
// pattern's period leaves the exclusive or, so that stages and unrolled rows become plain offsets.
Expr swizzle(const Expr& x, int base, int bits, int shift);

}  // namespace tw::ir
