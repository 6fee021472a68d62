#include "tilewright/check/registers.h"

#include <algorithm>

namespace tw::check {
namespace {

template <class F>
void each_register(const ptx::Operand& o, F f) {
  if (const auto* r = o.as<ptx::RegOperand>()) f(r->reg.index);
  else if (const auto* v = o.as<ptx::Vector>())
    for (const ptx::Operand& e : v->elements) each_register(e, f);
}

bool multiplies(const ptx::Instruction& i) { return i.opcode() == "wgmma" && i.has("mma_async"); }

}  // namespace

SharedRegisters::SharedRegisters(const std::vector<const ptx::Instruction*>& program) : of_(program.size()) {
  std::vector<bool> shared;
  for (const ptx::Instruction* i : program) {
    if (!i || !tw::check::multiplies(*i)) continue;
    for (const ptx::Operand& o : i->operands) {
      if (!o.is<ptx::Vector>()) continue;  // D, and A where it is in registers
      each_register(o, [&](uint32_t r) {
        if (shared.size() <= r) shared.resize(r + 1);
        shared[r] = true;
      });
    }
  }
  count_ = shared.size();
  if (count_ == 0) return;
  for (size_t pc = 0; pc < program.size(); ++pc) {
    if (!program[pc]) continue;
    for (const ptx::Operand& o : program[pc]->operands)
      each_register(o, [&](uint32_t r) {
        if (r < count_ && shared[r]) of_[pc].push_back(r);
      });
  }
}

const char* RegisterState::touched(const std::vector<uint32_t>& registers) {
  const char* broken = nullptr;
  for (uint32_t r : registers) {
    if (in_flight_.size() <= r) {
      in_flight_.resize(r + 1);
      since_fence_.resize(r + 1);
    }
    if (in_flight_[r] > over_)
      broken = "a wgmma.mma_async on it may still be in flight: wait for its group first";
    if (!since_fence_[r]) list_.push_back(r);
    since_fence_[r] = 1;
  }
  return broken;
}

const char* RegisterState::multiplies(const std::vector<uint32_t>& registers, uint64_t index, size_t count) {
  in_flight_.resize(std::max(in_flight_.size(), count));
  since_fence_.resize(in_flight_.size());
  const char* broken =
      fenced_ ? nullptr : "the warpgroup's first wgmma.mma_async needs a wgmma.fence before it";
  for (uint32_t r : registers) {
    in_flight_[r] = index;
    if (since_fence_[r]) broken = "threads touched its registers since the last wgmma.fence";
  }
  return broken;
}

void RegisterState::fence() {
  fenced_ = true;
  for (uint32_t r : list_) since_fence_[r] = 0;
  list_.clear();
}

}  // namespace tw::check
