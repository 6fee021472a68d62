#include "tilewright/ir/guards.h"

#include <cstdlib>
#include <numeric>

namespace tw::ir {
namespace {

// a * x - b * y; nothing where 64 bits do not hold it.
std::optional<Linear> difference(int64_t a, const Linear& x, int64_t b, const Linear& y) {
  Linear sum;
  bool fits = true;
  const auto add = [&](int64_t& to, int64_t factor, int64_t value) {
    int64_t product;
    fits &= !__builtin_mul_overflow(factor, value, &product) && !__builtin_add_overflow(to, product, &to);
  };
  const auto collect = [&](int64_t factor, const Linear& from) {
    add(sum.constant, factor, from.constant);
    for (const Term& t : from.terms) {
      auto at = sum.terms.begin();
      while (at != sum.terms.end() && !same(at->atom, t.atom)) ++at;
      if (at == sum.terms.end()) at = sum.terms.insert(at, {0, t.atom});
      add(at->coefficient, factor, t.coefficient);
    }
  };
  collect(a, x);
  collect(-b, y);
  if (!fits) return std::nullopt;
  std::erase_if(sum.terms, [](const Term& t) { return t.coefficient == 0; });
  return sum;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The most that `sum` can be where each of `guards` is at most 0: sum <= sum - q * guard for every q >= 0,
// and a q that removes a term they share leaves less to bound. Each guard is used in turn on what the ones
// before it left, which is `scale` times as large as the sum.
std::optional<int64_t> upper(const Linear& sum, const std::vector<Linear>& guards) {
  std::optional<int64_t> least = range(sum).hi;
  Linear rest = sum;
  int64_t scale = 1;
  for (const Linear& guard : guards) {
    std::optional<Linear> best;
    int64_t best_scale = scale;
    for (const Term& g : guard.terms)
      for (const Term& t : rest.terms) {
        if (!same(g.atom, t.atom) || (g.coefficient > 0) != (t.coefficient > 0)) continue;
        const int64_t common = std::gcd(g.coefficient, t.coefficient);
        const int64_t times = std::abs(g.coefficient / common);
        int64_t scaled;
        if (__builtin_mul_overflow(scale, times, &scaled)) continue;
        const auto left = difference(times, rest, std::abs(t.coefficient / common), guard);
        const auto most = left ? range(*left).hi : std::nullopt;
        if (!most || (least && floor_div(*most, scaled) >= *least)) continue;
        least = floor_div(*most, scaled);
        best = left;
        best_scale = scaled;
      }
    if (best) rest = *best, scale = best_scale;
  }
  return least;
}

}  // namespace

void Guards::add(const Expr& condition, bool holds) {
  const auto at_most = [&](const Expr& a, const Expr& b, int64_t less) {  // a + less <= b
    Linear sum = linear(a - b);
    sum.constant += less;
    at_most_zero_.push_back(std::move(sum));
  };
  if (const auto known = condition.constant()) {
    never_ |= (*known != 0) != holds;
    return;
  }
  if (condition->op == Op::logical_not) return add(condition->args[0], !holds);
  if (condition->op == (holds ? Op::logical_and : Op::logical_or)) {
    for (const Expr& part : condition->args) add(part, holds);
    return;
  }
  if (condition->args.size() != 2) return;
  const Expr &a = condition->args[0], &b = condition->args[1];
  if (!is_integer(a.type()) || !is_signed(a.type())) return;
  switch (condition->op) {
    case Op::lt: return holds ? at_most(a, b, 1) : at_most(b, a, 0);
    case Op::le: return holds ? at_most(a, b, 0) : at_most(b, a, 1);
    case Op::eq:
    case Op::ne:
      if (holds != (condition->op == Op::eq)) return;
      at_most(a, b, 0);
      at_most(b, a, 0);
      return;
    default: return;
  }
}

Range Guards::range(const Expr& value) const {
  const Linear sum = linear(value);
  const auto negated = difference(-1, sum, 0, {});
  Range r = ir::range(value);
  if (const auto hi = upper(sum, at_most_zero_); hi && (!r.hi || *hi < *r.hi)) r.hi = hi;
  if (!negated) return r;
  if (const auto lo = upper(*negated, at_most_zero_); lo && (!r.lo || -*lo > *r.lo)) r.lo = -*lo;
  return r;
}

}  // namespace tw::ir
