#include "tilewright/ir/simplify.h"

#include <algorithm>
#include <numeric>

#include "tilewright/base/math.h"

namespace tw::ir {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

void accumulate(Linear& into, int64_t coefficient, const Expr& atom) {
  if (coefficient == 0) return;
  for (auto it = into.terms.begin(); it != into.terms.end(); ++it) {
    if (!same(it->atom, atom)) continue;
    it->coefficient += coefficient;
    if (it->coefficient == 0) into.terms.erase(it);
    return;
  }
  into.terms.push_back({coefficient, atom});
}

void accumulate(Linear& into, int64_t factor, const Linear& sum) {
  for (const Term& t : sum.terms) accumulate(into, factor * t.coefficient, t.atom);
  into.constant += factor * sum.constant;
}

void collect(Linear& into, int64_t factor, const Expr& e) {
  if (auto c = e.constant()) {
    into.constant += factor * *c;
    return;
  }
  if (e->op == Op::add) {
    for (const Expr& a : e->args) collect(into, factor, a);
    return;
  }
  if (e->op == Op::mul && e->args[1].constant()) {
    collect(into, factor * *e->args[1].constant(), e->args[0]);
    return;
  }
  // Widening is exact: index arithmetic is assumed not to overflow its type.
  if (e->op == Op::cast && is_integer(e->args[0].type()) && bits(e.type()) >= bits(e->args[0].type())) {
    collect(into, factor, e->args[0]);
    return;
  }
  accumulate(into, factor, e);
}

// An atom in a wider type. A product is exact there, as the sums of its factors are.
Expr widened(const Expr& atom, DType type) {
  if (atom->op == Op::mul && is_integer(atom.type()) && bits(atom.type()) < bits(type))
    return make_node(Op::mul, type, {cast(type, atom->args[0]), cast(type, atom->args[1])});
  return make_node(Op::cast, type, {atom});
}

// The greatest common divisor of all coefficients and `seed`.
int64_t common(const Linear& sum, int64_t seed) {
  int64_t g = seed;
  for (const Term& t : sum.terms) g = std::gcd(g, t.coefficient);
  return g;
}

Linear divided(const Linear& sum, int64_t divisor) {
  Linear out;
  for (const Term& t : sum.terms) out.terms.push_back({t.coefficient / divisor, t.atom});
  out.constant = sum.constant / divisor;
  return out;
}

}  // namespace

Linear linear(const Expr& e) {
  Linear sum;
  collect(sum, 1, e);
  return sum;
}

Expr to_expr(const Linear& sum, DType type) {
  std::vector<Expr> parts;
  for (const Term& t : sum.terms) {
    Expr atom = t.atom.type() == type ? t.atom : widened(t.atom, type);
    if (t.coefficient == 1) {
      parts.push_back(atom);
    } else {
      Expr factor = integer(type, t.coefficient);
      parts.push_back(make_node(Op::mul, type, {atom, factor}));
    }
  }
  // A canonical order, so that equal sums are the same tree.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Expr& a, const Expr& b) { return a->hash < b->hash; });
  if (sum.constant != 0 || parts.empty()) parts.push_back(integer(type, sum.constant));
  if (parts.size() == 1) return parts[0];
  return make_node(Op::add, type, std::move(parts));
}

Range range(const Linear& sum) {
  Range total{sum.constant, sum.constant};
  const auto add = [](std::optional<int64_t>& to, int64_t coefficient, const std::optional<int64_t>& bound) {
    int64_t product, result;
    if (to && bound && !__builtin_mul_overflow(coefficient, *bound, &product) &&
        !__builtin_add_overflow(*to, product, &result))
      to = result;
    else to.reset();
  };
  for (const Term& t : sum.terms) {
    Range r = range(t.atom);
    add(total.lo, t.coefficient, t.coefficient > 0 ? r.lo : r.hi);
    add(total.hi, t.coefficient, t.coefficient > 0 ? r.hi : r.lo);
  }
  return total;
}

Split split(const Linear& sum, int64_t divisor) {
  Split s;
  for (const Term& t : sum.terms) {
    (t.coefficient % divisor == 0 ? s.exact : s.rest).terms.push_back(t);
  }
  s.rest.constant = floor_mod(sum.constant, divisor);
  s.exact.constant = sum.constant - s.rest.constant;
  return s;
}

Expr simplify_div(const Expr& a, int64_t divisor) {
  DType type = a.type();
  if (divisor == 1) return a;
  Split s = split(linear(a), divisor);
  Linear quotient = divided(s.exact, divisor);
  if (range(s.rest).within(0, divisor - 1)) return to_expr(quotient, type);

  // (g*x + r) / (g*d) = x / d for 0 <= r < g.
  int64_t g = common(s.rest, divisor);
  Linear inner = s.rest;
  if (g > 1) {
    inner.constant -= floor_mod(inner.constant, g);
    inner = divided(inner, g);
    divisor /= g;
  }
  Expr dividend = to_expr(inner, type);
  if (dividend->op == Op::div && dividend->args[1].constant()) {  // (x / a) / b = x / (a*b)
    accumulate(quotient, 1, linear(simplify_div(dividend->args[0], *dividend->args[1].constant() * divisor)));
  } else if (divisor == 1) {
    accumulate(quotient, 1, linear(dividend));
  } else {
    accumulate(quotient, 1, make_node(Op::div, type, {dividend, integer(type, divisor)}));
  }
  return to_expr(quotient, type);
}

Expr simplify_mod(const Expr& a, int64_t divisor) {
  DType type = a.type();
  if (divisor == 1) return integer(type, 0);
  Linear rest = split(linear(a), divisor).rest;
  if (range(rest).within(0, divisor - 1)) return to_expr(rest, type);

  // (g*x + r) mod (g*d) = g*(x mod d) + r for 0 <= r < g.
  int64_t g = common(rest, divisor);
  Linear result;
  if (g > 1) {
    result.constant = floor_mod(rest.constant, g);
    rest.constant -= result.constant;
    rest = divided(rest, g);
    divisor /= g;
  }
  Expr dividend = to_expr(rest, type);
  if (divisor == 1) return to_expr(result, type);
  bool nested =
      dividend->op == Op::mod && dividend->args[1].constant() && *dividend->args[1].constant() % divisor == 0;
  Expr remainder = nested ? simplify_mod(dividend->args[0], divisor)
                          : make_node(Op::mod, type, {dividend, integer(type, divisor)});
  accumulate(result, g, linear(remainder));
  return to_expr(result, type);
}

Expr swizzle(const Expr& x, int base, int bits, int shift) {
  if (bits == 0) return x;
  int64_t period = int64_t{1} << (base + shift + bits), unit = int64_t{1} << base;
  Split s = split(linear(x), period);
  // Constants and terms below one unit do not reach the pattern as long as they cannot carry into it.
  Linear low, middle;
  for (const Term& t : s.rest.terms) (t.coefficient % unit == 0 ? middle : low).terms.push_back(t);
  low.constant = s.rest.constant % unit;
  middle.constant = s.rest.constant - low.constant;
  if (!range(low).within(0, unit - 1)) {
    middle = s.rest;
    low = {};
  }
  Expr m = to_expr(middle, x.type());
  Expr row = simplify_mod(simplify_div(m, int64_t{1} << (base + shift)), int64_t{1} << bits);
  Expr core = row.is(0) ? m : (m ^ (row * unit));
  Linear sum = s.exact;
  accumulate(sum, 1, low);
  accumulate(sum, 1, linear(core));
  return to_expr(sum, x.type());
}

}  // namespace tw::ir
