#include "tilewright/check/load_uses.h"

#include <iterator>

#include "tilewright/ptx/opcode.h"

namespace tw::check {

const RegisterUses& RegisterTable::of(uint32_t pc, const ptx::Instruction& inst) {
  const auto [at, fresh] = of_.try_emplace(pc);
  if (!fresh) return at->second;
  RegisterUses& uses = at->second;
  uses.copies = inst.opcode() == "mov";
  ptx::visit_registers(inst, [&](ptx::RegId r, ptx::Access access) {
    if (access != ptx::Access::write) uses.read.push_back(r.index);
    if (access != ptx::Access::read) uses.written.push_back(r.index);
  });
  return uses;
}

void UnwaitedLoads::issued(std::shared_ptr<Operation> load, const std::vector<uint32_t>& registers,
                           uint32_t lanes) {
  auto fresh = std::make_shared<Load>();
  fresh->operation = std::move(load);
  fresh->unread.assign(registers.size(), lanes);
  fresh->untouched = fresh->unread;
  fresh->values_left = registers.size();
  for (size_t i = 0; i < registers.size(); ++i) values_[registers[i]].push_back({fresh, i, lanes});
}

std::shared_ptr<const Operation> UnwaitedLoads::executed(const RegisterUses& uses, uint32_t lanes,
                                                         Moment now) {
  std::vector<Value> copied;
  for (const uint32_t r : uses.read) {
    const auto at = values_.find(r);
    if (at == values_.end()) continue;
    for (const Value& v : at->second) {
      v.load->untouched[v.index] &= ~(lanes & v.lanes);
      if (uses.copies && (v.lanes & lanes) != 0) copied.push_back({v.load, v.index, v.lanes & lanes});
    }
    if (!uses.copies) read(r, lanes, now);
  }
  std::shared_ptr<const Operation> filling;
  for (const uint32_t r : uses.written) {
    if (auto load = overwrite(r, lanes)) filling = std::move(load);
    if (!copied.empty()) values_[r].insert(values_[r].end(), copied.begin(), copied.end());
  }
  return filling;
}

void UnwaitedLoads::read(uint32_t reg, uint32_t lanes, Moment now) {
  const auto at = values_.find(reg);
  if (at == values_.end()) return;
  std::vector<std::shared_ptr<Load>> over;
  for (const Value& v : at->second) {
    uint32_t& unread = v.load->unread[v.index];
    if (unread == 0) continue;
    unread &= ~(lanes & v.lanes);
    if (unread == 0 && --v.load->values_left == 0) over.push_back(v.load);
  }
  for (const auto& load : over) {
    load->operation->used = now;
    forget(load.get());
  }
}

std::shared_ptr<const Operation> UnwaitedLoads::overwrite(uint32_t reg, uint32_t lanes) {
  const auto at = values_.find(reg);
  if (at == values_.end()) return nullptr;
  std::shared_ptr<const Operation> filling;
  for (const Value& v : at->second)
    if ((v.load->untouched[v.index] & v.lanes & lanes) != 0) filling = v.load->operation;
  std::erase_if(at->second, [&](Value& v) { return (v.lanes &= ~lanes) == 0; });
  if (at->second.empty()) values_.erase(at);
  return filling;
}

void UnwaitedLoads::forget(const Load* load) {
  for (auto at = values_.begin(); at != values_.end();) {
    std::erase_if(at->second, [&](const Value& v) { return v.load.get() == load; });
    at = at->second.empty() ? values_.erase(at) : std::next(at);
  }
}

}  // namespace tw::check
