#include "tilewright/ir/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "tilewright/base/error.h"
#include "tilewright/ir/kernel.h"
#include "tilewright/ir/simplify.h"

namespace tw::ir {
namespace {

size_t mix(size_t seed, size_t value) { return (seed ^ value) * 0x9E3779B97F4A7C15ull + (seed << 6); }

size_t hash_of(const ExprNode& n) {
  size_t h = mix(static_cast<size_t>(n.op), static_cast<size_t>(n.type));
  h = mix(h, static_cast<size_t>(n.integer));
  h = mix(h, std::bit_cast<uint64_t>(n.real));
  // By name: sums are ordered by hash, and must come out alike in every run.
  if (n.variable) h = mix(h, std::hash<std::string_view>()(n.variable->name));
  h = mix(h, static_cast<size_t>(n.id));
  if (n.buffer) h = mix(h, std::hash<std::string_view>()(n.buffer->name));
  h = mix(h, static_cast<size_t>(n.index));
  for (const Expr& a : n.args) h = mix(h, a->hash);
  return h;
}

Expr wrap(ExprNode n) {
  n.hash = hash_of(n);
  return Expr(std::make_shared<const ExprNode>(std::move(n)));
}

DType common_type(const Expr& a, const Expr& b) {
  DType x = a.type(), y = b.type();
  if (x == y) return x;
  // A constant takes the other side's type.
  if (a->op == Op::constant && (is_float(y) || is_integer(x))) return y;
  if (b->op == Op::constant && (is_float(x) || is_integer(y))) return x;
  if (is_integer(x) && is_integer(y)) {
    if (bits(x) == bits(y)) return is_signed(x) ? y : x;
    return bits(x) > bits(y) ? x : y;
  }
  user_error({}, "operands have types {} and {}; convert one with cast", name(x), name(y));
}

struct Pair {
  Expr a, b;
  DType type;
};
Pair unify(const Expr& a, const Expr& b) {
  DType t = common_type(a, b);
  return {cast(t, a), cast(t, b), t};
}

template <class Fold>
Expr bitwise(Op op, const Expr& a, const Expr& b, Fold fold) {
  Pair p = unify(a, b);
  if (is_float(p.type)) user_error({}, "'{}' needs integers, got {}", name(op), name(p.type));
  auto x = p.a.constant(), y = p.b.constant();
  if (x && y) return integer(p.type, fold(*x, *y));
  return make_node(op, p.type, {p.a, p.b});
}

// A comparison of integers that the operands' ranges decide.
Expr compare(Op op, const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (!is_float(p.type)) {
    Range d = range(p.a - p.b);
    if (op == Op::lt && d.hi && *d.hi < 0) return true;
    if (op == Op::lt && d.lo && *d.lo >= 0) return false;
    if (op == Op::le && d.hi && *d.hi <= 0) return true;
    if (op == Op::le && d.lo && *d.lo > 0) return false;
    bool never_equal = (d.lo && *d.lo > 0) || (d.hi && *d.hi < 0);
    bool always_equal = d.within(0, 0);
    if (op == Op::eq && (never_equal || always_equal)) return always_equal;
    if (op == Op::ne && (never_equal || always_equal)) return never_equal;
  }
  return make_node(op, DType::b1, {p.a, p.b});
}

}  // namespace

const char* name(ScopeId id) {
  static constexpr const char* kNames[] = {
      "thread", "lane",   "warp",   "warpgroup", "warp_in_warpgroup", "thread_in_warpgroup", "cta_x", "cta_y",
      "cta_z",  "grid_x", "grid_y", "grid_z",    "cluster_rank"};
  return kNames[static_cast<int>(id)];
}

const char* name(Op op) {
  static constexpr const char* kNames[] = {
      "constant", "variable", "scope_id",   "+",      "*",    "/",       "%",         "&",    "|",
      "^",        "<<",       ">>",         "min",    "max",  "<",       "<=",        "==",   "!=",
      "&&",       "||",       "!",          "select", "cast", "-",       "abs",       "exp2", "log2",
      "sqrt",     "rsqrt",    "reciprocal", "tanh",   "load", "element", "coordinate"};
  return kNames[static_cast<int>(op)];
}

Expr::Expr(int value) : Expr(integer(DType::i32, value)) {}
Expr::Expr(int64_t value)
    : Expr(integer(value == static_cast<int32_t>(value) ? DType::i32 : DType::i64, value)) {}
Expr::Expr(uint32_t value) : Expr(integer(DType::u32, value)) {}
Expr::Expr(double value) : Expr(ir::constant(DType::f32, value)) {}
Expr::Expr(float value) : Expr(ir::constant(DType::f32, value)) {}
Expr::Expr(bool value) : Expr(integer(DType::b1, value)) {}
Expr::Expr(VarRef variable) {
  ExprNode n;
  n.op = Op::variable;
  n.type = variable->type;
  n.variable = std::move(variable);
  *this = wrap(std::move(n));
}
Expr::Expr(ScopeId id) {
  ExprNode n;
  n.op = Op::scope_id;
  n.id = id;
  *this = wrap(std::move(n));
}

DType Expr::type() const { return node_->type; }

std::optional<int64_t> Expr::constant() const {
  if (node_->op != Op::constant || is_float(node_->type)) return std::nullopt;
  return node_->integer;
}

Expr constant(DType type, double value) {
  if (!is_float(type)) return integer(type, static_cast<int64_t>(value));
  ExprNode n;
  n.type = type;
  n.real = value;
  return wrap(std::move(n));
}

Expr integer(DType type, int64_t value) {
  ExprNode n;
  n.type = type;
  n.integer = value;
  return wrap(std::move(n));
}

Expr make_node(Op op, DType type, std::vector<Expr> args) {
  ExprNode n;
  n.op = op;
  n.type = type;
  n.args = std::move(args);
  return wrap(std::move(n));
}

bool same(const Expr& a, const Expr& b) {
  if (&*a == &*b) return true;
  if (a->hash != b->hash || a->op != b->op || a->type != b->type || a->integer != b->integer ||
      std::bit_cast<uint64_t>(a->real) != std::bit_cast<uint64_t>(b->real) || a->variable != b->variable ||
      a->id != b->id || a->buffer != b->buffer || a->index != b->index || a->args.size() != b->args.size())
    return false;
  return std::equal(a->args.begin(), a->args.end(), b->args.begin(), same);
}

Expr cast(DType type, const Expr& a) {
  if (a.type() == type) return a;
  if (a->op == Op::constant) {
    if (is_float(a.type()) == is_float(type)) {
      if (is_float(type)) return constant(type, a->real);
      return integer(type, a->integer);
    }
    return is_float(type) ? constant(type, static_cast<double>(a->integer))
                          : integer(type, static_cast<int64_t>(a->real));
  }
  if (is_integer(type) && is_integer(a.type()) && bits(type) >= bits(a.type()))
    return to_expr(linear(a), type);
  return make_node(Op::cast, type, {a});
}

Expr operator+(const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (is_float(p.type)) return make_node(Op::add, p.type, {p.a, p.b});
  Linear sum = linear(p.a), other = linear(p.b);
  // Through a node, so that equal atoms of both sides meet.
  return to_expr(linear(make_node(Op::add, p.type, {to_expr(sum, p.type), to_expr(other, p.type)})), p.type);
}

Expr operator-(const Expr& a) {
  if (is_float(a.type()))
    return a->op == Op::constant ? constant(a.type(), -a->real) : make_node(Op::neg, a.type(), {a});
  return a * Expr(-1);
}
Expr operator-(const Expr& a, const Expr& b) { return a + (-b); }

Expr operator*(const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (is_float(p.type)) return make_node(Op::mul, p.type, {p.a, p.b});
  if (p.a.constant()) std::swap(p.a, p.b);
  if (p.b.is(0)) return integer(p.type, 0);
  if (p.b.is(1)) return p.a;
  return p.b.constant() ? to_expr(linear(make_node(Op::mul, p.type, {p.a, p.b})), p.type)
                        : make_node(Op::mul, p.type, {p.a, p.b});
}

Expr operator/(const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (is_float(p.type)) return make_node(Op::div, p.type, {p.a, p.b});
  if (p.b.is(0)) user_error({}, "division of {} by zero", to_string(a));
  if (auto d = p.b.constant(); d && *d > 0) return simplify_div(p.a, *d);
  return make_node(Op::div, p.type, {p.a, p.b});
}

Expr operator%(const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (is_float(p.type)) user_error({}, "'%' needs integers, got {}", name(p.type));
  if (p.b.is(0)) user_error({}, "remainder of {} by zero", to_string(a));
  if (auto d = p.b.constant(); d && *d > 0) return simplify_mod(p.a, *d);
  return make_node(Op::mod, p.type, {p.a, p.b});
}

Expr operator&(const Expr& a, const Expr& b) {
  if (a.is(0) || b.is(0)) return integer(common_type(a, b), 0);
  return bitwise(Op::bit_and, a, b, [](int64_t x, int64_t y) { return x & y; });
}
Expr operator|(const Expr& a, const Expr& b) {
  return bitwise(Op::bit_or, a, b, [](int64_t x, int64_t y) { return x | y; });
}
Expr operator^(const Expr& a, const Expr& b) {
  if (b.is(0)) return a;
  if (a.is(0)) return b;
  return bitwise(Op::bit_xor, a, b, [](int64_t x, int64_t y) { return x ^ y; });
}
Expr operator<<(const Expr& a, const Expr& b) {
  if (auto s = b.constant()) return a * Expr(int64_t{1} << *s);
  return make_node(Op::shl, a.type(), {a, b});
}
Expr operator>>(const Expr& a, const Expr& b) {
  if (auto s = b.constant()) return a / Expr(int64_t{1} << *s);
  return make_node(Op::shr, a.type(), {a, b});
}

Expr operator<(const Expr& a, const Expr& b) { return compare(Op::lt, a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return compare(Op::le, a, b); }
Expr operator>(const Expr& a, const Expr& b) { return compare(Op::lt, b, a); }
Expr operator>=(const Expr& a, const Expr& b) { return compare(Op::le, b, a); }
Expr operator==(const Expr& a, const Expr& b) { return compare(Op::eq, a, b); }
Expr operator!=(const Expr& a, const Expr& b) { return compare(Op::ne, a, b); }

Expr operator&&(const Expr& a, const Expr& b) {
  if (a.is(0) || b.is(0)) return false;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return make_node(Op::logical_and, DType::b1, {a, b});
}
Expr operator||(const Expr& a, const Expr& b) {
  if (a.is(1) || b.is(1)) return true;
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  return make_node(Op::logical_or, DType::b1, {a, b});
}
Expr operator!(const Expr& a) {
  if (auto c = a.constant()) return *c == 0;
  if (a->op == Op::logical_not) return a->args[0];
  return make_node(Op::logical_not, DType::b1, {a});
}

Expr min(const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (!is_float(p.type)) {
    Range d = range(p.a - p.b);
    if (d.hi && *d.hi <= 0) return p.a;
    if (d.lo && *d.lo >= 0) return p.b;
  }
  return make_node(Op::min, p.type, {p.a, p.b});
}
Expr max(const Expr& a, const Expr& b) {
  Pair p = unify(a, b);
  if (!is_float(p.type)) {
    Range d = range(p.a - p.b);
    if (d.hi && *d.hi <= 0) return p.b;
    if (d.lo && *d.lo >= 0) return p.a;
  }
  return make_node(Op::max, p.type, {p.a, p.b});
}
Expr ceil_div(const Expr& a, const Expr& b) { return (a + b - 1) / b; }

Expr select(const Expr& condition, const Expr& yes, const Expr& no) {
  if (auto c = condition.constant()) return *c ? yes : no;
  Pair p = unify(yes, no);
  return make_node(Op::select, p.type, {condition, p.a, p.b});
}

Expr unary(Op op, const Expr& a) {
  if (!is_float(a.type()))
    user_error({}, "'{}' needs a floating-point value, got {}", name(op), name(a.type()));
  return make_node(op, a.type(), {a});
}

Expr load(std::shared_ptr<const Buffer> buffer, DType type, std::vector<Expr> coordinates) {
  ExprNode n;
  n.op = Op::load;
  n.type = type;
  n.buffer = std::move(buffer);
  n.args = std::move(coordinates);
  return wrap(std::move(n));
}

Expr element(int operand, DType type) {
  ExprNode n;
  n.op = Op::element;
  n.type = type;
  n.index = operand;
  return wrap(std::move(n));
}
Expr coordinate(int dimension) {
  ExprNode n;
  n.op = Op::coordinate;
  n.index = dimension;
  return wrap(std::move(n));
}

namespace {

bool not_negative(const Range& r) { return r.lo && *r.lo >= 0; }

Range range_of(ScopeId id) {
  switch (id) {
    case ScopeId::lane: return {0, 31};
    case ScopeId::warp: return {0, 31};
    case ScopeId::warpgroup: return {0, 7};
    case ScopeId::warp_in_warpgroup: return {0, 3};
    case ScopeId::thread_in_warpgroup: return {0, 127};
    case ScopeId::thread: return {0, 1023};
    case ScopeId::cluster_rank: return {0, 15};
    case ScopeId::grid_x:
    case ScopeId::grid_y:
    case ScopeId::grid_z: return {1, INT32_MAX};
    default: return {0, INT32_MAX};
  }
}

Range range_of_sum_or_product(const Expr& e) {
  if (is_float(e.type())) return {};
  Linear sum = linear(e);
  if (sum.terms.size() != 1 || !same(sum.terms[0].atom, e)) return range(sum);
  Range a = range(e->args[0]), b = range(e->args[1]);  // a product of two unknowns
  if (!not_negative(a) || !not_negative(b)) return {};
  const auto product = [](std::optional<int64_t> x, std::optional<int64_t> y) {
    int64_t xy;
    return x && y && !__builtin_mul_overflow(*x, *y, &xy) ? std::optional(xy) : std::nullopt;
  };
  return {product(a.lo, b.lo), product(a.hi, b.hi)};
}

Range range_of_quotient(const Range& a, const Expr& divisor) {
  auto d = divisor.constant();
  if (!d || *d <= 0) {
    if (not_negative(a) && not_negative(range(divisor))) return {0, a.hi};
    return {};
  }
  auto down = [&](std::optional<int64_t> v) {
    return v ? std::optional((*v - (*v < 0 ? *d - 1 : 0)) / *d) : v;
  };
  return {down(a.lo), down(a.hi)};
}

Range range_of_remainder(const Expr& divisor) {
  Range d = range(divisor);
  if (!d.lo || *d.lo <= 0) return {};
  return {0, d.hi ? std::optional(*d.hi - 1) : std::nullopt};
}

Range range_of_bits(Op op, const Range& a, const Range& b) {
  if (op == Op::bit_and) {
    if (not_negative(a) && a.hi) return {0, a.hi};
    if (not_negative(b) && b.hi) return {0, b.hi};
    return {};
  }
  if (!not_negative(a) || !not_negative(b) || !a.hi || !b.hi) return {};
  return {0, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(*a.hi, *b.hi)) + 1)) - 1};
}

// min and max keep a bound that only one side has; select does not.
Range range_of_choice(Op op, const Range& a, const Range& b) {
  auto of_both = [](auto pick, std::optional<int64_t> x, std::optional<int64_t> y, bool one_is_enough) {
    if (x && y) return std::optional(pick(*x, *y));
    return one_is_enough ? (x ? x : y) : std::nullopt;
  };
  auto least = [](int64_t x, int64_t y) { return std::min(x, y); };
  auto most = [](int64_t x, int64_t y) { return std::max(x, y); };
  return {op == Op::max ? of_both(most, a.lo, b.lo, true) : of_both(least, a.lo, b.lo, false),
          op == Op::min ? of_both(least, a.hi, b.hi, true) : of_both(most, a.hi, b.hi, false)};
}

}  // namespace

Range range(const Expr& e) {
  if (auto c = e.constant()) return {c, c};
  switch (e->op) {
    case Op::variable: return {e->variable->lo, e->variable->hi};
    case Op::scope_id: return range_of(e->id);
    case Op::add:
    case Op::mul: return range_of_sum_or_product(e);
    case Op::div: return range_of_quotient(range(e->args[0]), e->args[1]);
    case Op::mod: return range_of_remainder(e->args[1]);
    case Op::bit_xor:
    case Op::bit_or:
    case Op::bit_and: return range_of_bits(e->op, range(e->args[0]), range(e->args[1]));
    case Op::min:
    case Op::max: return range_of_choice(e->op, range(e->args[0]), range(e->args[1]));
    case Op::select: return range_of_choice(e->op, range(e->args[1]), range(e->args[2]));
    case Op::cast:
      if (is_integer(e->args[0].type()) && bits(e.type()) >= bits(e->args[0].type()))
        return range(e->args[0]);
      return {};
    case Op::coordinate: return {0, INT32_MAX};
    case Op::lt:
    case Op::le:
    case Op::eq:
    case Op::ne:
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_not: return {0, 1};
    default: return {};
  }
}

int64_t alignment(const Expr& e) {
  constexpr int64_t kMost = int64_t{1} << 20;
  auto divides = [=](int64_t v) { return v == 0 ? kMost : std::min(kMost, v & -v); };
  switch (e->op) {
    case Op::constant: return divides(e->integer);
    case Op::variable: return e->variable->multiple_of;
    case Op::mul: return std::min(kMost, alignment(e->args[0]) * alignment(e->args[1]));
    case Op::add:
    case Op::bit_xor:
    case Op::bit_or:
    case Op::min:
    case Op::max: {
      int64_t a = kMost;
      for (const Expr& x : e->args) a = std::min(a, alignment(x));
      return a;
    }
    case Op::bit_and: return std::max(alignment(e->args[0]), alignment(e->args[1]));
    case Op::mod: return std::min(alignment(e->args[0]), alignment(e->args[1]));
    case Op::div: {
      auto d = e->args[1].constant();
      return d && *d > 0 && (*d & (*d - 1)) == 0 ? std::max<int64_t>(1, alignment(e->args[0]) / *d) : 1;
    }
    case Op::cast: return is_integer(e->args[0].type()) ? alignment(e->args[0]) : 1;
    default: return 1;
  }
}

bool is_uniform(const Expr& e) {
  switch (e->op) {
    case Op::variable: return e->variable->uniform;
    case Op::scope_id: return e->id >= ScopeId::cta_x;
    case Op::load:  // another thread may write between two threads' loads
    case Op::element:
    case Op::coordinate: return false;
    default: return std::all_of(e->args.begin(), e->args.end(), is_uniform);
  }
}

Expr rebuild(const Expr& e, const std::function<Expr(const Expr&)>& map) {
  if (e->args.empty()) return e;
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& a : e->args) {
    args.push_back(map(a));
    changed |= &*args.back() != &*a;
  }
  if (!changed) return e;
  auto fold = [&](auto f) {
    Expr r = args[0];
    for (size_t i = 1; i < args.size(); ++i) r = f(r, args[i]);
    return r;
  };
  switch (e->op) {
    case Op::add: return fold([](const Expr& a, const Expr& b) { return a + b; });
    case Op::mul: return args[0] * args[1];
    case Op::div: return args[0] / args[1];
    case Op::mod: return args[0] % args[1];
    case Op::bit_and: return args[0] & args[1];
    case Op::bit_or: return args[0] | args[1];
    case Op::bit_xor: return args[0] ^ args[1];
    case Op::min: return min(args[0], args[1]);
    case Op::max: return max(args[0], args[1]);
    case Op::lt: return args[0] < args[1];
    case Op::le: return args[0] <= args[1];
    case Op::eq: return args[0] == args[1];
    case Op::ne: return args[0] != args[1];
    case Op::logical_and: return args[0] && args[1];
    case Op::logical_or: return args[0] || args[1];
    case Op::logical_not: return !args[0];
    case Op::select: return select(args[0], args[1], args[2]);
    case Op::cast: return cast(e.type(), args[0]);
    default: {
      ExprNode n = *e;
      n.args = std::move(args);
      return wrap(std::move(n));
    }
  }
}

Expr substitute(const Expr& e, const VarRef& variable, const Expr& value) {
  if (e->op == Op::variable) return e->variable == variable ? value : e;
  return rebuild(e, [&](const Expr& a) { return substitute(a, variable, value); });
}

}  // namespace tw::ir
