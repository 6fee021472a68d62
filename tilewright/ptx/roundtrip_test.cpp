#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tilewright/base/error.h"
#include "tilewright/ptx/opcode.h"
#include "tilewright/ptx/special_registers.h"

// print -> parse -> print is the identity, over modules generated from the opcode table.
namespace tw::ptx {
namespace {

// Builds legal modules. Every row of the table can come out, with any of its modifiers.
class Generator {
  static bool coin() { return *rc::gen::arbitrary<bool>(); }
  template <class C>
  static typename C::value_type pick(const C& c) {
    return c[size_t(*rc::gen::inRange<int>(0, int(c.size())))];
  }

 public:
  explicit Generator(Function& f) : f_(f) {
    for (const Type t : {Type::pred, Type::b16, Type::b32, Type::b64, Type::b128, Type::f32, Type::f64})
      declare(t);
    f_.body.push_back(Label{"top"});
    f_.body.push_back(Directive{".callprototype (.param .b32 _) _ (.param .b64 _);"});
  }

  Instruction instruction(const Form& form) {
    std::string text(form.opcode);
    int bracket = 0;
    bool there = true;
    for (const ModifierGroup& g : form.modifiers) {
      if (g.bracket == 0) there = true;
      else if (g.bracket != bracket) there = coin();
      bracket = g.bracket;
      if (there) text += "." + std::string(pick(g.values));
    }
    const OpcodeText* known = find_opcode(text);
    RC_ASSERT(known != nullptr);
    const OpcodeText::Candidate* choice = nullptr;
    for (const auto& c : known->candidates)
      if (c.form == &form) choice = &c;
    RC_ASSERT(choice != nullptr);
    std::vector<Operand> operands;
    for (const ResolvedOperand& r : choice->operands)
      if (!r.spec->optional || coin()) operands.push_back(operand(r));
    return make(text, std::move(operands));
  }

  std::optional<Guard> guard() {
    if (coin()) return std::nullopt;
    return Guard{any(Type::pred), coin()};
  }

 private:
  void declare(Type t) {
    RegDecl d{t, "%" + std::string(name(t)) + "_", 4, {}};
    for (int i = 0; i < 4; ++i) {
      d.regs.push_back(RegId{uint32_t(f_.registers.size())});
      f_.registers.push_back({d.prefix + std::to_string(i), t});
    }
    f_.body.push_back(d);
  }
  RegId any(Type t) {
    std::vector<RegId> all;
    for (uint32_t i = 0; i < f_.registers.size(); ++i)
      if (f_.registers[i].type == t) all.push_back(RegId{i});
    return pick(all);
  }
  RegId any(bool predicate) {
    return any(predicate
                   ? Type::pred
                   : pick(std::vector{Type::b16, Type::b32, Type::b64, Type::b128, Type::f32, Type::f64}));
  }
  static Operand constant() {
    switch (*rc::gen::inRange(0, 4)) {
      case 0: return integer(*rc::gen::arbitrary<int64_t>());
      case 1: return {Immediate{Immediate::Kind::integer, *rc::gen::arbitrary<uint64_t>(), true}};
      case 2: return {Immediate{Immediate::Kind::f32, *rc::gen::arbitrary<uint32_t>(), false}};
      default: return {Immediate{Immediate::Kind::f64, *rc::gen::arbitrary<uint64_t>(), false}};
    }
  }
  static int64_t offset() { return *rc::gen::element<int64_t>(0, 16, -8, 1 << 20, -4096); }
  Operand base() { return coin() ? reg(any(false)) : symbol(coin() ? "buffer" : "p0"); }

  Operand scalar(const ResolvedOperand& r) {
    const OperandSpec& s = *r.spec;
    const bool predicate = r.type == "pred";
    std::vector<Operand> choices;
    if (s.reg) choices.push_back(reg(any(predicate)));
    if (s.reg && s.negatable && predicate) choices.push_back(negated(any(true)));
    if (s.constant) choices.push_back(constant());
    if (s.sink) choices.push_back(sink());
    if (s.symbol) choices.push_back({Symbol{"buffer", offset()}});
    if (s.special) choices.push_back({SpecialReg{pick(special_registers()).name}});
    return pick(choices);
  }
  Operand value(const ResolvedOperand& r) {
    if (r.spec->second == OperandSpec::Second::required ||
        (r.spec->second == OperandSpec::Second::optional && coin())) {
      Operand first = coin() ? sink() : reg(any(r.type == "pred"));
      return pair(std::move(first), coin() ? sink() : reg(any(true)));
    }
    if (r.count == 0) return scalar(r);
    std::vector<Operand> elements;
    const int n = r.count > 0 ? r.count : *rc::gen::inRange(1, 5);
    for (int i = 0; i < n; ++i) elements.push_back(scalar(r));
    return vector(std::move(elements));
  }
  Operand operand(const ResolvedOperand& r) {
    switch (r.spec->kind) {
      case OperandKind::value: return value(r);
      case OperandKind::address: return address(base(), offset());
      case OperandKind::tensor: {
        std::vector<Operand> c;
        for (int i = *rc::gen::inRange(1, 6); i > 0; --i) c.push_back(reg(any(Type::b32)));
        return tensor_address(base(), std::move(c));
      }
      case OperandKind::label: return symbol("top");
      case OperandKind::callee: return symbol("helper");
      case OperandKind::list: {
        std::vector<Operand> e;
        for (int i = *rc::gen::inRange(0, 4); i > 0; --i) e.push_back(coin() ? symbol("buffer") : constant());
        return {List{std::move(e)}};
      }
    }
    return sink();
  }

  Function& f_;
};

Module shell() {
  Module m;
  m.version_major = 9;
  m.version_minor = 1;
  m.target = {"sm_100a"};
  Function helper;
  helper.is_entry = false;
  helper.name = "helper";
  helper.has_body = false;
  helper.linkage = {"extern"};
  m.items.emplace_back(helper);
  Variable buffer;
  buffer.space = Space::shared;
  buffer.type = Type::b8;
  buffer.name = "buffer";
  buffer.align = 128;
  buffer.is_array = true;
  buffer.dims = {1024};
  m.items.emplace_back(buffer);
  return m;
}

Function entry() {
  Function f;
  f.name = "kernel";
  f.linkage = {"visible"};
  f.directives = {".maxntid 128, 1, 1"};
  Variable p;
  p.space = Space::param;
  p.type = Type::u64;
  p.name = "p0";
  f.params.push_back(p);
  return f;
}

// Text, not data, is compared: data also carries positions, and NaN.
void expect_identity(Module& m) {
  const std::string first = print_and_number(m);
  Module again = parse(first, "generated.ptx");
  const std::string second = print(again);
  if (first != second) RC_FAIL(first + "\n---- became ----\n" + second);
  const auto* f = m.function("kernel");
  const auto* g = again.function("kernel");
  const auto instructions = [](const Function& of) {
    std::vector<const Instruction*> out;
    for (const Statement& st : of.body)
      if (const auto* inst = std::get_if<Instruction>(&st)) out.push_back(inst);
    return out;
  };
  const auto before = instructions(*f), after = instructions(*g);
  RC_ASSERT(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const Instruction &x = *before[i], &y = *after[i];
    RC_ASSERT(x.form->text == y.form->text);
    RC_ASSERT(x.tokens == y.tokens);
    RC_ASSERT(x.operands == y.operands);
    RC_ASSERT(x.guard == y.guard);
    RC_ASSERT(x.line == y.line);
  }
}

TEST(RoundTrip, EveryRowOfTheOpcodeTable) {
  ASSERT_GT(forms().size(), 300u);
  for (const Form& form : forms()) {
    SCOPED_TRACE(std::string(form.text) + " " + std::string(form.operands_text));
    const bool ok = rc::check(std::string(form.text), [&] {
      Module m = shell();
      Function f = entry();
      Generator g(f);
      for (int i = 0; i < 3; ++i) {
        Instruction inst = g.instruction(form);
        inst.guard = g.guard();
        f.body.push_back(std::move(inst));
      }
      m.items.emplace_back(std::move(f));
      expect_identity(m);
    });
    ASSERT_TRUE(ok);
  }
}

TEST(RoundTrip, WholeModules) {
  const bool ok = rc::check("modules of many instructions, scopes, labels and directives", [] {
    Module m = shell();
    Function f = entry();
    Generator g(f);
    int depth = 0;
    for (int i = 0; i < 40; ++i) {
      switch (*rc::gen::inRange(0, 9)) {
        case 0: f.body.push_back(Label{"$L" + std::to_string(i)}); break;
        case 1: f.body.push_back(Comment{"note " + std::to_string(i) + "\nand more"}); break;
        case 2:
          f.body.push_back(ScopeOpen{});
          ++depth;
          break;
        case 3:
          if (depth > 0) {
            f.body.push_back(ScopeClose{});
            --depth;
          }
          break;
        case 4: f.body.push_back(Directive{".pragma \"nounroll\""}); break;
        default: {
          const auto all = forms();
          Instruction inst = g.instruction(all[size_t(*rc::gen::inRange<int>(0, int(all.size())))]);
          inst.guard = g.guard();
          f.body.push_back(std::move(inst));
        }
      }
    }
    while (depth-- > 0) f.body.push_back(ScopeClose{});
    m.items.emplace_back(std::move(f));
    expect_identity(m);
  });
  ASSERT_TRUE(ok);
}

}  // namespace
}  // namespace tw::ptx
