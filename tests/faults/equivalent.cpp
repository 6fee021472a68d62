#include "tests/faults/equivalent.h"

#include <algorithm>

namespace tw::testing {
namespace {

const ptx::Instruction* instruction(const ptx::Function& entry, size_t at) {
  return std::get_if<ptx::Instruction>(&entry.body[at]);
}

// What the compiler puts before and after the body stands at the kernel's own line, as its last instruction
// does.
bool in_frame(const ptx::Function& entry, const ptx::Instruction& i) {
  const auto last = std::find_if(entry.body.rbegin(), entry.body.rend(), [](const ptx::Statement& x) {
    return std::holds_alternative<ptx::Instruction>(x);
  });
  return i.loc == std::get<ptx::Instruction>(*last).loc;
}

// From a branch to its label.
size_t region_end(const ptx::Function& entry, size_t branch) {
  const auto& name = instruction(entry, branch)->operands[0].as<ptx::Symbol>()->name;
  size_t end = branch;
  while (end < entry.body.size()) {
    const auto* label = std::get_if<ptx::Label>(&entry.body[end]);
    if (label && label->name == name) break;
    ++end;
  }
  return end;
}

std::string removal(const std::string& kernel, const ptx::Function& entry, size_t at) {
  const ptx::Instruction& i = *instruction(entry, at);
  const std::string text = i.text();
  if (text.starts_with("tcgen05.fence") && in_frame(entry, i))
    return "whoever uses tensor memory first, or read it last, fences in its own code too";
  if (text.starts_with("barrier.sync") && in_frame(entry, i) && kernel == "gemm.step6")
    return "each tile ends with the same barrier";
  if (text.starts_with("bar.warp.sync"))
    return "the warp's loads are operations of the whole warp, which all its lanes have waited for";
  if (!text.starts_with("tcgen05.wait::ld")) return {};
  for (size_t later = at + 1; later < entry.body.size(); ++later)
    if (const auto* next = instruction(entry, later); next && next->text() == text && next->role == i.role)
      return "a later wait of the warp covers these loads";
  return {};
}

// After the last turn of a ring nobody looks at it.
std::string shorter_ring(const ptx::Function& entry, size_t at) {
  const ptx::RegId stage = instruction(entry, at - 1)->operands[1].as<ptx::RegOperand>()->reg;
  constexpr size_t advance = 6;  // statements from the comparison to the new stage
  for (size_t n = at + advance; n < entry.body.size(); ++n) {
    const auto* i = instruction(entry, n);
    if (!i) continue;
    if (i->opcode() == "bra") {  // a loop may come back
      const auto& to = i->operands[0].as<ptx::Symbol>()->name;
      for (size_t before = 0; before < at; ++before)
        if (const auto* label = std::get_if<ptx::Label>(&entry.body[before]); label && label->name == to)
          return {};
    }
    for (size_t o = 1; o < i->operands.size(); ++o)
      if (const auto* r = i->operands[o].as<ptx::RegOperand>(); r && r->reg == stage) return {};
  }
  return "it is the ring's last turn: nothing reads the stage and phase that it computes";
}

std::string wider(const ptx::Function& entry, size_t at) {
  if (instruction(entry, at)->opcode() != "bra") return {};
  bool waits_only = true, gives_back = false, copies = false, awaited = false;
  for (size_t n = at + 1; n < region_end(entry, at); ++n) {
    const auto* i = instruction(entry, n);
    if (!i) continue;
    const std::string text = i->text();
    awaited = text.starts_with("cp.async.bulk.wait_group");  // the last one
    copies |= text.starts_with("cp.async.bulk.tensor");
    gives_back |= n == at + 1 && text.starts_with("setmaxnreg.dec");
    waits_only &= awaited || i->opcode() == "elect" || i->opcode() == "bra";
  }
  if (waits_only) return "a thread that has committed no group passes the wait at once";
  if (copies && awaited)
    return "whoever is let in writes the same bytes of D, from what the same barrier made visible, and waits "
           "for it";
  if (gives_back)
    return "the others give registers back and take them again with setmaxnreg.inc before they use them; the "
           "next "
           "guard keeps them out";
  return {};
}

// All uses of a ring at once, in a kernel whose one role fills the stages and empties them.
std::string renamed_stages(const std::string& kernel, const ptx::Function& entry, size_t at) {
  const bool all_uses = instruction(entry, at)->opcode() == "setp";
  if (!all_uses || (kernel != "gemm.step5" && kernel != "gemm.step6")) return {};
  return "each stage is filled, waited for and freed under its other name; only the order of the sum changes";
}

std::string narrower(const std::string& kernel, const ptx::Function& entry, size_t at) {
  const ptx::Instruction& i = *instruction(entry, at);
  const std::string text = i.text();
  if (text.starts_with("tcgen05.fence") && in_frame(entry, i))
    return "whoever uses tensor memory first, or read it last, fences in its own code too";
  if (text.starts_with("tcgen05.fence::after") && kernel == "gemm.step6")
    return "it is for the MMAs of the next tile, which this lane issues";
  const bool one_loop = kernel == "gemm.step4" || kernel == "gemm.step5" || kernel == "gemm.step6";
  if (text.starts_with("mbarrier.try_wait") && one_loop && instruction(entry, at + 3) &&
      instruction(entry, at + 3)->opcode() == "elect")
    return "the elected lane has waited before it multiplies, and the others wait for its products";
  return {};
}

}  // namespace

std::string equivalent(const std::string& kernel, const ptx::Function& entry, const Mutation& m) {
  switch (m.family) {
    case Family::remove: return removal(kernel, entry, m.at);
    case Family::stages: return shorter_ring(entry, m.at);
    case Family::swap: return renamed_stages(kernel, entry, m.at);
    case Family::widen: return wider(entry, m.at);
    case Family::narrow: return narrower(kernel, entry, m.at);
    default: return {};
  }
}

bool consistent(const ptx::Function& entry, const Mutation& m) {
  return m.family == Family::swap ||
         (m.family == Family::narrow && instruction(entry, m.at)->text().starts_with("st.shared"));
}

}  // namespace tw::testing
