#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tilewright/ptx/module.h"
#include "tilewright/sim/block_order.h"
#include "tilewright/sim/inst.h"
#include "tilewright/sim/program.h"

namespace tw::sim {

// The name that the author of a C++ kernel gave: "tile" for "_ZZ9transposePKiPiiiE4tile".
std::string readable(const std::string& name);

// Builds a Program from an entry: lays out registers, constants and variables, resolves labels, and decodes
// every instruction.
class ProgramBuilder {
 public:
  ProgramBuilder(Program::Impl& program);
  void build();

  // --- for Decoding ---
  const ptx::Function& function() const { return *part().source; }
  Slot reg(ptx::RegId r) const { return registers_[part().first_register + r.index]; }
  Slot scratch() const { return scratch_; }
  Slot constant(uint64_t value, bool wide);
  std::optional<Slot> special(std::string_view name,
                              bool wide);  // nothing: unknown, or it changes while a warp runs
  Slot explicit_cluster() {
    return special_row(SpecialRow::is_explicit_cluster, false, 0);
  }  // a predicate in lane 0's place
  static int special_bytes(std::string_view name);
  ptx::Space space_of(std::string_view variable) const;  // none: no such variable
  // A row with the variable's address: in its own space, or generic.
  std::optional<Slot> symbol(std::string_view name, int64_t offset, bool wide, bool generic);
  uint32_t pc() const { return pc_; }
  uint32_t label(const ptx::Symbol& name, const ptx::Instruction& at) const;
  std::vector<uint32_t> branch_table(const ptx::Symbol& name, const ptx::Instruction& at) const;
  std::optional<Subroutine::Range> call_variable(std::string_view name) const;
  const Subroutine& called(std::string_view name, const ptx::Instruction& at);
  bool in_function() const { return part_ != 0; }
  bool returns();
  void flow(std::vector<uint32_t> targets, bool falls_through);
  void mark_ordered() { program_.ordered = true; }
  int& cta_group() { return program_.cta_group; }
  std::string_view arch() const { return program_.machine.arch; }
  void keep(std::shared_ptr<const void> p) { program_.kept.push_back(std::move(p)); }

 private:
  struct Place {
    ptx::Space space;
    uint64_t offset;
    const ptx::Variable* variable;
  };
  using Places = std::map<std::string, Place, std::less<>>;
  // The entry and the functions it reaches, in the order of their code.
  Subroutine& part() { return *program_.functions[part_]; }
  const Subroutine& part() const { return *program_.functions[part_]; }
  void find_functions();
  void find_recursion();
  void connect_returns();
  void lay_out_registers();
  void lay_out_registers_of(Subroutine& f);
  void lay_out_variables();
  void place_variable(const ptx::Variable& v, Places& places);
  Subroutine::Range place_in_local_memory(const ptx::Variable& v);
  void place_call_variable(const ptx::Variable& v);
  void place_in_const_memory(const ptx::Variable& v, uint64_t offset);
  void number_statements();
  void decode_body();
  void decode(const ptx::Instruction& inst);
  Slot new_row(uint32_t bytes);
  Slot special_row(SpecialRow what, bool wide, uint64_t value);
  const Place* find(std::string_view name) const;

  Program::Impl& program_;
  std::vector<Slot> registers_;
  Slot scratch_;
  std::map<std::pair<uint64_t, bool>, Slot> constants_;
  std::map<std::tuple<SpecialRow, bool, uint64_t>, Slot> special_rows_;
  std::map<std::pair<const ptx::Variable*, int64_t>, Slot> global_rows_;
  size_t part_ = 0;
  Places places_;                     // of the module
  std::vector<Places> part_places_;   // of each part
  std::vector<Places> scope_places_;  // .param variables of the scopes around the statement
  // Labels are local to their scope: (scope, name) -> pc, and each scope's parent.
  std::vector<int> scope_parent_;
  std::map<std::pair<int, std::string>, uint32_t> labels_;
  std::map<std::string, std::string, std::less<>> tables_;
  int scope_ = 0, last_scope_ = -1;
  uint32_t pc_ = 0;
  std::vector<Successors> successors_;
};

// Checks that a module's target runs on the machine ("sm_90a" code only on sm_90a).
void check_target(const ptx::Module& module, const Machine& machine);

}  // namespace tw::sim
