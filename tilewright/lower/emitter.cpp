#include "tilewright/lower/emitter.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/base/math.h"
#include "tilewright/ir/simplify.h"

namespace tw::lowering {

using ir::Expr;
using ir::Op;

ptx::Type register_type(DType t) {
  switch (t) {
    case DType::b1: return ptx::Type::pred;
    case DType::f32: return ptx::Type::f32;
    case DType::f64: return ptx::Type::f64;
    default: return bits(t) == 64 ? ptx::Type::b64 : bits(t) == 16 ? ptx::Type::b16 : ptx::Type::b32;
  }
}

std::string type_suffix(DType t) {
  if (t == DType::b1) return "pred";
  if (is_integer(t)) return format("{}{}", is_signed(t) ? 's' : 'u', bits(t));
  return std::string(name(t));
}

namespace {

const char* prefix(ptx::Type t) {
  switch (t) {
    case ptx::Type::pred: return "%p";
    case ptx::Type::f32: return "%f";
    case ptx::Type::f64: return "%fd";
    case ptx::Type::b64: return "%rd";
    case ptx::Type::b128: return "%rq";
    case ptx::Type::b16: return "%h";
    default: return "%r";
  }
}

bool non_negative(const Expr& e) {
  ir::Range r = ir::range(e);
  return r.lo && *r.lo >= 0;
}

}  // namespace

Emitter::Emitter(ptx::Function& function) : function_(function) { regions_.emplace_back(); }

ptx::RegId Emitter::fresh(ptx::Type type) {
  auto& list = declared_[static_cast<int>(type)];
  ptx::RegId id{static_cast<uint32_t>(function_.registers.size())};
  function_.registers.push_back({format("{}{}", prefix(type), list.size()), type});
  list.push_back(id);
  return id;
}

void Emitter::push(ptx::Instruction i) {
  i.role = role_;
  regions_[at_].code.push_back(std::move(i));
}

void Emitter::emit(std::string_view opcode, std::vector<ptx::Operand> operands) {
  push(ptx::make(opcode, std::move(operands), loc_));
}

void Emitter::emit_if(const ptx::Operand& predicate, std::string_view opcode,
                      std::vector<ptx::Operand> operands) {
  ptx::Instruction i = ptx::make(opcode, std::move(operands), loc_);
  const auto* p = predicate.as<ptx::RegOperand>();
  require(p != nullptr, "a guard is a predicate register");
  i.guard = ptx::Guard{p->reg, p->negated};
  push(std::move(i));
}

void Emitter::comment(std::string text) { regions_[at_].code.push_back(ptx::Comment{std::move(text)}); }
std::string Emitter::fresh_label(std::string_view stem) { return format("${}_{}", stem, labels_++); }
void Emitter::label(const std::string& name) { regions_[at_].code.push_back(ptx::Label{name}); }

void Emitter::at_entry(const std::function<void()>& f) {
  size_t outer = at_;
  at_ = 0;
  std::swap(regions_[0].code, entry_);
  f();
  std::swap(regions_[0].code, entry_);
  at_ = outer;
}

// ---- regions ----

bool Emitter::changes_in(const Expr& e, const Region& r) const {
  if (e->op == Op::load) return true;
  if (e->op == Op::variable) return r.changes.contains(e->variable.get());
  return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return changes_in(a, r); });
}

size_t Emitter::home(const Expr& e) const {
  size_t best = at_;
  for (size_t i = at_; i > 0; --i) {
    const Region& r = regions_[i];
    if (r.kind == RegionKind::role || changes_in(e, r)) break;
    if (r.kind == RegionKind::loop) best = i - 1;
  }
  return best;
}

const ptx::RegId* Emitter::find(const Expr& e) const {
  for (size_t i = at_ + 1; i-- > 0;) {
    auto it = regions_[i].values.find(e);
    if (it != regions_[i].values.end()) return &it->second;
  }
  return nullptr;
}

void Emitter::forget(const std::unordered_set<const ir::Variable*>& variables) {
  Region probe;
  probe.changes = variables;
  for (Region& r : regions_)
    std::erase_if(r.values, [&](const auto& v) { return changes_in(v.first, probe); });
}

void Emitter::open(RegionKind kind, const std::unordered_set<const ir::Variable*>& assigned,
                   const ir::For* counter) {
  forget(assigned);
  Region r;
  r.kind = kind;
  r.changes = assigned;
  r.counter = counter;
  if (counter) r.changes.insert(counter->variable.get());
  regions_.push_back(std::move(r));
  at_ = regions_.size() - 1;
}

void Emitter::turn() {
  for (const Induction& i : regions_[at_].inductions) {
    emit(i.type == ptx::Type::b64 ? "add.s64" : "add.s32",
         {ptx::reg(i.reg), ptx::reg(i.reg), ptx::integer(i.step)});
  }
}

void Emitter::close() {
  require(regions_.size() > 1 && at_ == regions_.size() - 1, "close() matches an open()");
  Region r = std::move(regions_.back());
  regions_.pop_back();
  at_ = regions_.size() - 1;
  auto& code = regions_[at_].code;
  std::move(r.code.begin(), r.code.end(), std::back_inserter(code));
}

void Emitter::close_loop(const std::string& top) {
  auto& outer = regions_[at_ - 1].code;
  outer.push_back(ptx::Label{top});
  close();
}

void Emitter::finish() {
  require(regions_.size() == 1, "all regions are closed");
  std::vector<ptx::Statement> body;
  for (const auto& [type, regs] :
       std::vector<std::pair<int, std::vector<ptx::RegId>>>(declared_.begin(), declared_.end())) {
    ptx::Type t = static_cast<ptx::Type>(type);
    body.push_back(ptx::RegDecl{t, prefix(t), static_cast<uint32_t>(regs.size()), regs});
  }
  std::sort(body.begin(), body.end(), [](const ptx::Statement& a, const ptx::Statement& b) {
    return std::get<ptx::RegDecl>(a).type < std::get<ptx::RegDecl>(b).type;
  });
  auto& code = regions_[0].code;
  std::move(entry_.begin(), entry_.end(), std::back_inserter(body));
  std::move(code.begin(), code.end(), std::back_inserter(body));
  std::move(body.begin(), body.end(), std::back_inserter(function_.body));
  code.clear();
}

// ---- variables ----

void Emitter::bind(const ir::VarRef& v, ptx::RegId r) {
  variables_[v.get()] = r;
  regions_[at_].changes.insert(v.get());
}

void Emitter::declare(const ir::VarRef& v, const Expr& initial) {
  ptx::Operand x = value(initial);
  ptx::RegId r = fresh(register_type(v->type));
  bind(v, r);
  emit("mov." + (v->type == DType::b1 ? std::string("pred") : format("{}", name(register_type(v->type)))),
       {ptx::reg(r), x});
}

void Emitter::assign(const ir::VarRef& v, const Expr& e) {
  ptx::Operand x = value(e);
  ptx::RegId r = register_of(v);
  forget({v.get()});
  emit("mov." + std::string(name(register_type(v->type))), {ptx::reg(r), x});
}

ptx::RegId Emitter::register_of(const ir::VarRef& v) const {
  auto it = variables_.find(v.get());
  if (it == variables_.end()) internal_error(loc_, "variable '{}' has no register", v->name);
  return it->second;
}

// ---- values ----

ptx::Operand Emitter::value(const Expr& e) {
  if (e->op == Op::constant && e.type() != DType::b1) {
    if (e.type() == DType::f32) return ptx::f32(static_cast<float>(e->real));
    if (e.type() == DType::f64) return ptx::f64(e->real);
    if (is_integer(e.type())) return ptx::integer(e->integer);
    return ptx::integer(from_double(e.type(), e->real));  // a narrow type's bits
  }
  if (e->op == Op::logical_not) {
    ptx::Operand x = value(e->args[0]);
    const auto* r = x.as<ptx::RegOperand>();
    return r->negated ? ptx::reg(r->reg) : ptx::negated(r->reg);
  }
  return ptx::reg(reg(e));
}

ptx::RegId Emitter::reg(const Expr& e) {
  if (e->op == Op::variable) return register_of(e->variable);
  if (const ptx::RegId* known = find(e)) return *known;
  size_t outer = at_;
  at_ = home(e);
  ptx::RegId r = compute(e);
  if (e->op != Op::load) regions_[at_].values.emplace(e, r);
  at_ = outer;
  return r;
}

ptx::Operand Emitter::address(const Expr& bytes) {
  ir::Linear sum = ir::linear(bytes);
  int64_t offset = sum.constant;
  if (sum.terms.empty() || offset < INT32_MIN || offset > INT32_MAX)
    return ptx::address(ptx::reg(reg(bytes)), 0);
  sum.constant = 0;
  return ptx::address(ptx::reg(reg(ir::to_expr(sum, bytes.type()))), offset);
}

ptx::RegId Emitter::simple(std::string_view opcode, const Expr& e) {
  std::vector<ptx::Operand> operands;
  for (const Expr& a : e->args) operands.push_back(a.type() == DType::b1 ? ptx::reg(reg(a)) : value(a));
  ptx::RegId r = fresh(register_type(e.type()));
  operands.insert(operands.begin(), ptx::reg(r));
  emit(opcode, std::move(operands));
  return r;
}

ptx::RegId Emitter::compute(const Expr& e) {
  std::string type = type_suffix(e.type());
  std::string width = format("b{}", std::max(16, bits(e.type())));
  switch (e->op) {
    case Op::constant: {
      ptx::RegId r = fresh(register_type(e.type()));
      if (e.type() == DType::b1)
        emit("setp.ne.b32", {ptx::reg(r), ptx::integer(e->integer), ptx::integer(0)});
      else emit(format("mov.{}", name(register_type(e.type()))), {ptx::reg(r), value(e)});
      return r;
    }
    case Op::add: return is_float(e.type()) ? simple(format("add.rn.{}", type), e) : sum(e);
    case Op::mul: return is_float(e.type()) ? simple(format("mul.rn.{}", type), e) : product(e);
    case Op::div: return is_float(e.type()) ? simple(format("div.rn.{}", type), e) : quotient(e);
    case Op::mod: return quotient(e);
    case Op::bit_and: return simple("and." + width, e);
    case Op::bit_or: return simple("or." + width, e);
    case Op::bit_xor: return simple("xor." + width, e);
    case Op::shl: return simple("shl." + width, e);
    case Op::shr: return simple(format("shr.{}", type), e);
    case Op::min: return simple(format("min.{}", type), e);
    case Op::max: return simple(format("max.{}", type), e);
    case Op::lt:
    case Op::le:
    case Op::eq:
    case Op::ne: return comparison(e);
    case Op::logical_not: return simple("not.pred", e);
    case Op::logical_and: return simple("and.pred", e);
    case Op::logical_or: return simple("or.pred", e);
    case Op::select: {
      ptx::Operand c = value(e->args[0]), yes = value(e->args[1]), no = value(e->args[2]);
      ptx::RegId r = fresh(register_type(e.type()));
      const auto* p = c.as<ptx::RegOperand>();
      if (p->negated) std::swap(yes, no);
      emit(format("selp.{}", name(register_type(e.type()))), {ptx::reg(r), yes, no, ptx::reg(p->reg)});
      return r;
    }
    case Op::cast: return conversion(e);
    case Op::neg:
    case Op::abs:
    case Op::exp2:
    case Op::log2:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::reciprocal:
    case Op::tanh: return unary(e);
    default: internal_error(loc_, "no instruction computes {}", ir::to_string(e));
  }
}

ptx::RegId Emitter::scaled(const Expr& atom, int64_t c, DType type) {
  Expr inner = atom->op == Op::cast && is_integer(atom->args[0].type()) ? atom->args[0] : atom;
  ptx::RegId r = fresh(register_type(type));
  if (bits(type) == 64 && bits(inner.type()) == 32) {
    if (c == 1)
      emit(non_negative(inner) ? "cvt.u64.u32" : "cvt.s64.s32", {ptx::reg(r), ptx::reg(reg(inner))});
    else if (c == static_cast<int32_t>(c))
      emit(non_negative(inner) && c > 0 ? "mul.wide.u32" : "mul.wide.s32",
           {ptx::reg(r), ptx::reg(reg(inner)), ptx::integer(c)});
    else emit("mul.lo.s64", {ptx::reg(r), ptx::reg(reg(atom)), ptx::integer(c)});
    return r;
  }
  std::string w = format("{}", bits(type));
  if (is_power_of_two(c))
    emit("shl.b" + w, {ptx::reg(r), ptx::reg(reg(atom)), ptx::integer(log2_exact(static_cast<uint64_t>(c)))});
  else emit("mul.lo.s" + w, {ptx::reg(r), ptx::reg(reg(atom)), ptx::integer(c)});
  return r;
}

// e = fixed part + coefficient * the loop's counter: a register that starts before the loop and steps with
// it.
ptx::RegId Emitter::induction(const Expr& e, size_t loop, int64_t coefficient) {
  const ir::For& f = *regions_[loop].counter;
  Expr start = ir::substitute(e, f.variable, f.begin);
  size_t outer = at_;
  at_ = loop - 1;
  ptx::Operand initial = value(start);
  ptx::RegId r = fresh(register_type(e.type()));
  emit(bits(e.type()) == 64 ? "mov.b64" : "mov.b32", {ptx::reg(r), initial});
  regions_[loop].inductions.push_back({r, coefficient * f.step, register_type(e.type())});
  at_ = outer;
  return r;
}

ptx::RegId Emitter::sum(const Expr& e) {
  ir::Linear all = ir::linear(e);
  DType type = e.type();
  // Inside a counted loop: does only the counter change, times a constant? 64-bit sums are worth a register.
  const Region& here = regions_[at_];
  if (here.kind == RegionKind::loop && here.counter && bits(type) == 64) {
    int64_t coefficient = 0;
    bool affine = true;
    for (const ir::Term& t : all.terms) {
      const Expr& atom = t.atom->op == Op::cast ? t.atom->args[0] : t.atom;
      if (atom->op == Op::variable && atom->variable == here.counter->variable) coefficient = t.coefficient;
      else affine &= !changes_in(t.atom, here);
    }
    if (affine && coefficient != 0) return induction(e, at_, coefficient);
  }

  // Terms that an enclosing region can compute are summed there.
  ir::Linear fixed, varying;
  for (const ir::Term& t : all.terms) (home(t.atom) < at_ ? fixed : varying).terms.push_back(t);
  if (fixed.terms.size() + (all.constant != 0) <= 1 || varying.terms.empty()) {
    varying = all;
  } else {
    fixed.constant = all.constant;
    Expr part = ir::to_expr(fixed, type);
    if (home(part) < at_) varying.terms.push_back({1, part});
    else varying = all;
  }

  std::string suffix = bits(type) == 64 ? "s64" : "s32";
  // A positive term first, so that subtraction needs no negation.
  std::stable_sort(varying.terms.begin(), varying.terms.end(), [](const ir::Term& a, const ir::Term& b) {
    return a.coefficient > 0 && b.coefficient < 0;
  });
  ptx::Operand total;
  bool first = true;
  for (const ir::Term& t : varying.terms) {
    bool subtract = t.coefficient == -1 && !first;
    int64_t c = subtract ? 1 : t.coefficient;
    bool as_is = c == 1 && bits(t.atom.type()) == bits(type);
    ptx::Operand term = ptx::reg(reg(as_is ? t.atom : ir::to_expr({{{c, t.atom}}, 0}, type)));
    if (first) {
      total = term;
      first = false;
      continue;
    }
    ptx::RegId r = fresh(register_type(type));
    emit((subtract ? "sub." : "add.") + suffix, {ptx::reg(r), total, term});
    total = ptx::reg(r);
  }
  if (varying.constant != 0) {
    ptx::RegId r = fresh(register_type(type));
    emit("add." + suffix, {ptx::reg(r), total, ptx::integer(varying.constant)});
    total = ptx::reg(r);
  }
  return total.as<ptx::RegOperand>()->reg;
}

ptx::RegId Emitter::product(const Expr& e) {
  if (auto c = e->args[1].constant()) return scaled(e->args[0], *c, e.type());
  const Expr &a = e->args[0], &b = e->args[1];
  auto narrow = [](const Expr& x) {
    return x->op == Op::cast && bits(x->args[0].type()) == 32 ? x->args[0] : x;
  };
  if (bits(e.type()) == 64 && bits(narrow(a).type()) == 32 && bits(narrow(b).type()) == 32) {
    ptx::Operand x = value(narrow(a)), y = value(narrow(b));
    ptx::RegId r = fresh(ptx::Type::b64);
    emit(non_negative(narrow(a)) && non_negative(narrow(b)) ? "mul.wide.u32" : "mul.wide.s32",
         {ptx::reg(r), x, y});
    return r;
  }
  return simple(format("mul.lo.{}", type_suffix(e.type())), e);
}

ptx::RegId Emitter::quotient(const Expr& e) {
  const Expr& a = e->args[0];
  bool div = e->op == Op::div, positive = non_negative(a);
  auto d = e->args[1].constant();
  std::string w = format("{}", bits(e.type()));
  if (d && is_power_of_two(*d)) {
    ptx::Operand x = value(a);
    ptx::RegId r = fresh(register_type(e.type()));
    // An arithmetic shift rounds toward minus infinity, and a mask gives the matching remainder.
    if (div)
      emit(format("shr.{}{}", positive ? "u" : "s", w),
           {ptx::reg(r), x, ptx::integer(log2_exact(static_cast<uint64_t>(*d)))});
    else emit("and.b" + w, {ptx::reg(r), x, ptx::integer(*d - 1)});
    return r;
  }
  if (!positive || !non_negative(e->args[1]))
    user_error(loc_,
               "'{}' divides a value that may be negative; only divisors that are powers of two do that",
               ir::to_string(e));
  return simple(format("{}.u{}", div ? "div" : "rem", w), e);
}

ptx::RegId Emitter::comparison(const Expr& e) {
  ptx::Operand a = value(e->args[0]), b = value(e->args[1]);
  DType t = e->args[0].type();
  const char* op = e->op == Op::lt ? "lt" : e->op == Op::le ? "le" : e->op == Op::eq ? "eq" : "ne";
  if (a.is<ptx::Immediate>()) a = ptx::reg(reg(e->args[0]));
  ptx::RegId r = fresh(ptx::Type::pred);
  emit(format("setp.{}.{}", op, type_suffix(t)), {ptx::reg(r), a, b});
  return r;
}

ptx::RegId Emitter::conversion(const Expr& e) {
  const Expr& a = e->args[0];
  DType from = a.type(), to = e.type();
  ptx::Operand x = value(a);
  ptx::RegId r = fresh(register_type(to));
  if (from == DType::b1) {
    const auto* p = x.as<ptx::RegOperand>();
    ptx::Operand one = is_float(to) ? ptx::f32(1.0f) : ptx::integer(1),
                 zero = is_float(to) ? ptx::f32(0.0f) : ptx::integer(0);
    if (p->negated) std::swap(one, zero);
    emit(format("selp.{}", name(register_type(to))), {ptx::reg(r), one, zero, ptx::reg(p->reg)});
  } else if (is_integer(from) && is_integer(to)) {
    if (bits(from) == bits(to)) emit(format("mov.b{}", bits(to)), {ptx::reg(r), x});
    else
      emit(format("cvt.{}.{}", type_suffix(to),
                  non_negative(a) && bits(from) < bits(to) ? format("u{}", bits(from)) : type_suffix(from)),
           {ptx::reg(r), x});
  } else if (is_integer(to)) {
    emit(format("cvt.rzi.{}.{}", type_suffix(to), type_suffix(from)), {ptx::reg(r), x});
  } else if (is_integer(from) || bits(to) < bits(from)) {
    emit(format("cvt.rn.{}.{}", type_suffix(to), type_suffix(from)), {ptx::reg(r), x});
  } else {
    emit(format("cvt.{}.{}", type_suffix(to), type_suffix(from)), {ptx::reg(r), x});
  }
  return r;
}

ptx::RegId Emitter::unary(const Expr& e) {
  std::string t = type_suffix(e.type());
  switch (e->op) {
    case Op::neg: return simple("neg." + t, e);
    case Op::abs: return simple("abs." + t, e);
    case Op::exp2: return simple("ex2.approx." + t, e);
    case Op::log2: return simple("lg2.approx." + t, e);
    case Op::sqrt: return simple("sqrt.approx." + t, e);
    case Op::rsqrt: return simple("rsqrt.approx." + t, e);
    case Op::reciprocal: return simple("rcp.approx." + t, e);
    case Op::tanh: return simple("tanh.approx." + t, e);
    default: internal_error(loc_, "not a unary operation");
  }
}

}  // namespace tw::lowering
