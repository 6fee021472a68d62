#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/ptx/module.h"

// The opcode table: what PTX ISA 9.1 allows after each opcode. It drives the parser, the printer's checks,
// `make` and the simulator's decoder. The rows are text (opcode_table.cpp); this is what they mean once read.
namespace tw::ptx {

// One position in the modifier text: a fixed word ("sync"), or a named choice ("type": s32 or u32).
struct ModifierGroup {
  std::string_view name;  // the word itself when fixed
  std::vector<std::string_view> values;
  int bracket = 0;  // 0: always there; groups that share a bracket are there together or not at all

  bool fixed() const { return bracket == 0 && values.size() == 1; }
  bool takes(std::string_view word) const;
};

enum class OperandKind : uint8_t {
  value,    // a register, where allowed a constant, a symbol or a special register; scalar or vector
  address,  // [base+offset]
  tensor,   // [map, {coordinates}]
  label,
  callee,  // a function's name, or a register that holds its address
  list,    // (a, b)
};

// How many elements an operand has. Where it follows from the modifiers, `element_count` computes it.
enum class Count : uint8_t {
  scalar,
  fixed,  // exactly OperandSpec::fixed_count, as a vector
  vec,    // .v2, .v4, .v8; a scalar without that modifier
  num,    // .x1, .x2, .x4: a vector, also of one
  pack,   // elements that together fill the instruction type (mov)
  any,    // a vector of any length
  mma_a,
  mma_b,
  mma_c,
  mma_d,  // fragments of mma
  wmma,   // fragments of wmma: the register count depends on shape and type
  wgmma_a,
  wgmma_d,
  tmem,  // registers of tcgen05.ld and tcgen05.st
};

struct OperandSpec {
  std::string_view name;  // as in the ISA's syntax: "d", "a", "mbar"
  OperandKind kind = OperandKind::value;
  // Of a value: the register is read or written. Of an address or tensor: memory is; its registers are always
  // read.
  bool read = false, written = false;
  std::string_view type;  // a modifier group ("type"), or a type ("b32"); empty: any
  bool wide = false;      // twice as wide as `type` (mul.wide)
  Count count = Count::scalar;
  int fixed_count = 0;
  enum class Second : uint8_t { no, optional, required } second = Second::no;  // "p|q"
  bool optional = false;
  bool reg = true, constant = false, sink = false, symbol = false, special = false, negatable = false;
  std::vector<std::string_view> only_if;  // there exactly when one of these modifiers is
};

// One row.
struct Form {
  std::string_view opcode;
  std::string_view text;  // the row's modifier text, for messages
  std::string_view operands_text;
  std::vector<ModifierGroup> modifiers;
  std::vector<OperandSpec> operands;
  std::string_view arch;  // "sm_90", "tcgen05", see opcode_table.cpp; empty: every architecture since sm_80
  bool branches = false;  // may continue at a label
  bool ends = false;      // the thread, or the function, ends here
};

// The row as the ISA would write it: "mad.mode{.cc}.type d, a, b, c".
std::string syntax(const Form& form);

// All rows, grouped by opcode.
std::span<const Form> forms();
std::span<const Form> forms(std::string_view opcode);
// True for opcodes that exist in PTX but that Tilewright does not take; `why` says so.
bool rejected_opcode(std::string_view opcode, std::string_view& why);

// Which token of an instruction each modifier group of its form took; -1: absent.
using Assignment = std::array<int8_t, 24>;

// An operand as one opcode text fixes it.
struct ResolvedOperand {
  const OperandSpec* spec = nullptr;
  std::string_view type;  // instruction type ("f16x2", "pred"); empty when any will do
  int count = 0;          // elements; 0 for a scalar, -1 for a vector of any length
};

// Opcode text split, and all rows its modifiers fit. Modifiers may be permuted (ptxas accepts that), as long
// as the leading fixed words and the order among types stay. Kept for the life of the thread.
struct OpcodeText {
  struct Candidate {
    const Form* form = nullptr;
    Assignment assignment{};
    std::vector<ResolvedOperand> operands;  // those that these modifiers call for, optional ones included
  };
  std::vector<std::string_view> tokens;  // interned
  std::vector<Candidate> candidates;

  std::string_view modifier(const Candidate& candidate, std::string_view group) const;
};
const OpcodeText* find_opcode(std::string_view text);  // nullptr: no row fits

// Why no row fits `text`. `at` is the offset of the word to blame.
struct OpcodeComplaint {
  size_t at = 0;
  std::string message;
};
OpcodeComplaint explain_opcode(std::string_view text);

// The row among `text`'s candidates whose operand pattern `operands` fit. `is_predicate`, when given, tells
// registers of type pred from the others. On failure `complaint` says which operand (its index; the count
// when one is missing) and what was expected.
struct OperandComplaint {
  size_t operand = 0;
  std::string message;
};
const Form* match_operands(const OpcodeText& text, std::span<const Operand> operands,
                           const std::function<bool(RegId)>& is_predicate, OperandComplaint& complaint);

// ---- asking an instruction ----

// The word that the instruction has for a modifier group ("type" -> "s32"); empty when it has none.
std::string_view modifier(const Instruction& inst, std::string_view group);
// For each operand its row entry, with type and element count, in order.
std::vector<ResolvedOperand> resolved_operands(const Instruction& inst);

enum class Access : uint8_t { read, write, read_write };
// Every register the instruction touches, guard first, then in order of the operands; registers inside
// addresses are read.
void visit_registers(const Instruction& inst, const std::function<void(RegId, Access)>& visit);

}  // namespace tw::ptx
