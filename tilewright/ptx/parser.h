#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/ptx/lexer.h"
#include "tilewright/ptx/module.h"
#include "tilewright/ptx/opcode.h"

// The recursive descent parser behind ptx::parse.
namespace tw::ptx {

// Names declared between a pair of braces.
class NameScope {
 public:
  struct Name {
    bool is_register = false;
    RegId reg;  // of a register
  };
  struct Range {  // %r<100>
    std::string prefix;
    uint32_t count = 0;
    RegId first;
  };
  const Name* find(std::string_view name, Name& storage) const;
  bool declare(std::string_view name, Name what);  // false: there already
  bool declare_range(Range range);

  struct LabelUse {
    std::string name;
    SourceLoc loc;
  };
  std::unordered_map<std::string, SourceLoc> labels;
  std::vector<LabelUse> uses;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  std::unordered_map<std::string, Name, Hash, std::equal_to<>> names_;
  std::vector<Range> ranges_;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file_name) : lex_(text, file_name) {
    module_.name = file_name;
  }
  Module module();

 private:
  // parse_module.cpp: everything outside of function bodies, and declarations
  void header();
  void file_directive();
  void section();
  void function(std::vector<std::string> linkage, bool is_entry);
  std::vector<Variable> parameters(const char* whose);
  Variable parameter();
  void parameter_attributes(Variable& v);
  void performance_directives(Function& f);
  std::vector<Variable> variables(std::vector<std::string> linkage, Space space);
  void variable_name(Variable& v);
  void array_extents(Variable& v);
  void initialiser(Variable& v, size_t level);
  Operand initialiser_element();
  std::vector<std::string> linkage();
  Directive raw_directive();
  Type type();
  uint32_t alignment();

  // parse_body.cpp: statements
  void body(Function& f);
  void statement(Function& f);
  void dotted_statement(Function& f);
  void registers(Function& f);
  void location(Function& f);
  void branch_targets(Function& f);
  void label(Function& f, const Token& name);
  void instruction(Function& f);
  void check_form(Instruction& inst, const OpcodeText& text, const Token& opcode,
                  const std::vector<SourceLoc>& where, const SourceLoc& end);
  void check_symbols(const Instruction& inst, const std::vector<SourceLoc>& where);
  void close_scope();
  void flush_comments(Function& f);
  RegId add_register(Function& f, std::string_view name, Type t);

  // parse_operand.cpp
  Operand operand(bool lists);
  Operand named_operand();
  Operand simple_operand();  // no vectors, addresses or lists
  Operand bracketed();
  Operand braced();
  std::vector<Operand> sequence(char close, const char* what);
  Immediate constant();
  Immediate constant_term(int depth);
  Immediate constant_expression(int precedence, int depth);
  int64_t integer_constant(const char* what, int precedence = 1);
  int64_t offset();
  std::optional<RegId> find_register(std::string_view name) const;
  bool declared(std::string_view name) const;

  // tokens
  [[noreturn]] void expected(const char* what);
  void expect(char c, const char* where);
  bool accept(char c);
  std::string word(const char* what);
  void resolve_locations();

  Lexer lex_;
  Module module_;
  std::vector<NameScope> scopes_{1};  // the first one is the module's
  Function* function_ = nullptr;
  std::string opcode_storage_;
  std::vector<SourceLoc> places_;  // of the operands of the current instruction
};

constexpr size_t most_scopes = 200;
constexpr int most_expression_depth = 100;
constexpr uint32_t most_registers = 1u << 22;      // of one function
constexpr size_t most_elements = size_t(1) << 24;  // of an initialiser

}  // namespace tw::ptx
