#include <algorithm>
#include <charconv>

#include "tilewright/ptx/parser.h"

// Function bodies: scopes, register declarations, labels, instructions.
namespace tw::ptx {

// ---- names ----

namespace {

// "%r12" as {"%r", 12} when the digits are those that a counted declaration would print.
bool split_counted(std::string_view name, std::string_view& prefix, uint32_t& number) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  const size_t n = name.size() - digits;
  if (n == 0 || n > 7 || (n > 1 && name[digits] == '0')) return false;
  prefix = name.substr(0, digits);
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return true;
}

}  // namespace

const NameScope::Name* NameScope::find(std::string_view name, Name& storage) const {
  if (!ranges_.empty()) {
    // A prefix may itself end in digits, so every way to split is tried: "%r1<10>" declares "%r10".
    for (const Range& r : ranges_) {
      if (name.size() <= r.prefix.size() || !name.starts_with(r.prefix)) continue;
      const std::string_view digits = name.substr(r.prefix.size());
      if (digits.size() > 7 || (digits.size() > 1 && digits.front() == '0')) continue;
      uint32_t n = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
      if (error != std::errc() || end != digits.data() + digits.size() || n >= r.count) continue;
      storage = {true, RegId{r.first.index + n}};
      return &storage;
    }
  }
  if (names_.empty()) return nullptr;
  const auto it = names_.find(name);
  return it == names_.end() ? nullptr : &it->second;
}

bool NameScope::declare(std::string_view name, Name what) {
  Name storage;
  if (find(name, storage)) return false;
  names_.emplace(std::string(name), what);
  return true;
}

bool NameScope::declare_range(Range range) {
  for (const auto& [name, what] : names_) {
    std::string_view prefix;
    uint32_t number = 0;
    if (split_counted(name, prefix, number) && prefix == range.prefix && number < range.count) return false;
  }
  for (const Range& r : ranges_)
    if (r.prefix == range.prefix) return false;
  ranges_.push_back(std::move(range));
  return true;
}

// ---- statements ----

void Parser::body(Function& f) {
  function_ = &f;
  expect('{', "to open the body of the function");
  const size_t outer = scopes_.size() - 1;
  flush_comments(f);
  while (true) {
    const Token& t = lex_.peek();
    if (t.is('}')) {
      if (scopes_.size() == outer + 1) break;
      flush_comments(f);
      close_scope();
      lex_.next();
      f.body.emplace_back(ScopeClose{});
      continue;
    }
    statement(f);
  }
  flush_comments(f);
  function_ = nullptr;
  lex_.next();
}

void Parser::statement(Function& f) {
  flush_comments(f);
  const Token& t = lex_.peek();
  if (t.kind == Token::Kind::dotted) return dotted_statement(f);
  if (t.kind == Token::Kind::word || t.is('@')) return instruction(f);
  if (t.is('{')) {
    if (scopes_.size() > most_scopes)
      user_error(lex_.loc(), "scopes are nested more than {} deep", most_scopes);
    lex_.next();
    scopes_.emplace_back();
    f.body.emplace_back(ScopeOpen{});
    return;
  }
  if (t.is(';')) {  // an empty statement
    lex_.next();
    return;
  }
  expected("an instruction, a label, a declaration or }");
}

void Parser::dotted_statement(Function& f) {
  const std::string_view directive = lex_.peek().text.substr(1);
  if (directive == "reg") return registers(f);
  if (directive == "loc") return location(f);
  if (directive == "branchtargets" || directive == "calltargets") return branch_targets(f);
  if (directive == "callprototype" || directive == "pragma") {
    f.body.emplace_back(raw_directive());
    return;
  }
  for (const Space space : {Space::const_, Space::global, Space::local, Space::param, Space::shared}) {
    if (directive != name(space)) continue;
    lex_.next();
    for (Variable& v : variables({}, space)) f.body.emplace_back(std::move(v));
    return;
  }
  user_error(lex_.loc(),
             "'.{}' is not a directive that a function body takes: .reg, .local, .shared, .param, .const, "
             ".global, .loc, .pragma, .branchtargets, .calltargets, .callprototype",
             directive.substr(0, 64));
}

RegId Parser::add_register(Function& f, std::string_view name, Type t) {
  if (f.registers.size() >= most_registers)
    user_error(lex_.loc(), "more than {} registers in one function", most_registers);
  f.registers.push_back({std::string(name), t});
  return RegId{uint32_t(f.registers.size() - 1)};
}

void Parser::registers(Function& f) {
  lex_.next();
  if (lex_.peek().kind == Token::Kind::dotted && (lex_.peek().text == ".v2" || lex_.peek().text == ".v4"))
    user_error(lex_.loc(), "vector registers are not supported: declare scalar registers");
  const Type t = type();
  RegDecl singles{t, "", 0, {}};
  do {
    const Token name = lex_.peek();
    if (name.kind != Token::Kind::word || name.text == "_") expected("the name of a register");
    lex_.next();
    if (!accept('<')) {
      const RegId r = add_register(f, name.text, t);
      if (!scopes_.back().declare(name.text, {true, r}))
        user_error(lex_.loc(name), "'{}' is declared already in this scope", name.text);
      singles.regs.push_back(r);
      continue;
    }
    const SourceLoc where = lex_.loc();
    const int64_t count = integer_constant("the number of registers", 8);  // ">" ends it
    expect('>', "after the number of registers");
    if (count < 1 || count > int64_t(most_registers - f.registers.size()))
      user_error(where, "{} is not a number of registers: 1 to {}", count, most_registers);
    RegDecl counted{t, std::string(name.text), uint32_t(count), {}};
    for (int64_t i = 0; i < count; ++i)
      counted.regs.push_back(add_register(f, tw::format("{}{}", name.text, i), t));
    if (!scopes_.back().declare_range({counted.prefix, counted.count, counted.regs.front()}))
      user_error(lex_.loc(name), "a register of '{}<{}>' is declared already in this scope", name.text,
                 count);
    f.body.emplace_back(std::move(counted));
  } while (accept(','));
  if (!singles.regs.empty()) f.body.emplace_back(std::move(singles));
  expect(';', "after the register declaration");
}

void Parser::location(Function& f) {
  lex_.next();
  Loc loc;
  for (uint32_t* field : {&loc.file, &loc.line, &loc.column}) {
    if (lex_.peek().kind != Token::Kind::integer) expected("a file, a line and a column");
    *field = uint32_t(lex_.next().bits);
  }
  if (accept(',')) {  // "function_name $L__info_string0, inlined_at 1 20 5"
    const Token first = lex_.peek();
    const auto clause = [&](std::string_view keyword) {
      if (lex_.peek().text != keyword) user_error(lex_.loc(), "expected {}", keyword);
      lex_.next();
    };
    clause("function_name");
    word("a label of the debug strings");
    if (lex_.peek().is('+')) offset();
    expect(',', "before inlined_at");
    clause("inlined_at");
    for (int i = 0; i < 3; ++i) {
      if (lex_.peek().kind != Token::Kind::integer) expected("a file, a line and a column");
      lex_.next();
    }
    loc.rest = std::string(lex_.since(first));
  }
  f.body.emplace_back(std::move(loc));
}

void Parser::branch_targets(Function& f) {
  const Token first = lex_.next();
  Directive d{std::string(first.text) + " "};
  do {
    const Token t = lex_.peek();
    if (t.kind != Token::Kind::word) expected("a label");
    if (first.text == ".branchtargets") scopes_.back().uses.push_back({std::string(t.text), lex_.loc()});
    d.text += (d.text.back() == ' ' ? "" : ", ") + std::string(lex_.next().text);
  } while (accept(','));
  expect(';', "after the list of targets");
  d.text += ';';
  f.body.emplace_back(std::move(d));
}

void Parser::label(Function& f, const Token& name) {
  const auto [it, fresh] = scopes_.back().labels.try_emplace(std::string(name.text), lex_.loc(name));
  if (!fresh)
    throw Error(ErrorKind::user, lex_.loc(name),
                tw::format("label '{}' stands twice in this scope", name.text),
                {{it->second, "the first one"}});
  NameScope::Name storage;
  if (scopes_.back().find(name.text, storage))
    user_error(lex_.loc(name), "'{}' is declared already in this scope", name.text);
  f.body.emplace_back(Label{std::string(name.text)});
}

void Parser::instruction(Function& f) {
  const Token start = lex_.peek();
  Instruction inst;
  if (accept('@')) {
    Guard g;
    g.negated = accept('!');
    const Token t = lex_.peek();
    if (t.kind != Token::Kind::word) expected("a predicate register");
    const auto r = find_register(t.text);
    if (!r) user_error(lex_.loc(), "predicate '{}' is not declared", t.text);
    if (f[*r].type != Type::pred)
      user_error(lex_.loc(), "'{}' is of type .{}, a guard needs .pred", t.text, name(f[*r].type));
    g.predicate = *r;
    lex_.next();
    inst.guard = g;
    if (lex_.peek().kind != Token::Kind::word) expected("an instruction after the guard");
  }
  const Token opcode = lex_.opcode(opcode_storage_);
  if (!inst.guard && lex_.peek().is(':')) {
    lex_.next();
    return label(f, opcode);
  }
  const OpcodeText* text = find_opcode(opcode.text);
  if (!text) {
    const OpcodeComplaint complaint = explain_opcode(opcode.text);
    SourceLoc where = lex_.loc(opcode);
    where.column += uint32_t(complaint.at);
    user_error(where, "{}", complaint.message);
  }
  places_.clear();
  inst.operands.reserve(4);
  if (!lex_.peek().is(';')) {
    const bool lists = text->tokens.front() == "call";
    do {
      places_.push_back(lex_.loc());
      inst.operands.push_back(operand(lists));
    } while (accept(','));
  }
  const SourceLoc end = lex_.loc();
  if (!lex_.peek().is(';')) expected("an operator, a comma or ; in the instruction");
  lex_.next();
  inst.loc = lex_.loc(start);
  inst.line = start.line;
  check_form(inst, *text, opcode, places_, end);
  check_symbols(inst, places_);
  f.body.emplace_back(std::move(inst));
}

void Parser::check_form(Instruction& inst, const OpcodeText& text, const Token& opcode,
                        const std::vector<SourceLoc>& where, const SourceLoc& end) {
  OperandComplaint complaint;
  const Function& f = *function_;
  inst.form = match_operands(
      text, inst.operands, [&](RegId r) { return f[r].type == Type::pred; }, complaint);
  if (inst.form) {
    inst.tokens = text.tokens;
    return;
  }
  std::vector<Note> notes;
  for (const auto& c : text.candidates)
    if (notes.size() < 4) notes.push_back({{}, "form: " + syntax(*c.form)});
  throw Error(ErrorKind::user, complaint.operand < where.size() ? where[complaint.operand] : end,
              tw::format("'{}': expected {} here", opcode.text, complaint.message), std::move(notes));
}

// Labels are looked up when their scope closes, variables and functions must be known already.
void Parser::check_symbols(const Instruction& inst, const std::vector<SourceLoc>& where) {
  const auto check = [&](const Operand& o, const SourceLoc& loc) {
    if (const auto* s = o.as<Symbol>(); s && !declared(s->name))
      user_error(loc, "'{}' is not declared", s->name);
  };
  for (size_t i = 0; i < inst.operands.size(); ++i) {
    const Operand& o = inst.operands[i];
    if (const auto* s = o.as<Symbol>()) {
      const bool target = inst.form->branches || (inst.opcode() == "call" && i > 0 && !declared(s->name));
      if (target) scopes_.back().uses.push_back({s->name, where[i]});
      else check(o, where[i]);
    } else if (const auto* a = o.as<Address>()) {
      check(a->base.front(), where[i]);
    } else if (const auto* t = o.as<TensorAddress>()) {
      check(t->map.front(), where[i]);
    } else if (const auto* l = o.as<List>()) {
      for (const Operand& e : l->elements) check(e, where[i]);
    }
  }
}

void Parser::close_scope() {
  NameScope closed = std::move(scopes_.back());
  scopes_.pop_back();
  const bool outermost = scopes_.size() == 1;
  for (auto& use : closed.uses) {
    if (closed.labels.count(use.name)) continue;
    if (outermost) user_error(use.loc, "there is no label '{}' in this function", use.name);
    scopes_.back().uses.push_back(std::move(use));
  }
}

void Parser::flush_comments(Function& f) {
  for (std::string& c : lex_.take_comments()) f.body.emplace_back(Comment{std::move(c)});
}

}  // namespace tw::ptx
