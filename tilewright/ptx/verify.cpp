#include "tilewright/ptx/verify.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "tilewright/base/error.h"
#include "tilewright/ptx/labels.h"
#include "tilewright/ptx/opcode.h"
#include "tilewright/ptx/special_registers.h"

namespace tw::ptx {
namespace {

enum class Class : uint8_t { bits, integer, floating, packed, predicate };
struct Shape {
  Class cls = Class::bits;
  int bits = 0;
};

// Instruction types that registers of another name hold.
const std::map<std::string_view, Shape>& narrow_types() {
  static const std::map<std::string_view, Shape> table{
      {"tf32", {Class::packed, 32}},    {"u16x2", {Class::packed, 32}},  {"s16x2", {Class::packed, 32}},
      {"e4m3x4", {Class::packed, 32}},  {"e5m2x4", {Class::packed, 32}}, {"e2m3x4", {Class::packed, 32}},
      {"e3m2x4", {Class::packed, 32}},  {"e2m1x4", {Class::packed, 16}}, {"e4m3x2", {Class::packed, 16}},
      {"e5m2x2", {Class::packed, 16}},  {"e2m3x2", {Class::packed, 16}}, {"e3m2x2", {Class::packed, 16}},
      {"ue8m0x2", {Class::packed, 16}}, {"s2f6x2", {Class::packed, 16}}, {"e2m1x2", {Class::packed, 8}},
      {"e4m3", {Class::packed, 8}},     {"e5m2", {Class::packed, 8}}};
  return table;
}

Shape shape_of(Type t) {
  const std::string_view n = name(t);
  if (t == Type::pred) return {Class::predicate, 1};
  const Class cls = t == Type::f16x2 || t == Type::bf16x2 || t == Type::f32x2 ? Class::packed
                    : n.front() == 'f' || n.starts_with("bf")                 ? Class::floating
                    : n.front() == 'b'                                        ? Class::bits
                                                                              : Class::integer;
  return {cls, 8 * bytes(t)};
}

Shape shape_of(std::string_view instruction_type) {
  if (const auto t = type_from_name(instruction_type)) return shape_of(*t);
  const auto it = narrow_types().find(instruction_type);
  return it == narrow_types().end() ? Shape{Class::bits, 0} : it->second;
}

// `wider`: the register may exceed the instruction type, as in ld, st and cvt.
bool agrees(Type reg, Shape wanted, bool wider) {
  const Shape have = shape_of(reg);
  if (have.cls == Class::predicate || wanted.cls == Class::predicate) return have.cls == wanted.cls;
  if (wanted.bits == 0) return true;
  const bool loose = have.cls == Class::bits || wanted.cls == Class::bits;
  if (have.bits == wanted.bits) {
    if (loose || wanted.cls == Class::packed) return true;
    return have.cls == wanted.cls || (have.cls == Class::packed && wanted.cls == Class::packed);
  }
  if (!wider || have.bits < wanted.bits) return false;
  return have.cls == Class::bits || (have.cls == Class::integer && wanted.cls != Class::floating);
}

class Verifier {
 public:
  Verifier(const Module& module, const Function& f) : module_(module), f_(f), labels_(f) {
    const std::string_view arch = module.arch();
    if (arch.starts_with("sm_")) {
      const auto [end, error] = std::from_chars(arch.data() + 3, arch.data() + arch.size(), number_);
      if (error == std::errc() && end != arch.data() + arch.size()) suffix_ = *end;
    }
  }

  void run() {
    for (size_t i = 0; i < f_.body.size() && notes_.size() < 11; ++i) {
      const auto* inst = std::get_if<Instruction>(&f_.body[i]);
      if (!inst) continue;
      inst_ = inst;
      if (!inst->form) internal_error(inst->loc, "'{}' was not built by make or parse", inst->text());
      architecture();
      registers_exist();
      if (inst->guard && f_[inst->guard->predicate].type != Type::pred) complain("its guard is no predicate");
      const auto operands = resolved_operands(*inst);
      for (size_t k = 0; k < operands.size(); ++k) operand(operands[k], inst->operands[k]);
      if (inst->form->branches) (void)labels_.targets(i);
    }
    if (notes_.empty()) return;
    const Note first = notes_.front();
    notes_.erase(notes_.begin());
    throw Error(ErrorKind::user, first.loc, first.message, std::move(notes_));
  }

 private:
  void complain(std::string what) {
    notes_.push_back({inst_->loc, tw::format("'{}': {}", inst_->text(), what)});
  }

  void architecture() {
    std::string_view need = inst_->form->arch;
    if (need.empty() || number_ == 0) return;
    bool good = false;
    if (need == "wgmma") {
      good = number_ == 90 && suffix_ == 'a';
      need = "sm_90a";
    } else if (need == "tcgen05") {
      good = number_ >= 100 && number_ < 120 && suffix_ != 0;
      need = "sm_100a to sm_110a";
    } else {
      int least = 0;
      const auto [end, error] = std::from_chars(need.data() + 3, need.data() + need.size(), least);
      const bool specific = error == std::errc() && end != need.data() + need.size();
      good = number_ >= least && (!specific || suffix_ != 0);
    }
    if (!good) complain(tw::format("needs {}, the target is {}", need, module_.arch()));
  }

  void registers_exist() {
    visit_registers(*inst_, [&](RegId r, Access) {
      if (r.index >= f_.registers.size())
        internal_error(inst_->loc, "'{}' names a register that is not declared", inst_->text());
    });
  }

  bool may_be_wider() const {
    const auto op = inst_->opcode();
    return op == "ld" || op == "st" || op == "cvt" || op == "ldu";
  }

  void operand(const ResolvedOperand& r, const Operand& o) {
    if (const auto* a = o.as<Address>()) return address(a->base.front());
    if (const auto* t = o.as<TensorAddress>()) {
      address(t->map.front());
      const Wanted coordinate{"coordinate", "s32", shape_of(Type::s32)};
      for (const Operand& c : t->coordinates) scalar(c, coordinate);
      return;
    }
    if (r.spec->kind != OperandKind::value) return;
    if (r.spec->count == Count::pack) return packing(o);
    Wanted wanted{r.spec->name, r.type, shape_of(r.type), r.spec->wide, may_be_wider()};
    if (r.spec->wide) wanted.shape.bits *= 2;
    if (r.type.empty()) wanted.shape.bits = 0;
    const auto each = [&](const Operand& e) { scalar(e, wanted); };
    if (const auto* v = o.as<Vector>()) std::for_each(v->elements.begin(), v->elements.end(), each);
    else if (const auto* p = o.as<Pair>()) each(p->both[0]);
    else each(o);
  }

  // What an operand should be.
  struct Wanted {
    std::string_view operand, type;
    Shape shape;
    bool twice = false;  // the type doubled
    bool wider = false;  // the register may exceed it

    std::string text() const {
      return tw::format("operand {} is of {}type {}", operand, twice ? "twice " : "", type);
    }
  };

  void scalar(const Operand& o, const Wanted& w) {
    if (const auto* r = o.as<RegOperand>()) {
      const Register& reg = f_[r->reg];
      if (!agrees(reg.type, w.shape, w.wider))
        complain(tw::format("{}, register {} is .{}", w.text(), reg.name, name(reg.type)));
    } else if (const auto* i = o.as<Immediate>(); i && w.shape.bits != 0) {
      const bool real = i->kind != Immediate::Kind::integer;
      if (real && (w.shape.cls == Class::integer || w.shape.cls == Class::predicate))
        complain(w.text() + ", the constant is floating-point");
      if (!real && w.shape.cls == Class::floating && w.shape.bits >= 32)
        complain(w.text() + ", the constant is an integer");
    } else if (const auto* s = o.as<SpecialReg>()) {
      const SpecialRegister* special = find_special_register(s->name);
      if (!special || (special->type == Type::pred) != (w.shape.cls == Class::predicate))
        complain(tw::format("{}, which {} does not fit", w.text(), s->name));
    }
  }

  void address(const Operand& base) {
    const auto* r = base.as<RegOperand>();
    if (!r) return;
    const Shape s = shape_of(f_[r->reg].type);
    if ((s.cls != Class::bits && s.cls != Class::integer) || (s.bits != 32 && s.bits != 64))
      complain(tw::format("an address needs a register of 32 or 64 bits, {} is .{}", f_[r->reg].name,
                          name(f_[r->reg].type)));
  }

  // mov.b64 {a, b}: the elements have equal widths that add up to the type.
  void packing(const Operand& o) {
    const auto& elements = o.as<Vector>()->elements;
    const int total = shape_of(modifier(*inst_, "type")).bits;
    const int each = total / int(elements.size());
    for (const Operand& e : elements) {
      const auto* r = e.as<RegOperand>();
      if (!r) continue;
      if (shape_of(f_[r->reg].type).bits != each || each * int(elements.size()) != total)
        complain(tw::format("{} elements of a {}-bit move are {} bits each, register {} is .{}",
                            elements.size(), total, each, f_[r->reg].name, name(f_[r->reg].type)));
    }
  }

  const Module& module_;
  const Function& f_;
  Labels labels_;
  int number_ = 0;   // 90 of sm_90a
  char suffix_ = 0;  // 'a', 'f', or none
  const Instruction* inst_ = nullptr;
  std::vector<Note> notes_;
};

}  // namespace

void verify(const Module& module) {
  for (const auto& item : module.items)
    if (const auto* f = std::get_if<Function>(&item)) Verifier(module, *f).run();
}

}  // namespace tw::ptx
