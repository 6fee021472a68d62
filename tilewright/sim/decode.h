#pragma once
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/ptx/module.h"
#include "tilewright/sim/inst.h"

// Decoding: a decode function per base opcode turns one PTX instruction into an Inst. Anything it does not
// take stops the decoding with not_modelled, so that nothing is guessed.
namespace tw::sim {

class ProgramBuilder;
struct Subroutine;

// The state of one instruction being decoded.
//
//   void decode_add(Decoding& d) {
//     auto type = d.take_type();              // every modifier must be taken: what is left is not modelled
//     d.inst.s[0] = d.destination(0, type);
//     d.inst.s[1] = d.source(1, type);
//     d.inst.run = &add_handler;
//   }
class Decoding {
 public:
  Decoding(ProgramBuilder& builder, const ptx::Instruction& source, Inst& inst);

  const ptx::Instruction& ptx;
  Inst& inst;

  // --- modifiers ---
  bool take(std::string_view modifier);  // present: marks it as understood
  // The one that is present, else "".
  std::string_view take_one_of(std::initializer_list<std::string_view> modifiers);
  // The next type token in order (".f32", ".b64", ...); `none` if no type is left.
  ptx::Type take_type();
  // Also takes types that registers cannot have ("e4m3x2", "tf32", ...), as text; "" if none is left.
  bool taken(size_t token) const { return taken_[token]; }
  std::string_view take_next();                                // the first modifier not taken yet
  [[noreturn]] void unsupported(std::string_view what) const;  // not_modelled with text, line and location
  void finish() const;                                         // not_modelled if a modifier was not taken

  // --- operands ---
  size_t operand_count() const { return ptx.operands.size(); }
  const ptx::Operand& operand(size_t i) const;
  Slot source(size_t i, int bytes) { return source(operand(i), bytes); }
  Slot source(const ptx::Operand& o,
              int bytes);  // register, immediate, special register, or address of a variable
  Slot float_source(const ptx::Operand& o, ptx::Type type);  // float immediates take the type's bit pattern
  Slot destination(size_t i, int bytes) { return destination(operand(i), bytes); }
  Slot destination(const ptx::Operand& o, int bytes);  // register or "_"
  Slot predicate(const ptx::Operand& o);               // source; a negated one needs `negated`
  Slot predicate_destination(const ptx::Operand& o);
  static bool negated(const ptx::Operand& o);
  int register_bytes(const ptx::Operand& o) const;  // 1 for predicates, 0 when `o` is no register
  ptx::Type register_type(const ptx::Operand& o) const;

  // An address operand: `base` is a 32- or 64-bit row of byte addresses, `offset` is added to it.
  struct Address {
    Slot base;
    bool wide = false;  // base has 64-bit elements
    int64_t offset = 0;
    ptx::Space variable = ptx::Space::none;  // the space of the named variable, if the base is one
  };
  Address address(size_t i) { return address(operand(i)); }
  Address address(const ptx::Operand& o);

  // Keeps a value as long as the Program lives.
  template <class T>
  const T* keep(T value) {
    auto p = std::make_shared<const T>(std::move(value));
    keep_alive(p);
    return p.get();
  }
  uint32_t pc() const;                                                // index of this instruction
  uint32_t label(const ptx::Operand& o) const;                        // the pc a label stands for
  std::vector<uint32_t> branch_targets(const ptx::Operand& o) const;  // of a .branchtargets list
  // For instructions that change the flow of control: where they may go.
  void flow(std::vector<uint32_t> targets, bool falls_through);
  // --- calls (call.h) ---
  struct CallVariable {
    uint32_t offset, bytes;  // in local memory
  };
  std::optional<CallVariable> call_variable(std::string_view name) const;  // a .param variable of the body
  const Subroutine& called(std::string_view name);  // the function of this name, which is called from here
  bool in_function() const;                         // this instruction belongs to a .func
  bool returns();  // the same; notes that this is one of its ret instructions
  // The instruction can touch global memory in a way that other clusters may wait for (atomics, acquire,
  // volatile).
  void mark_ordered();
  // All tcgen05 instructions of a kernel must name the same .cta_group; a user error if this one differs.
  void agree_on_cta_group(int group);
  std::string_view arch() const;  // of the simulated machine, "sm_100a"
  // The space of the variable with this name; nothing if there is none.
  std::optional<ptx::Space> variable_space(std::string_view name) const;
  Slot symbol(std::string_view name, int64_t offset,
              bool wide);                            // row with the address of a variable in its space
  Slot special_predicate();                          // %is_explicit_cluster
  Slot constant(uint64_t value, bool wide = false);  // a row of immediates

 private:
  void keep_alive(std::shared_ptr<const void> p);
  ProgramBuilder& builder_;
  std::vector<bool> taken_;
};

using DecodeFunction = void (*)(Decoding&);

// Base opcode ("add", "mbarrier") -> decode function. One table, filled by the families.
class Registry {
 public:
  void add(std::string_view opcode, DecodeFunction f) { table_[std::string(opcode)] = f; }
  DecodeFunction find(std::string_view opcode) const;
  static const Registry& standard();

 private:
  std::unordered_map<std::string, DecodeFunction> table_;
};

// One function per ops_*.cpp; Registry::standard() calls each (registry.cpp).
void register_integer(Registry&);
void register_logic(Registry&);
void register_float(Registry&);
void register_math(Registry&);
void register_compare(Registry&);
void register_convert(Registry&);
void register_move(Registry&);
void register_memory(Registry&);
void register_control(Registry&);
void register_call(Registry&);
void register_sync(Registry&);
void register_mbarrier(Registry&);
void register_warp(Registry&);
void register_atomic(Registry&);
void register_cp_async(Registry&);
void register_launch_control(Registry&);
void register_wgmma(Registry&);
void register_tcgen05(Registry&);
void register_matrix(Registry&);
void register_wmma(Registry&);
void register_tensormap(Registry&);

}  // namespace tw::sim
