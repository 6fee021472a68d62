#include "tilewright/check/steering.h"

#include <functional>
#include <map>
#include <optional>
#include <set>

namespace tw::check {

using ptx::Instruction;
using ptx::Operand;

namespace {

template <class F>
void each_register(const Operand& o, const F& f) {
  if (const auto* r = o.as<ptx::RegOperand>()) f(r->reg.index);
  if (const auto* a = o.as<ptx::Address>())
    for (const Operand& b : a->base) each_register(b, f);
  if (const auto* t = o.as<ptx::TensorAddress>()) {
    for (const Operand& b : t->map) each_register(b, f);
    for (const Operand& b : t->coordinates) each_register(b, f);
  }
  if (const auto* v = o.as<ptx::Vector>())
    for (const Operand& b : v->elements) each_register(b, f);
  if (const auto* p = o.as<ptx::Pair>())
    for (const Operand& b : p->both) each_register(b, f);
  if (const auto* l = o.as<ptx::List>())
    for (const Operand& b : l->elements) each_register(b, f);
}

bool any_of(const Instruction& i, std::initializer_list<std::string_view> opcodes) {
  for (std::string_view o : opcodes)
    if (i.opcode() == o) return true;
  return false;
}

// Instructions without effect outside their destination registers.
bool only_registers(const Instruction& i) {
  return any_of(i, {"mov",  "add", "sub",  "mul", "mad", "setp", "set",  "selp",  "and",        "or",
                    "xor",  "not", "shl",  "shr", "cvt", "neg",  "min",  "max",   "cvta",       "lop3",
                    "prmt", "bfe", "shfl", "bfi", "abs", "ld",   "vote", "elect", "activemask", "nanosleep"});
}

// The destination is the first operand; these have none, or only sources.
bool has_destination(const Instruction& i) {
  if (i.operands.empty() || any_of(i, {"st", "red", "bar", "barrier", "bra", "brx", "call", "nanosleep"}))
    return false;
  if (i.opcode() == "tcgen05" && !i.has("ld")) return false;
  const Operand& o = i.operands[0];
  return o.is<ptx::RegOperand>() || o.is<ptx::Vector>() || o.is<ptx::Pair>();
}

bool commutative(const Instruction& i) {
  for (std::string_view op : {"add", "min", "max", "and", "or", "xor"})
    if (i.has(op)) return true;
  return false;
}

bool strong(const Instruction& i) {
  for (std::string_view m : {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
    if (i.has(m)) return true;
  return false;
}

// Constants of registers, as far as they follow from a predicate that is known to be false.
class Constants {
 public:
  explicit Constants(uint32_t false_predicate) { known_[false_predicate] = 0; }
  std::optional<uint64_t> of(const Operand& o) const {
    if (const auto* n = o.as<ptx::Immediate>()) return n->bits;
    const auto* r = o.as<ptx::RegOperand>();
    if (!r) return std::nullopt;
    const auto value = of(r->reg.index);
    return value && r->negated ? std::optional<uint64_t>(!*value) : value;
  }
  std::optional<uint64_t> of(uint32_t reg) const {
    auto it = known_.find(reg);
    return it == known_.end() ? std::nullopt : std::optional(it->second);
  }
  void execute(const Instruction& i) {
    const auto value = i.guard ? std::nullopt : result(i);
    if (!has_destination(i)) return;
    each_register(i.operands[0], [&](uint32_t r) { known_.erase(r); });
    if (const auto* d = i.operands[0].as<ptx::RegOperand>(); d && value) known_[d->reg.index] = *value;
  }

 private:
  std::optional<uint64_t> result(const Instruction& i) const {
    const auto source = [&](size_t n) { return n < i.operands.size() ? of(i.operands[n]) : std::nullopt; };
    if (i.opcode() == "mov") return source(1);
    if (i.opcode() == "selp") {
      const auto p = source(3);
      return p ? source(*p ? 1 : 2) : std::nullopt;
    }
    if (i.opcode() == "not" && i.has("pred")) {
      const auto p = source(1);
      return p ? std::optional<uint64_t>(!*p) : std::nullopt;
    }
    const auto a = source(1), b = source(2);
    if (!a || !b || i.operands.size() != 3) return std::nullopt;
    if (i.opcode() == "setp" && i.has("eq")) return *a == *b;
    if (i.opcode() == "setp" && i.has("ne")) return *a != *b;
    if (i.opcode() == "and") return *a & *b;
    if (i.opcode() == "or") return *a | *b;
    if (i.opcode() == "xor") return *a ^ *b;
    return std::nullopt;
  }
  std::map<uint32_t, uint64_t> known_;
};

constexpr int kFar = 64;  // instructions of a polling loop

}  // namespace

Steering::Steering(const sim::Program::Impl& program) : code_(program.code) {
  flags_.resize(code_.source.size());
  for (uint32_t pc = 0; pc < flags_.size(); ++pc)
    if (code_.source[pc]) flags_[pc] = flags_of(pc);
}

uint16_t Steering::flags_of(uint32_t pc) const {
  const Instruction& i = *code_.source[pc];
  if (i.opcode() == "mbarrier" && (i.has("test_wait") || i.has("try_wait")))
    return returns_when_false(pc) ? other : decides;
  if (i.opcode() == "setmaxnreg") return registers;
  if (i.opcode() == "tcgen05" && (i.has("alloc") || i.has("dealloc") || i.has("relinquish_alloc_permit")))
    return tensor_memory;
  if ((i.opcode() == "tcgen05" && i.has("commit")) || i.opcode() == "clusterlaunchcontrol" ||
      i.has("mbarrier::complete_tx::bytes") || (i.opcode() == "cp" && i.has("mbarrier")))
    return i.has("query_cancel") ? 0 : signals;
  if (any_of(i, {"atom", "red"})) {
    uint16_t flags = memory;
    if (result_steers(pc)) flags |= steers;
    if (commutative(i)) flags |= commutes;
    if (i.has("cas") && may_return(pc)) flags |= polls;
    return flags;
  }
  if (any_of(i, {"ld", "st"}) && strong(i))
    return static_cast<uint16_t>(memory | (i.opcode() == "ld" && may_return(pc) ? polls : 0));
  if (any_of(i, {"mbarrier", "bar", "barrier", "exit", "ret", "call"})) return other;
  return 0;
}

// Whether every way on from an unsuccessful wait leads back to it (or to a trap) without doing anything.
bool Steering::returns_when_false(uint32_t wait) const {
  const auto* p = code_.source[wait]->operands[0].as<ptx::RegOperand>();
  if (!p) return false;
  std::function<bool(uint32_t, Constants, int)> follow = [&](uint32_t pc, Constants known, int left) {
    while (left-- > 0) {
      if (pc == wait) return true;
      const Instruction* i = pc < code_.source.size() ? code_.source[pc] : nullptr;
      if (!i) return false;
      const auto guard = i->guard ? known.of(i->guard->predicate.index) : std::optional<uint64_t>(1);
      const bool certain = guard.has_value();
      const bool holds = certain && (*guard != 0) != (i->guard && i->guard->negated);
      if (i->opcode() == "bra") {
        const auto target = static_cast<uint32_t>(code_.insts[pc].imm);
        if (!certain && !follow(target, known, left)) return false;
        pc = certain && holds ? target : pc + 1;
        continue;
      }
      if (!certain || holds) {
        if (i->opcode() == "trap") {
          if (certain) return true;
        } else if (!only_registers(*i) || (i->opcode() == "ld" && strong(*i))) {
          return false;
        }
        known.execute(*i);
      }
      ++pc;
    }
    return false;
  };
  return follow(wait + 1, Constants(p->reg.index), kFar);
}

// Whether some way on from a read leads back to it without doing anything.
bool Steering::may_return(uint32_t read) const {
  std::set<uint32_t> seen;
  std::vector<uint32_t> open{read + 1};
  while (!open.empty() && seen.size() < kFar) {
    const uint32_t pc = open.back();
    open.pop_back();
    if (pc == read) return true;
    const Instruction* i = pc < code_.source.size() ? code_.source[pc] : nullptr;
    if (!i || !seen.insert(pc).second) continue;
    if (i->opcode() == "bra") {
      open.push_back(static_cast<uint32_t>(code_.insts[pc].imm));
      if (i->guard) open.push_back(pc + 1);
    } else if (only_registers(*i) && !(i->opcode() == "ld" && strong(*i))) {
      open.push_back(pc + 1);
    }
  }
  return false;
}

// Registers that the result flows into, wherever they are used; what is only stored to global memory is data.
bool Steering::result_steers(uint32_t atomic) const {
  const Instruction& origin = *code_.source[atomic];
  if (origin.opcode() != "atom") return false;
  std::set<uint32_t> tainted;
  each_register(origin.operands[0], [&](uint32_t r) { tainted.insert(r); });
  const auto carries = [&](const Operand& o) {
    bool any = false;
    each_register(o, [&](uint32_t r) { any |= tainted.count(r) != 0; });
    return any;
  };
  for (bool more = true; more;) {
    more = false;
    for (const Instruction* i : code_.source) {
      if (!i) continue;
      if (i->guard && tainted.count(i->guard->predicate.index)) return true;
      const size_t first = has_destination(*i) ? 1 : 0;
      bool uses = false;
      for (size_t n = first; n < i->operands.size(); ++n) {
        if (!carries(i->operands[n])) continue;
        if (i->operands[n].is<ptx::Address>() || i->operands[n].is<ptx::TensorAddress>()) return true;
        uses = true;
      }
      if (!uses) continue;
      const bool data = i->opcode() == "st" && i->has("global") && !strong(*i);
      if (data) continue;
      if (i->opcode() == "setp" || first == 0) return true;
      each_register(i->operands[0], [&](uint32_t r) { more |= tainted.insert(r).second; });
    }
  }
  return false;
}

}  // namespace tw::check
