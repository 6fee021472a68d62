#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tilewright/ir/expr.h"
#include "tilewright/ir/kernel.h"
#include "tilewright/ptx/module.h"

// Turns expressions into registers and keeps the structure of the code being written.
//
// Code is written into nested regions. An expression is computed once per region that needs it, in the
// outermost region where its value is fixed: out of every loop that does not change it. Sums are split, so
// that the part of an address that a loop does not change is computed before it; what remains of the form
// `constant * counter` becomes a register that each turn increments. ptxas would leave the 64-bit products in
// the loop.
namespace tw::lowering {

ptx::Type register_type(DType t);  // b16 for 16-bit types, f32, b32, b64, pred
// The PTX type an operation on values of this type names: "s32", "u32", "f32", ...
std::string type_suffix(DType t);

class Emitter {
 public:
  explicit Emitter(ptx::Function& function);

  // ---- instructions ----
  ptx::RegId fresh(ptx::Type type);
  void emit(std::string_view opcode, std::vector<ptx::Operand> operands);
  void emit_if(const ptx::Operand& predicate, std::string_view opcode, std::vector<ptx::Operand> operands);
  void comment(std::string text);
  std::string fresh_label(std::string_view stem);
  void label(const std::string& name);
  // What `f` emits comes before all other code, so that every region finds its values.
  void at_entry(const std::function<void()>& f);

  void at(const SourceLoc& loc) { loc_ = loc; }
  const SourceLoc& loc() const { return loc_; }
  void role(int index) { role_ = index; }
  int role() const { return role_; }

  // ---- values ----
  // A register or an immediate with the value of `e`; truth values are predicates.
  ptx::Operand value(const ir::Expr& e);
  ptx::RegId reg(const ir::Expr& e);  // never an immediate
  // [register + constant] for an address expression in bytes (i32 for shared memory, i64 for global).
  ptx::Operand address(const ir::Expr& bytes);

  // Binds a variable to a new register holding `initial`, alive in the open region.
  void declare(const ir::VarRef& v, const ir::Expr& initial);
  // Binds a variable to a register that some instruction has written.
  void bind(const ir::VarRef& v, ptx::RegId r);
  void assign(const ir::VarRef& v, const ir::Expr& value);
  ptx::RegId register_of(const ir::VarRef& v) const;

  // ---- structure ----
  enum class RegionKind { root, loop, branch, role };
  // `assigned`: variables that the loop's body may change; `counter`: its counter, changed by a constant each
  // turn.
  void open(RegionKind kind, const std::unordered_set<const ir::Variable*>& assigned = {},
            const ir::For* counter = nullptr);
  // Appends the region's code to the enclosing one; a loop's after its label, behind what was hoisted out of
  // it.
  void close();
  void close_loop(const std::string& top);
  void turn();  // the increments of derived counters, at the end of a loop's body

  // Collects code that must come before everything else of the root region.
  void finish();

 private:
  struct Induction {
    ptx::RegId reg;
    int64_t step;
    ptx::Type type;
  };
  struct Region {
    RegionKind kind = RegionKind::root;
    std::vector<ptx::Statement> code;
    std::unordered_map<ir::Expr, ptx::RegId, ir::HashExpr, ir::SameExpr> values;
    std::unordered_set<const ir::Variable*> changes;  // declared here or assigned in this loop
    const ir::For* counter = nullptr;
    std::vector<Induction> inductions;
  };

  bool changes_in(const ir::Expr& e, const Region& r) const;
  size_t home(const ir::Expr& e) const;
  const ptx::RegId* find(const ir::Expr& e) const;
  void forget(const std::unordered_set<const ir::Variable*>& variables);

  ptx::RegId compute(const ir::Expr& e);  // into the region at_
  ptx::RegId sum(const ir::Expr& e);
  ptx::RegId product(const ir::Expr& e);
  ptx::RegId quotient(const ir::Expr& e);
  ptx::RegId comparison(const ir::Expr& e);
  ptx::RegId conversion(const ir::Expr& e);
  ptx::RegId unary(const ir::Expr& e);
  ptx::RegId simple(std::string_view opcode, const ir::Expr& e);
  ptx::RegId scaled(const ir::Expr& atom, int64_t coefficient, DType type);
  ptx::RegId induction(const ir::Expr& e, size_t loop, int64_t coefficient);
  void push(ptx::Instruction i);

  ptx::Function& function_;
  std::vector<Region> regions_;
  std::vector<ptx::Statement> entry_;  // code that at_entry collects
  size_t at_ = 0;                      // region that receives instructions
  std::unordered_map<const ir::Variable*, ptx::RegId> variables_;
  std::unordered_map<int, std::vector<ptx::RegId>> declared_;  // registers by PTX type
  int labels_ = 0;
  SourceLoc loc_;
  int role_ = -1;
};

}  // namespace tw::lowering
