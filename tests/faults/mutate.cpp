#include "tests/faults/mutate.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>

#include "tilewright/base/format.h"

namespace tw::testing {
namespace {

using ptx::Function;
using ptx::Immediate;
using ptx::Instruction;
using ptx::RegId;
using ptx::RegOperand;
using Statements = std::vector<ptx::Statement>;

// ---- reading ----

const Instruction* instruction(const Function& f, size_t at) {
  return at < f.body.size() ? std::get_if<Instruction>(&f.body[at]) : nullptr;
}

template <class F>
void each_instruction(const Function& f, F call) {
  for (size_t at = 0; at < f.body.size(); ++at)
    if (const Instruction* i = instruction(f, at)) call(at, *i);
}

bool starts_with(const Instruction& i, std::initializer_list<const char*> starts) {
  const std::string text = i.text();
  return std::any_of(starts.begin(), starts.end(), [&](const char* s) { return text.starts_with(s); });
}

bool waits(const Instruction& i) { return starts_with(i, {"mbarrier.try_wait", "mbarrier.test_wait"}); }

bool is(const ptx::Operand& o, RegId r) {
  const auto* reg = o.as<RegOperand>();
  return reg && reg->reg == r;
}

std::optional<RegId> destination(const Instruction& i) {
  const auto* r = i.operands.empty() ? nullptr : i.operands[0].as<RegOperand>();
  return r ? std::optional(r->reg) : std::nullopt;
}

const uint64_t* immediate(const Instruction& i, size_t operand) {
  const auto* n = operand < i.operands.size() ? i.operands[operand].as<Immediate>() : nullptr;
  return n ? &n->bits : nullptr;
}

// Where the label that a branch goes to stands.
std::optional<size_t> target(const Function& f, const Instruction& branch) {
  const auto* symbol = branch.opcode() == "bra" ? branch.operands[0].as<ptx::Symbol>() : nullptr;
  for (size_t at = 0; symbol && at < f.body.size(); ++at)
    if (const auto* label = std::get_if<ptx::Label>(&f.body[at]); label && label->name == symbol->name)
      return at;
  return std::nullopt;
}

// A ring's advance: next = stage + 1; at `stages` the phase turns and the next stage is 0.
struct Ring {
  size_t at;  // of the comparison
  RegId stage;
  uint64_t stages;
};
std::vector<Ring> rings(const Function& f) {
  std::vector<Ring> out;
  each_instruction(f, [&](size_t at, const Instruction& compare) {
    const Instruction *add = at ? instruction(f, at - 1) : nullptr, *turn = instruction(f, at + 1),
                      *flip = instruction(f, at + 2);
    if (!add || !turn || !flip || compare.text() != "setp.eq.s32" || turn->text() != "selp.b32" ||
        flip->text() != "xor.b32")
      return;
    const auto* stage = add->text() == "add.s32" ? add->operands[1].as<RegOperand>() : nullptr;
    if (!stage || !immediate(compare, 2) || !is(flip->operands[2], *destination(*turn))) return;
    out.push_back({at, stage->reg, *immediate(compare, 2)});
  });
  return out;
}

// Statements that one lane alone executes, by the guards that lowering writes: elect.sync or tid == 0, then a
// branch around them.
std::vector<bool> single_lane(const Function& f) {
  std::vector<bool> alone(f.body.size());
  std::set<uint32_t> one_lane;  // predicates
  RegId thread;
  each_instruction(f, [&](size_t at, const Instruction& i) {
    if (const auto* s = i.operands.size() == 2 ? i.operands[1].as<ptx::SpecialReg>() : nullptr;
        s && s->name == "%tid.x")
      thread = *destination(i);
    if (i.opcode() == "elect") {
      if (const auto* p = i.operands[0].as<ptx::Pair>())
        one_lane.insert(p->both[1].as<RegOperand>()->reg.index);
    } else if (i.text() == "setp.eq.s32" && is(i.operands[1], thread) && immediate(i, 2)) {
      one_lane.insert(destination(i)->index);
    }
    const auto to = i.guard && i.guard->negated && one_lane.contains(i.guard->predicate.index) ? target(f, i)
                                                                                               : std::nullopt;
    if (to && *to > at)
      std::fill(alone.begin() + static_cast<std::ptrdiff_t>(at),
                alone.begin() + static_cast<std::ptrdiff_t>(*to), true);
  });
  return alone;
}

// ---- changing ----

Instruction& changed(Function& f, size_t at) { return std::get<Instruction>(f.body[at]); }

void set_immediate(Function& f, size_t at, size_t operand, uint64_t value) {
  Immediate n = *changed(f, at).operands[operand].as<Immediate>();
  n.bits = value;
  changed(f, at).operands[operand].value = n;
}

void insert(Function& f, size_t at, Statements fresh) {
  f.body.insert(f.body.begin() + static_cast<std::ptrdiff_t>(at), fresh.begin(), fresh.end());
}

void erase(Function& f, size_t at, size_t count) {
  const auto first = f.body.begin() + static_cast<std::ptrdiff_t>(at);
  f.body.erase(first, first + static_cast<std::ptrdiff_t>(count));
}

// A register and its declaration.
RegId declare(Function& f, ptx::Type type, Statements& into) {
  const RegId r{static_cast<uint32_t>(f.registers.size())};
  f.registers.push_back({tw::format("%mutant{}", r.index), type});
  ptx::RegDecl d;
  d.type = type;
  d.regs = {r};
  into.emplace_back(std::move(d));
  return r;
}

Instruction make(const Instruction& like, std::string_view opcode, std::vector<ptx::Operand> operands) {
  Instruction i = ptx::make(opcode, std::move(operands), like.loc);
  i.role = like.role;
  return i;
}

// Every source of `i` that is `from`, also as an address.
void replace(std::vector<ptx::Operand>& operands, size_t first, RegId from, RegId to) {
  for (size_t n = first; n < operands.size(); ++n) {
    auto& value = operands[n].value;
    if (auto* r = std::get_if<RegOperand>(&value); r && r->reg == from) r->reg = to;
    if (auto* a = std::get_if<ptx::Address>(&value)) replace(a->base, 0, from, to);
  }
}

bool reads(const Instruction& i, RegId r) {
  return std::any_of(i.operands.begin() + 1, i.operands.end(),
                     [&](const ptx::Operand& o) { return is(o, r); });
}

// ---- the families ----

using Out = std::vector<Mutation>;

void removals(const Function& f, Out& out) {
  each_instruction(f, [&](size_t at, const Instruction& i) {
    if (!waits(i) &&
        !starts_with(i, {"mbarrier.arrive", "fence", "tcgen05.commit", "tcgen05.fence", "tcgen05.wait",
                         "wgmma.wait_group", "wgmma.commit_group", "wgmma.fence", "cp.async.bulk.wait_group",
                         "cp.async.bulk.commit_group", "barrier.", "bar."}))
      return;
    const size_t count = waits(i) ? 2 : 1;  // and its branch
    out.push_back({Family::remove, at, "without " + i.text(), [=](Function& g) { erase(g, at, count); }});
  });
}

void phases(const Function& f, Out& out) {
  std::set<size_t> known;
  each_instruction(f, [&](size_t at, const Instruction& wait) {
    if (!waits(wait) || !wait.has("parity")) return;
    const auto flip = [&](size_t where, size_t operand) {
      const uint64_t now = *immediate(*instruction(f, where), operand);
      if (known.insert(where).second)
        out.push_back({Family::phase, at, tw::format("{} starts with parity {}", wait.text(), now ^ 1),
                       [=](Function& g) { set_immediate(g, where, operand, now ^ 1); }});
    };
    if (immediate(wait, 2)) return flip(at, 2);
    const RegId parity = wait.operands[2].as<RegOperand>()->reg;
    for (size_t n = 0; n < at; ++n) {
      const Instruction* first = instruction(f, n);
      if (!first || destination(*first) != parity) continue;
      if (first->opcode() == "mov" && immediate(*first, 1)) return flip(n, 1);
      break;  // computed
    }
    out.push_back(
        {Family::phase, at, wait.text() + " waits for the other parity", [=](Function& g) {
           Statements fresh;
           const RegId other = declare(g, ptx::Type::b32, fresh);
           Instruction& i = changed(g, at);
           fresh.emplace_back(make(i, "xor.b32", {ptx::reg(other), i.operands[2], ptx::integer(1)}));
           i.operands[2] = ptx::reg(other);
           insert(g, at, fresh);
         }});
  });
}

void change(const Function& f, Out& out, Family family, size_t at, size_t operand, std::string_view noun,
            std::initializer_list<uint64_t> values) {
  const Instruction& i = *instruction(f, at);
  for (const uint64_t v : values)
    out.push_back({family, at,
                   tw::format("{} with the {} {} for {}", i.text(), noun, v, *immediate(i, operand)),
                   [=](Function& g) { set_immediate(g, at, operand, v); }});
}

void counts(const Function& f, Out& out) {
  each_instruction(f, [&](size_t at, const Instruction& i) {
    const uint64_t* n = immediate(i, 1);
    if (!n) return;
    if (starts_with(i, {"mbarrier.init"})) change(f, out, Family::count, at, 1, "count", {*n - 1, *n + 1});
    if (starts_with(i, {"barrier.sync", "barrier.arrive", "bar.sync", "bar.arrive"}))
      change(f, out, Family::count, at, 1, "thread count", {*n - 32, *n + 32});
  });
}

void byte_numbers(const Function& f, Out& out) {
  each_instruction(f, [&](size_t at, const Instruction& i) {
    const size_t last = i.operands.size() - 1;
    if (i.has("expect_tx") && immediate(i, last))
      change(f, out, Family::bytes, at, last, "byte number",
             {*immediate(i, last) / 2, *immediate(i, last) * 2});
  });
}

void ring_lengths(const Function& f, Out& out) {
  for (const Ring& r : rings(f))
    out.push_back({Family::stages, r.at,
                   tw::format("a ring of {} goes round after {}", r.stages, r.stages - 1),
                   [=](Function& g) { set_immediate(g, r.at, 2, r.stages - 1); }});
}

// other = stage < 2 ? stage ^ 1 : stage
RegId swapped(Function& g, const Instruction& like, RegId stage, Statements& fresh) {
  const RegId low = declare(g, ptx::Type::pred, fresh), bit = declare(g, ptx::Type::b32, fresh),
              other = declare(g, ptx::Type::b32, fresh);
  fresh.emplace_back(make(like, "setp.lt.s32", {ptx::reg(low), ptx::reg(stage), ptx::integer(2)}));
  fresh.emplace_back(
      make(like, "selp.b32", {ptx::reg(bit), ptx::integer(1), ptx::integer(0), ptx::reg(low)}));
  fresh.emplace_back(make(like, "xor.b32", {ptx::reg(other), ptx::reg(stage), ptx::reg(bit)}));
  return other;
}

void swap_stages(Function& g, size_t at, RegId stage) {
  Statements fresh;
  const RegId other = swapped(g, changed(g, at), stage, fresh);
  replace(changed(g, at).operands, 1, stage, other);
  insert(g, at, fresh);
}

void swaps(const Function& f, Out& out) {
  std::set<uint32_t> known;
  const std::vector<Ring> all = rings(f);
  for (const Ring& r : all) {
    if (r.stages < 2 || !known.insert(r.stage.index).second) continue;
    std::vector<size_t> uses;
    each_instruction(f, [&](size_t at, const Instruction& i) {
      const bool advance = std::any_of(all.begin(), all.end(), [&](const Ring& x) { return x.at == at + 1; });
      if (!advance && i.operands.size() > 1 && reads(i, r.stage)) uses.push_back(at);
    });
    for (const size_t at : uses)
      out.push_back({Family::swap, at,
                     tw::format("{} {} takes stages 0 and 1 of {} for each other", instruction(f, at)->text(),
                                f[*destination(*instruction(f, at))].name, r.stages),
                     [=](Function& g) { swap_stages(g, at, r.stage); }});
    out.push_back({Family::swap, r.at,
                   tw::format("a role takes stages 0 and 1 of {} for each other", r.stages),
                   [=](Function& g) {
                     for (auto at = uses.rbegin(); at != uses.rend(); ++at) swap_stages(g, *at, r.stage);
                   }});
  }
}

void widenings(const Function& f, Out& out) {
  each_instruction(f, [&](size_t at, const Instruction& i) {
    if (!i.guard || (i.opcode() == "bra" && target(f, i).value_or(0) <= at)) return;
    out.push_back({Family::widen, at,
                   tw::format("{} of {} does not hold anyone back", i.text(), f[i.guard->predicate].name),
                   [=](Function& g) {
                     if (changed(g, at).opcode() == "bra") erase(g, at, 1);
                     else changed(g, at).guard.reset();
                   }});
  });
}

// A predicate that holds in lane 0, which is also whom elect.sync chooses.
RegId first_lane(Function& g, const Instruction& like, Statements& fresh) {
  const RegId lane = declare(g, ptx::Type::b32, fresh), first = declare(g, ptx::Type::pred, fresh);
  fresh.emplace_back(make(like, "mov.b32", {ptx::reg(lane), ptx::special("%laneid")}));
  fresh.emplace_back(make(like, "setp.eq.s32", {ptx::reg(first), ptx::reg(lane), ptx::integer(0)}));
  return first;
}

// The wait and its label: only lane 0 waits.
void narrow_wait(Function& g, size_t at) {
  const Instruction like = changed(g, at);
  const size_t label = std::holds_alternative<ptx::Label>(g.body[at - 1]) ? at - 1 : at;
  const std::string past = tw::format("$past_{}", at);
  insert(g, at + 2, {ptx::Label{past}});
  Statements fresh;
  const RegId first = first_lane(g, like, fresh);
  Instruction around = make(like, "bra", {ptx::symbol(past)});
  around.guard = ptx::Guard{first, true};
  fresh.emplace_back(std::move(around));
  insert(g, label, fresh);
}

void narrowings(const Function& f, Out& out) {
  const std::vector<bool> alone = single_lane(f);
  std::string last;  // several in a row do the same
  each_instruction(f, [&](size_t at, const Instruction& i) {
    const std::string text = i.text();
    const bool repeats = text == last;
    last = text;
    if (alone[at] || i.guard || repeats) return;
    const bool wide = waits(i) || starts_with(i, {"mbarrier.arrive", "fence", "tcgen05.", "wgmma.",
                                                  "barrier.", "bar.", "st.shared", "stmatrix", "setmaxnreg"});
    if (!wide) return;
    out.push_back({Family::narrow, at, "one lane executes " + text, [=](Function& g) {
                     if (waits(changed(g, at))) return narrow_wait(g, at);
                     Statements fresh;
                     const RegId first = first_lane(g, changed(g, at), fresh);
                     changed(g, at).guard = ptx::Guard{first, false};
                     insert(g, at, fresh);
                   }});
  });
}

}  // namespace

const char* name(Family f) {
  switch (f) {
    case Family::remove: return "remove";
    case Family::phase: return "phase";
    case Family::count: return "count";
    case Family::bytes: return "bytes";
    case Family::stages: return "stages";
    case Family::swap: return "swap";
    case Family::widen: return "widen";
    case Family::narrow: return "narrow";
  }
  return "";
}

std::vector<Mutation> mutations(const ptx::Function& entry, Family family) {
  Out out;
  switch (family) {
    case Family::remove: removals(entry, out); break;
    case Family::phase: phases(entry, out); break;
    case Family::count: counts(entry, out); break;
    case Family::bytes: byte_numbers(entry, out); break;
    case Family::stages: ring_lengths(entry, out); break;
    case Family::swap: swaps(entry, out); break;
    case Family::widen: widenings(entry, out); break;
    case Family::narrow: narrowings(entry, out); break;
  }
  return out;
}

ptx::Module mutated(const ptx::Module& module, const Mutation& mutation) {
  ptx::Module copy = module;
  for (auto& item : copy.items) {
    auto* f = std::get_if<ptx::Function>(&item);
    if (!f || !f->is_entry) continue;
    mutation.apply(*f);
    break;
  }
  return copy;
}

}  // namespace tw::testing
