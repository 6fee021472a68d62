#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/source.h"

// Scalar expressions of the tile IR: immutable trees with value semantics. The builders fold constants and
// keep integer arithmetic in a normal form (simplify.h), so what a kernel writes and what lowering derives
// from layouts meet in the same shape.
namespace tw::ir {

struct Buffer;

// A run-time scalar: a loop counter, a ring's stage, a size. Compared by identity.
struct Variable {
  std::string name;
  DType type = DType::i32;
  bool assigned_once = true;      // false: Assign may change it
  std::optional<int64_t> lo, hi;  // inclusive bounds, where known
  int64_t multiple_of = 1;        // a power of two that divides it: alignment of addresses
  bool uniform = true;            // same value in every thread of the CTA
  SourceLoc loc;
};
using VarRef = std::shared_ptr<const Variable>;

// Where a thread stands in the launch.
enum class ScopeId : uint8_t {
  thread,     // 0 .. threads of the CTA
  lane,       // in the warp
  warp,       // in the CTA
  warpgroup,  // in the CTA
  warp_in_warpgroup,
  thread_in_warpgroup,
  cta_x,
  cta_y,
  cta_z,
  grid_x,
  grid_y,
  grid_z,        // grid extents in CTAs
  cluster_rank,  // of this CTA in its cluster
};
const char* name(ScopeId id);

enum class Op : uint8_t {
  constant,
  variable,
  scope_id,
  add,
  mul,
  div,
  mod,  // integers: div and mod round toward minus infinity; floats: add, mul, div
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  min,
  max,
  lt,
  le,
  eq,
  ne,
  logical_and,
  logical_or,
  logical_not,
  select,
  cast,
  neg,
  abs,
  exp2,
  log2,
  sqrt,
  rsqrt,
  reciprocal,
  tanh,        // floats
  load,        // one element of a buffer in memory
  element,     // the current element of operand `index` of an element-wise tile operation
  coordinate,  // the current coordinate along dimension `index` of such an operation
};
const char* name(Op op);

struct ExprNode;

class Expr {
 public:
  Expr() = default;
  Expr(int value);        // NOLINT(google-explicit-constructor)
  Expr(int64_t value);    // NOLINT
  Expr(uint32_t value);   // NOLINT
  Expr(double value);     // NOLINT  an f32 constant
  Expr(float value);      // NOLINT
  Expr(bool value);       // NOLINT
  Expr(VarRef variable);  // NOLINT
  explicit Expr(ScopeId id);

  explicit operator bool() const = delete;
  bool defined() const { return node_ != nullptr; }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* operator->() const { return node_.get(); }
  DType type() const;

  std::optional<int64_t> constant() const;  // the value of an integer or truth constant
  bool is(int64_t value) const { return constant() == value; }

  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  Op op = Op::constant;
  DType type = DType::i32;
  int64_t integer = 0;  // constant
  double real = 0;      // constant
  VarRef variable;
  ScopeId id = ScopeId::thread;
  std::vector<Expr> args;
  std::shared_ptr<const Buffer> buffer;  // load: args are the element's coordinates
  int index = 0;                         // element, coordinate
  size_t hash = 0;
};

bool same(const Expr& a, const Expr& b);  // structural equality
struct SameExpr {
  bool operator()(const Expr& a, const Expr& b) const { return same(a, b); }
};
struct HashExpr {
  size_t operator()(const Expr& e) const { return e->hash; }
};

// Builders. Both sides of a binary operation are brought to a common type (integers widen to i64, integers
// with floats to the float); anything else is a user error.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator%(const Expr& a, const Expr& b);
Expr operator&(const Expr& a, const Expr& b);
Expr operator|(const Expr& a, const Expr& b);
Expr operator^(const Expr& a, const Expr& b);
Expr operator<<(const Expr& a, const Expr& b);
Expr operator>>(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr operator&&(const Expr& a, const Expr& b);
Expr operator||(const Expr& a, const Expr& b);
Expr operator!(const Expr& a);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& yes, const Expr& no);
Expr cast(DType type, const Expr& a);
Expr unary(Op op, const Expr& a);
Expr load(std::shared_ptr<const Buffer> buffer, DType type, std::vector<Expr> coordinates);
Expr element(int operand, DType type);
Expr coordinate(int dimension);
Expr constant(DType type, double value);  // of a floating type
Expr integer(DType type, int64_t value);  // of an integer type

// A node as it is, without simplification: for simplify.cpp.
Expr make_node(Op op, DType type, std::vector<Expr> args);

// Bounds of an integer expression, where known.
struct Range {
  std::optional<int64_t> lo, hi;
  bool within(int64_t low, int64_t high) const { return lo && hi && *lo >= low && *hi <= high; }
};
Range range(const Expr& e);

// The largest known power of two, up to 2^20, that divides an integer expression.
int64_t alignment(const Expr& e);

// Same value in every thread of the CTA.
bool is_uniform(const Expr& e);

// The same operation over `map` of each argument, simplified anew.
Expr rebuild(const Expr& e, const std::function<Expr(const Expr&)>& map);
// Replaces variables; used to unroll and to specialise.
Expr substitute(const Expr& e, const VarRef& variable, const Expr& value);

template <class Visit>
void visit(const Expr& e, Visit&& f) {
  f(e);
  for (const Expr& a : e->args) visit(a, f);
}

std::string to_string(const Expr& e);

}  // namespace tw::ir
