#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/source.h"

// A PTX module as data: the one type that lowering builds, the parser reads, the printer writes and the
// simulator decodes. print -> parse -> print is the identity.
namespace tw::ptx {

struct Form;  // one row of the opcode table, opcode.h

// Fundamental types of registers and variables (PTX ISA, "Types"); instruction types are modifiers, kept as
// text.
enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f32x2,
  f64,
};
std::string_view name(Type t);                              // "b32"
std::optional<Type> type_from_name(std::string_view text);  // without the dot
int bytes(Type t);                                          // pred: 1

enum class Space : uint8_t { none, reg, const_, global, local, param, shared };
std::string_view name(Space s);  // "const"

// Index into Function::registers. A nested scope may declare a name again; each declaration has its own id.
struct RegId {
  uint32_t index = ~0u;
  bool operator==(const RegId&) const = default;
};

struct Register {
  std::string name;  // "%r12", as written
  Type type = Type::none;
};

// ---- operands ----

struct RegOperand {
  RegId reg;
  bool negated = false;  // "!%p1"; predicates only
  bool operator==(const RegOperand&) const = default;
};
struct SpecialReg {  // "%tid.x", "%laneid", "%clock64"
  std::string_view name;
  bool operator==(const SpecialReg&) const = default;
};
// An integer or floating constant; `bits` holds the value as 64-bit two's complement, or as the IEEE pattern.
struct Immediate {
  enum class Kind : uint8_t { integer, f32, f64 } kind = Kind::integer;
  uint64_t bits = 0;
  bool is_unsigned = false;  // written with a U suffix
  bool operator==(const Immediate&) const = default;
};
struct Symbol {  // a variable, function or label; "table+8", "generic(table)", in initialisers also
                 // "0xff00(table)"
  std::string name;
  int64_t offset = 0;
  bool generic = false;
  uint64_t mask = 0;  // 0: none
  bool operator==(const Symbol&) const = default;
};
struct Sink {  // "_"
  bool operator==(const Sink&) const = default;
};

struct Operand;
struct Address {              // "[%rd1+16]", "[table-4]", "[0]"; base: a register, symbol or integer
  std::vector<Operand> base;  // exactly one
  int64_t offset = 0;
  bool operator==(const Address&) const;
};
struct TensorAddress {       // "[%rd1, {%r1, %r2}]": a tensor map and its coordinates
  std::vector<Operand> map;  // exactly one
  std::vector<Operand> coordinates;
  bool operator==(const TensorAddress&) const;
};
struct Vector {  // "{%f1, %f2}"
  std::vector<Operand> elements;
  bool operator==(const Vector&) const;
};
struct Pair {                 // "%p1|%p2": two destinations; either may be a Sink
  std::vector<Operand> both;  // exactly two
  bool operator==(const Pair&) const;
};
struct List {  // "(a, b)": arguments of a call
  std::vector<Operand> elements;
  bool operator==(const List&) const;
};

struct Operand {
  std::variant<RegOperand, SpecialReg, Immediate, Symbol, Sink, Address, TensorAddress, Vector, Pair, List>
      value;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value);
  }
  bool operator==(const Operand&) const = default;
};

Operand reg(RegId r);
Operand negated(RegId predicate);
Operand special(std::string_view name);
Operand integer(int64_t value);
Operand f32(float value);
Operand f64(double value);
Operand symbol(std::string_view name);
Operand sink();
Operand address(Operand base, int64_t offset = 0);
Operand tensor_address(Operand map, std::vector<Operand> coordinates);
Operand vector(std::vector<Operand> elements);
Operand pair(Operand first, Operand second);

// ---- statements ----

struct Guard {
  RegId predicate;
  bool negated = false;
  bool operator==(const Guard&) const = default;
};

// "mbarrier.try_wait.parity.shared::cta.b64": tokens = {mbarrier, try_wait, parity, shared::cta, b64},
// interned.
struct Instruction {
  std::optional<Guard> guard;
  std::vector<std::string_view> tokens;
  std::vector<Operand> operands;
  const Form* form = nullptr;  // the table row it matched
  SourceLoc loc;               // where a person wrote it: the kernel's C++ line, or what .loc says
  uint32_t line = 0;           // line in the PTX text, 0 before printing
  int32_t role = -1;           // index into DebugMap::roles

  std::string_view opcode() const { return tokens.front(); }
  bool has(std::string_view modifier) const;
  std::string text() const;  // opcode with its modifiers
};

struct Label {
  std::string name;
};
struct RegDecl {  // ".reg .b32 %r<10>;" or ".reg .pred p, q;"
  Type type = Type::none;
  std::string prefix;  // "%r" of the counted form, else empty
  uint32_t count = 0;
  std::vector<RegId> regs;  // those declared here, in order
};
// A variable of any space but reg: at module scope, in a function, or a parameter.
struct Variable {
  Space space = Space::none;
  Type type = Type::none;
  std::string name;
  uint32_t align = 0;   // bytes, 0: natural
  uint32_t vector = 1;  // 2 for .v2, 4 for .v4
  bool is_array = false;
  std::vector<int64_t> dims;            // array extents; -1: unsized (extern shared)
  std::vector<std::string> linkage;     // "extern", "visible", "weak", "common"
  std::vector<std::string> attributes;  // as text after the type: ".ptr .global", ".attribute(.managed)"
  std::vector<Operand> init;            // flattened initialiser, empty if none
  uint64_t size_bytes() const;          // 0 when unsized
  uint32_t alignment() const;           // bytes: `align`, or the natural one
};
struct ScopeOpen {};
struct ScopeClose {};
struct Loc {  // ".loc file line column" with whatever follows kept as text
  uint32_t file = 0, line = 0, column = 0;
  std::string rest;
};
struct Directive {  // ".pragma \"...\";", ".branchtargets", ".callprototype" and the like, kept as text
  std::string text;
};
struct Comment {  // a line of its own, without the slashes: what lowering tells the reader
  std::string text;
};

using Statement =
    std::variant<Instruction, Label, RegDecl, Variable, ScopeOpen, ScopeClose, Loc, Directive, Comment>;

struct Function {
  bool is_entry = true;
  std::string name;
  std::vector<std::string> linkage;  // "visible", "extern", "weak"
  std::vector<Variable> results;     // .func only
  std::vector<Variable> params;
  std::vector<std::string> directives;  // ".maxntid 128, 1, 1", ".reqnctapercluster 2, 1, 1"
  bool has_body = true;
  std::vector<Register> registers;  // indexed by RegId
  std::vector<Statement> body;

  const Register& operator[](RegId r) const { return registers[r.index]; }
  // The integers of directive `name` (without the dot), e.g. {128, 1, 1}; empty if absent.
  std::vector<int64_t> directive(std::string_view name) const;
};

// Where each parameter lies in the block that a launch passes: in order, each at its alignment ("Kernel
// Function Parameters").
std::vector<uint32_t> parameter_offsets(const Function& entry);

struct File {  // ".file 1 \"kernel.cu\""
  uint32_t index = 0;
  std::string path;
  std::string rest;  // timestamp and size, as text
};

struct Module {
  int version_major = 9, version_minor = 0;
  std::vector<std::string> target;  // {"sm_90a"}, {"sm_100a", "debug"}
  int address_size = 64;
  using Item = std::variant<Function, Variable, File, Directive, Comment>;
  std::vector<Item> items;  // in the order of the text
  std::string name;         // file or kernel name, for messages

  const Function* function(std::string_view name) const;  // nullptr if absent
  std::vector<const Function*> entries() const;
  std::string_view arch() const {
    return target.empty() ? std::string_view{} : std::string_view{target.front()};
  }
};

// Reads a whole module. A user error names the exact token: file, line, column and what was expected there.
Module parse(std::string_view text, std::string_view file_name);

std::string print(const Module& module);
// Also sets Instruction::line to the line each instruction got.
std::string print_and_number(Module& module);

// Builds an instruction from opcode text ("ld.shared.v4.b32") and checks it against the opcode table; a
// mismatch is an internal error that shows the forms that exist.
Instruction make(std::string_view opcode, std::vector<Operand> operands, SourceLoc loc = {});

}  // namespace tw::ptx
