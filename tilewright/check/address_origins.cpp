#include "tilewright/check/address_origins.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tilewright/sim/program_builder.h"

namespace tw::check {
namespace {

constexpr int kNone = -1, kMany = -2;  // else an index of a variable

int join(int a, int b) { return a == b || b == kNone ? a : a == kNone ? b : kMany; }

// Instructions whose result is an address when a source is one.
bool carries_addresses(const ptx::Instruction& i) {
  constexpr std::array<std::string_view, 12> kOpcodes{"mov", "add", "sub",  "mad",  "and",  "or",
                                                      "xor", "cvt", "cvta", "selp", "mapa", "lop3"};
  return std::find(kOpcodes.begin(), kOpcodes.end(), i.opcode()) != kOpcodes.end();
}

class Origins {
 public:
  Origins(const std::vector<const ptx::Instruction*>& program,
          const std::vector<sim::SharedSymbol>& variables)
      : program_(program), variables_(variables) {
    settle();
    // Something else is written to the register too: who knows what.
    for (const ptx::Instruction* i : program_) {
      if (i && !i->operands.empty())
        each_register(i->operands[0], [&](uint32_t r) {
          if (at(r) >= 0 && !updates(*i, r) && written(*i) == kNone) origin_[r] = kMany;
        });
    }
    settle();
  }

  int of(const ptx::Operand& o) const {
    if (const auto* r = o.as<ptx::RegOperand>()) return at(r->reg.index);
    const auto* s = o.as<ptx::Symbol>();
    return s ? variable(s->name) : kNone;
  }

 private:
  template <class F>
  static void each_register(const ptx::Operand& o, F f) {
    if (const auto* r = o.as<ptx::RegOperand>()) f(r->reg.index);
    else if (const auto* v = o.as<ptx::Vector>())
      for (const ptx::Operand& e : v->elements) each_register(e, f);
    else if (const auto* p = o.as<ptx::Pair>())
      for (const ptx::Operand& e : p->both) each_register(e, f);
  }
  int variable(const std::string& symbol) const {
    const auto [known, fresh] = symbols_.try_emplace(symbol, kNone);
    if (!fresh) return known->second;
    const std::string name = sim::readable(symbol);
    for (size_t v = 0; v < variables_.size(); ++v)
      if (variables_[v].name == name) known->second = known->second == kNone ? static_cast<int>(v) : kMany;
    return known->second;
  }
  int at(uint32_t r) const { return r < origin_.size() ? origin_[r] : kNone; }

  // The origin of what an instruction writes.
  int written(const ptx::Instruction& i) const {
    if (!carries_addresses(i)) return kNone;
    int origin = kNone;
    for (size_t n = 1; n < i.operands.size(); ++n) {
      const int source = of(i.operands[n]);
      origin = join(origin, source);
      if (i.opcode() == "sub" && n == 2 && source != kNone) return kMany;  // a distance, to be added anywhere
    }
    return origin;
  }
  static bool updates(const ptx::Instruction& i, uint32_t r) {
    bool found = false;
    for (size_t n = 1; n < i.operands.size(); ++n)
      each_register(i.operands[n], [&](uint32_t source) { found |= source == r; });
    return found;
  }

  void settle() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ptx::Instruction* i : program_) {
        if (!i || i->operands.empty()) continue;
        const int origin = written(*i);
        if (origin == kNone) continue;
        each_register(i->operands[0], [&](uint32_t r) {
          if (origin_.size() <= r) origin_.resize(r + 1, kNone);
          const int now = join(origin_[r], origin);
          changed |= now != origin_[r];
          origin_[r] = now;
        });
      }
    }
  }

  const std::vector<const ptx::Instruction*>& program_;
  const std::vector<sim::SharedSymbol>& variables_;
  std::vector<int> origin_;  // by register
  mutable std::unordered_map<std::string, int> symbols_;
};

}  // namespace

AddressOrigins::AddressOrigins(const sim::Program::Impl& program) {
  const auto& variables = program.shared_symbols;
  const auto& source = program.code.source;
  // Each function counts its registers from 0.
  if (variables.size() < 2 || program.functions.size() > 1) return;
  const Origins origins(source, variables);
  of_.resize(source.size());
  for (size_t pc = 0; pc < source.size(); ++pc) {
    if (!source[pc]) continue;
    const auto& operands = source[pc]->operands;
    for (size_t n = 0; n < std::min<size_t>(operands.size(), 2); ++n) {
      const auto* address = operands[n].as<ptx::Address>();
      const int origin = address ? origins.of(address->base.front()) : kNone;
      if (origin >= 0) of_[pc][n] = &variables[static_cast<size_t>(origin)];
    }
  }
}

}  // namespace tw::check
