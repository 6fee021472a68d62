#include <charconv>

#include "tilewright/base/format.h"
#include "tilewright/ptx/module.h"

namespace tw::ptx {
namespace {

constexpr size_t operand_column = 32;  // where operands start when the opcode leaves room

class Printer {
 public:
  std::string module(const Module& m) {
    line(".version {}.{}", m.version_major, m.version_minor);
    out_ += ".target ";
    for (size_t i = 0; i < m.target.size(); ++i) out_.append(i ? ", " : "").append(m.target[i]);
    end_line();
    line(".address_size {}", m.address_size);
    for (const auto& item : m.items) std::visit([&](const auto& i) { this->item(i); }, item);
    return std::move(out_);
  }
  std::vector<uint32_t> instruction_lines;  // in order of the text

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    out_ += tw::vformat(text, fmt::make_format_args(args...));
  }
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    put(text, std::forward<Args>(args)...);
    end_line();
  }
  void end_line() {
    out_ += '\n';
    ++line_;
  }
  // Text of someone else, which may hold line ends of its own.
  void verbatim(std::string_view text) {
    out_ += text;
    for (const char c : text) line_ += c == '\n';
  }
  void indent() { out_.append(2 * size_t(depth_), ' '); }

  // ---- module scope ----
  void item(const Function& f) {
    end_line();
    for (const auto& l : f.linkage) put(".{} ", l);
    out_ += f.is_entry ? ".entry " : ".func ";
    if (!f.results.empty()) {
      params(f.results);
      out_ += ' ';
    }
    out_ += f.name;
    params(f.params);
    for (const auto& d : f.directives) {
      end_line();
      verbatim(d);
    }
    if (!f.has_body) {
      out_ += ";";
      end_line();
      return;
    }
    end_line();
    line("{{");
    depth_ = 1;
    function_ = &f;
    for (const Statement& s : f.body) std::visit([&](const auto& x) { statement(x); }, s);
    depth_ = 0;
    line("}}");
  }
  void params(const std::vector<Variable>& list) {
    if (list.size() < 2) {
      out_ += '(';
      for (const Variable& v : list) declaration(v);
      out_ += ')';
      return;
    }
    out_ += "(";
    end_line();
    for (size_t i = 0; i < list.size(); ++i) {
      out_ += "  ";
      declaration(list[i]);
      if (i + 1 < list.size()) out_ += ',';
      end_line();
    }
    out_ += ')';
  }
  void item(const Variable& v) { statement(v); }
  void item(const File& f) {
    line(".file {} \"{}\"{}{}", f.index, f.path, f.rest.empty() ? "" : ", ", f.rest);
  }
  void item(const Directive& d) { statement(d); }
  void item(const Comment& c) { statement(c); }

  void declaration(const Variable& v) {
    for (const auto& l : v.linkage) put(".{} ", l);
    put(".{} ", name(v.space));
    std::string after;  // a parameter's ".ptr" attributes follow its type
    for (const auto& a : v.attributes) {
      if (a.starts_with(".attribute")) put("{} ", a);
      else after += ' ' + a;
    }
    if (v.align) put(".align {} ", v.align);
    if (v.vector > 1) put(".v{} ", v.vector);
    put(".{}{} {}", name(v.type), after, v.name);
    for (const int64_t d : v.dims) {
      if (d < 0) out_ += "[]";
      else put("[{}]", d);
    }
    if (!v.init.empty()) {
      out_ += " = ";
      initialiser(v);
    }
  }

  void initialiser(const Variable& v) {
    if (!v.is_array && v.vector == 1) {
      operand(v.init.front());
      return;
    }
    // Several dimensions need nested braces.
    std::vector<size_t> extents;
    for (const int64_t d : v.dims) extents.push_back(d < 0 ? v.init.size() : size_t(d));
    if (v.vector > 1) extents.push_back(v.vector);
    size_t next = 0;
    nested(v.init, extents, 0, next);
  }
  void nested(const std::vector<Operand>& init, const std::vector<size_t>& extents, size_t level,
              size_t& next) {
    out_ += '{';
    for (size_t i = 0; i < extents[level] && next < init.size(); ++i) {
      if (i) out_ += ", ";
      if (level + 1 < extents.size()) nested(init, extents, level + 1, next);
      else operand(init[next++]);
    }
    out_ += '}';
  }

  // ---- statements ----
  void statement(const Instruction& inst) {
    instruction_lines.push_back(line_);
    indent();
    const size_t start = out_.size();
    if (inst.guard) {
      out_ += inst.guard->negated ? "@!" : "@";
      reg(inst.guard->predicate);
      out_ += ' ';
    }
    out_ += inst.tokens.front();
    for (size_t i = 1; i < inst.tokens.size(); ++i) out_.append(1, '.').append(inst.tokens[i]);
    if (!inst.operands.empty()) {
      const size_t width = out_.size() - start;
      out_.append(width < operand_column ? operand_column - width : 1, ' ');
      list(inst.operands);
    }
    out_ += ';';
    end_line();
  }
  void statement(const Label& l) { line("{}:", l.name); }
  void statement(const RegDecl& r) {
    indent();
    put(".reg .{} ", name(r.type));
    if (!r.prefix.empty()) {
      put("{}<{}>", r.prefix, r.count);
    } else {
      for (size_t i = 0; i < r.regs.size(); ++i) {
        if (i) out_ += ", ";
        reg(r.regs[i]);
      }
    }
    out_ += ';';
    end_line();
  }
  void statement(const Variable& v) {
    indent();
    declaration(v);
    out_ += ';';
    end_line();
  }
  void statement(const ScopeOpen&) {
    indent();
    line("{{");
    ++depth_;
  }
  void statement(const ScopeClose&) {
    depth_ = depth_ > 1 ? depth_ - 1 : 1;
    indent();
    line("}}");
  }
  void statement(const Loc& l) {
    indent();
    put(".loc {} {} {}", l.file, l.line, l.column);
    if (!l.rest.empty()) put(", {}", l.rest);
    end_line();
  }
  void statement(const Directive& d) {
    indent();
    verbatim(d.text);
    if (!d.text.empty() && d.text.back() != ';' && d.text.back() != '}') out_ += ';';
    end_line();
  }
  void statement(const Comment& c) {
    std::string_view rest = c.text;
    while (true) {
      const size_t end = rest.find('\n');
      const std::string_view row = rest.substr(0, end);
      indent();
      line("//{}{}", row.empty() ? "" : " ", row);
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
    }
  }

  // ---- operands ----
  void reg(RegId r) { out_ += (*function_)[r].name; }
  void list(const std::vector<Operand>& operands) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i) out_ += ", ";
      operand(operands[i]);
    }
  }
  void operand(const Operand& o) {
    std::visit([&](const auto& x) { value(x); }, o.value);
  }
  void value(const RegOperand& r) {
    if (r.negated) out_ += '!';
    reg(r.reg);
  }
  void integer(int64_t n) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  }
  void value(const SpecialReg& s) { out_ += s.name; }
  void value(const Immediate& i) {
    switch (i.kind) {
      case Immediate::Kind::f32: put("0f{:08X}", uint32_t(i.bits)); break;
      case Immediate::Kind::f64: put("0d{:016X}", i.bits); break;
      case Immediate::Kind::integer:
        if (i.is_unsigned) put("{}U", i.bits);
        else if (int64_t(i.bits) == INT64_MIN) out_ += "-0x8000000000000000";
        else put("{}", int64_t(i.bits));
    }
  }
  void offset(int64_t n) {  // ptxas takes "+-8", not "-8"
    if (n == 0) return;
    out_ += '+';
    integer(n);
  }
  void value(const Symbol& s) {
    if (s.mask) put("0x{:X}(", s.mask);
    if (s.generic) out_ += "generic(";
    out_ += s.name;
    if (s.generic) out_ += ')';
    if (s.mask) out_ += ')';
    offset(s.offset);
  }
  void value(const Sink&) { out_ += '_'; }
  void value(const Address& a) {
    out_ += '[';
    operand(a.base.front());
    offset(a.offset);
    out_ += ']';
  }
  void value(const TensorAddress& t) {
    out_ += '[';
    operand(t.map.front());
    out_ += ", {";
    list(t.coordinates);
    out_ += "}]";
  }
  void value(const Vector& v) {
    out_ += '{';
    list(v.elements);
    out_ += '}';
  }
  void value(const Pair& p) {
    operand(p.both[0]);
    out_ += '|';
    operand(p.both[1]);
  }
  void value(const List& l) {
    out_ += '(';
    list(l.elements);
    out_ += ')';
  }

  std::string out_;
  uint32_t line_ = 1;
  int depth_ = 0;
  const Function* function_ = nullptr;
};

}  // namespace

std::string print(const Module& module) { return Printer().module(module); }

std::string print_and_number(Module& module) {
  Printer printer;
  std::string text = printer.module(module);
  size_t next = 0;
  for (auto& item : module.items)
    if (auto* f = std::get_if<Function>(&item))
      for (Statement& s : f->body)
        if (auto* inst = std::get_if<Instruction>(&s)) inst->line = printer.instruction_lines[next++];
  return text;
}

}  // namespace tw::ptx
