#include <algorithm>
#include <utility>

#include "tilewright/ptx/parser.h"
#include "tilewright/ptx/special_registers.h"

// Operands and constant expressions (PTX ISA, "Instruction Operands" and "Constant Expressions").
namespace tw::ptx {
namespace {

struct Binary {
  std::string_view symbol;
  int precedence;
};
constexpr Binary binaries[] = {{"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
                               {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"<", 7},
                               {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

uint64_t fold(std::string_view op, uint64_t a, uint64_t b, bool is_unsigned, const SourceLoc& loc) {
  const auto sa = int64_t(a), sb = int64_t(b);
  const auto less = [&](bool or_equal) {
    return is_unsigned ? (or_equal ? a <= b : a < b) : (or_equal ? sa <= sb : sa < sb);
  };
  if (op == "||") return a || b;
  if (op == "&&") return a && b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "&") return a & b;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<=") return less(true);
  if (op == ">=") return !less(false);
  if (op == "<") return less(false);
  if (op == ">") return !less(true);
  if (op == "<<") return b > 63 ? 0 : a << b;
  if (op == ">>") return is_unsigned ? (b > 63 ? 0 : a >> b) : uint64_t(sa >> std::min<uint64_t>(b, 63));
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (b == 0) user_error(loc, "division by zero in a constant expression");
  if (is_unsigned) return op == "/" ? a / b : a % b;
  if (sb == -1) return op == "/" ? 0 - a : 0;  // INT64_MIN / -1 wraps
  return uint64_t(op == "/" ? sa / sb : sa % sb);
}

Immediate int_value(uint64_t bits, bool is_unsigned) { return {Immediate::Kind::integer, bits, is_unsigned}; }

}  // namespace

Operand Parser::operand(bool lists) {
  const Token& t = lex_.peek();
  if (t.is('[')) return bracketed();
  if (t.is('{')) return braced();
  if (t.is('(') && lists) {
    lex_.next();
    return {List{sequence(')', "an argument")}};
  }
  Operand first = simple_operand();
  if (!lex_.peek().is('|') || !(first.is<RegOperand>() || first.is<Sink>())) return first;
  lex_.next();
  const SourceLoc where = lex_.loc();
  Operand second = simple_operand();
  if (!second.is<RegOperand>() && !second.is<Sink>()) user_error(where, "expected a register or _ after |");
  return pair(std::move(first), std::move(second));
}

Operand Parser::simple_operand() {
  const Token& t = lex_.peek();
  if (t.is('!')) {
    const Token bang = lex_.next();
    if (lex_.peek().kind == Token::Kind::word) {
      const SourceLoc where = lex_.loc();
      Operand o = named_operand();
      if (const auto* r = o.as<RegOperand>()) return negated(r->reg);
      user_error(where, "only a predicate register can follow !");
    }
    user_error(lex_.loc(bang), "expected a predicate register after !");
  }
  if (t.kind == Token::Kind::word && t.text != "WARP_SZ") return named_operand();
  return {constant()};
}

Operand Parser::named_operand() {
  const Token t = lex_.next();
  if (t.text == "_") return sink();
  if (const auto r = find_register(t.text)) {
    if (lex_.peek().kind == Token::Kind::dotted && lex_.peek().text.data() == t.text.data() + t.text.size())
      user_error(
          lex_.loc(),
          "'{}' selects a part of register '{}': vector registers and video selectors are not supported",
          lex_.peek().text, t.text);
    return reg(*r);
  }
  if (t.text.front() == '%') {
    std::string name(t.text);
    if (lex_.peek().kind == Token::Kind::dotted) name += lex_.peek().text;
    if (const SpecialRegister* s = find_special_register(name)) {
      if (name.size() > t.text.size()) lex_.next();
      return {SpecialReg{s->name}};
    }
    user_error(lex_.loc(t), "register '{}' is not declared", name);
  }
  Symbol s{std::string(t.text)};
  s.offset = offset();
  return {std::move(s)};
}

// "+16", "+-8", "-8", or nothing.
int64_t Parser::offset() {
  if (lex_.peek().is('+')) {
    lex_.next();
    return int64_t(constant_expression(9, 0).bits);
  }
  return lex_.peek().is('-') ? int64_t(constant_expression(9, 0).bits) : 0;
}

Operand Parser::bracketed() {
  lex_.next();
  Operand base;
  const SourceLoc where = lex_.loc();
  if (lex_.peek().kind == Token::Kind::word && lex_.peek().text != "WARP_SZ") {
    base = named_operand();
    if (base.is<Sink>() || base.is<SpecialReg>())
      user_error(where, "expected a register, a variable or a constant in the address");
  } else {
    const Immediate i = constant();
    if (i.kind != Immediate::Kind::integer)
      user_error(where, "an address cannot be a floating-point constant");
    base = {i};
  }
  if (accept(',')) {
    if (!lex_.peek().is('{')) expected("{ and the tensor coordinates");
    Operand coordinates = braced();
    expect(']', "after the tensor coordinates");
    if (const auto* s = base.as<Symbol>(); s && s->offset != 0)
      user_error(where, "a tensor map takes no offset");
    return tensor_address(std::move(base), std::move(std::get<Vector>(coordinates.value).elements));
  }
  int64_t bytes = 0;
  if (auto* s = std::get_if<Symbol>(&base.value)) bytes = std::exchange(s->offset, 0);
  else if (base.is<RegOperand>()) bytes = offset();
  expect(']', "after the address");
  return address(std::move(base), bytes);
}

Operand Parser::braced() {
  lex_.next();
  return vector(sequence('}', "an element"));
}

std::vector<Operand> Parser::sequence(char close, const char* what) {
  std::vector<Operand> out;
  if (accept(close)) return out;
  while (true) {
    if (const Token& t = lex_.peek(); t.is('{') || t.is('[') || t.is(close) || t.is(',')) expected(what);
    out.push_back(simple_operand());
    if (accept(close)) return out;
    expect(',', close == ')' ? "or ) in the list" : "or } in the vector");
  }
}

Immediate Parser::constant() { return constant_expression(1, 0); }

int64_t Parser::integer_constant(const char* what, int precedence) {
  const SourceLoc where = lex_.loc();
  const Token::Kind kind = lex_.peek().kind;
  if (kind != Token::Kind::integer && kind != Token::Kind::punct && lex_.peek().text != "WARP_SZ")
    expected(what);
  const Immediate i = constant_expression(precedence, 0);
  if (i.kind != Immediate::Kind::integer) user_error(where, "expected {}, an integer", what);
  return int64_t(i.bits);
}

Immediate Parser::constant_term(int depth) {
  if (depth > most_expression_depth) user_error(lex_.loc(), "this expression is nested too deeply");
  const Token t = lex_.peek();
  switch (t.kind) {
    case Token::Kind::integer: lex_.next(); return int_value(t.bits, t.is_unsigned);
    case Token::Kind::f32: lex_.next(); return {Immediate::Kind::f32, t.bits, false};
    case Token::Kind::f64: lex_.next(); return {Immediate::Kind::f64, t.bits, false};
    case Token::Kind::word:
      if (t.text != "WARP_SZ") break;
      lex_.next();
      return int_value(32, false);
    case Token::Kind::punct: {
      const char c = t.text.front();
      if (c != '-' && c != '+' && c != '~' && c != '!' && c != '(') break;
      lex_.next();
      if (c == '(') {
        if (lex_.peek().kind == Token::Kind::dotted &&
            (lex_.peek().text == ".s64" || lex_.peek().text == ".u64")) {
          const bool to_unsigned = lex_.next().text == ".u64";
          expect(')', "after the cast");
          return int_value(constant_term(depth + 1).bits, to_unsigned);
        }
        const Immediate inner = constant_expression(1, depth + 1);
        expect(')', "after the expression");
        return inner;
      }
      Immediate v = constant_term(depth + 1);
      if (v.kind != Immediate::Kind::integer) {
        if (c == '+') return v;
        if (c != '-') user_error(lex_.loc(t), "'{}' needs an integer", c);
        v.bits ^= v.kind == Immediate::Kind::f32 ? uint64_t(1) << 31 : uint64_t(1) << 63;
        return v;
      }
      if (c == '-') return int_value(0 - v.bits, v.is_unsigned && v.bits != uint64_t(1) << 63);
      if (c == '~') return int_value(~v.bits, v.is_unsigned);
      if (c == '!') return int_value(v.bits == 0, false);
      return v;
    }
    default: break;
  }
  expected("an operand");
}

// Precedence climbing over the operators of C.
Immediate Parser::constant_expression(int precedence, int depth) {
  Immediate left = constant_term(depth);
  while (lex_.peek().kind == Token::Kind::punct) {
    const Token t = lex_.peek();
    const Binary* found = nullptr;
    for (const Binary& b : binaries) {
      if (!lex_.at(b.symbol)) continue;
      found = &b;
      break;
    }
    if (!found || found->precedence < precedence) break;
    for (size_t i = 0; i < found->symbol.size(); ++i) lex_.next();
    const Immediate right = constant_expression(found->precedence + 1, depth + 1);
    if (left.kind != Immediate::Kind::integer || right.kind != Immediate::Kind::integer)
      user_error(lex_.loc(t), "'{}' needs integers on both sides", found->symbol);
    const bool is_unsigned =
        left.is_unsigned || (right.is_unsigned && found->symbol != "<<" && found->symbol != ">>");
    left = int_value(fold(found->symbol, left.bits, right.bits, is_unsigned, lex_.loc(t)), is_unsigned);
  }
  return left;
}

std::optional<RegId> Parser::find_register(std::string_view name) const {
  NameScope::Name storage;
  for (size_t i = scopes_.size(); i-- > 0;)
    if (const auto* found = scopes_[i].find(name, storage))
      return found->is_register ? std::optional(found->reg) : std::nullopt;
  return std::nullopt;
}

bool Parser::declared(std::string_view name) const {
  NameScope::Name storage;
  for (size_t i = scopes_.size(); i-- > 0;)
    if (scopes_[i].find(name, storage)) return true;
  return false;
}

}  // namespace tw::ptx
