#include "tilewright/check/register_plan.h"

#include <algorithm>

#include "tilewright/base/format.h"
#include "tilewright/sim/lanes.h"

namespace tw::check {
namespace {

constexpr uint32_t kStep = 8, kMost = 256;  // of what setmaxnreg takes

bool takes(const ptx::Instruction& i) { return i.has("inc"); }

}  // namespace

void RegisterPlan::moved(const sim::Warp& warp) {
  executed_.emplace(warp.cta().rank, warp.pc());
  last_[{warp.cta().rank, warp.index()}] = warp.pc();
}

bool RegisterPlan::complete(const sim::Cta& cta) const {
  for (uint32_t pc = 0; pc < program_.size(); ++pc)
    if (program_[pc] && program_[pc]->opcode() == "setmaxnreg" && !executed_.contains({cta.rank, pc}))
      return false;
  return true;
}

std::vector<RegisterPlan::Role> RegisterPlan::roles(const sim::Cta& cta) const {
  std::map<uint32_t, Role> by_place;
  for (const sim::Warp& w : cta.warps) {
    const auto at = last_.find({cta.rank, w.index()});
    if (at == last_.end()) continue;
    Role& role = by_place.try_emplace(at->second, Role{at->second, 0, w.registers, 0}).first->second;
    ++role.warps;
  }
  std::vector<Role> out;
  for (auto& [pc, role] : by_place) {
    const uint32_t share = cta.register_pool / (role.warps * sim::kLanes);
    role.step = std::min(share, kMost - std::min(kMost, role.registers)) / kStep * kStep;
    out.push_back(role);
  }
  return out;
}

void RegisterPlan::ended(const sim::Cta& cta) const {
  if (cta.register_pool == 0 || last_.empty() || !complete(cta)) return;
  std::vector<Role> with_room = roles(cta);
  if (std::none_of(with_room.begin(), with_room.end(), [&](const Role& r) { return takes(*program_[r.pc]); }))
    return;
  std::erase_if(with_room, [](const Role& r) { return r.step == 0; });
  if (with_room.empty()) return;
  // First those that ask for more.
  std::stable_partition(with_room.begin(), with_room.end(),
                        [&](const Role& r) { return takes(*program_[r.pc]); });

  const size_t unit = cta.warps.size() % 4 == 0 ? 4 : 1, units = cta.warps.size() / unit;
  std::string terms;
  uint32_t sum = 0;
  for (size_t w = 0; w < cta.warps.size(); w += unit) {
    const uint32_t registers = cta.warps[w].registers;
    terms += tw::format("{}{}", w == 0 ? "" : " + ", registers);
    sum += registers;
  }
  const auto left = static_cast<uint32_t>(cta.register_pool / (sim::kLanes * unit));
  report_({FaultKind::spare_registers,
           with_room[0].pc,
           tw::format(
               "the launch gives a thread of each of {} {} {} registers, {} in all; they end with {} = "
               "{}, and {} are held by nobody",
               units, unit == 4 ? "warpgroups" : "warps", (sum + left) / units, sum + left, terms, sum, left),
           0,
           {},
           advice(with_room)});
}

std::string RegisterPlan::advice(const std::vector<Role>& roles) const {
  std::string text;
  for (const Role& r : roles) {
    const ptx::Instruction& i = *program_[r.pc];
    text += tw::format("{}{}{} {} instead of {}", text.empty() ? "" : ", or ", i.text(),
                       i.loc && !text.empty() ? " at " + to_string(i.loc) : "", r.registers + r.step,
                       r.registers);
  }
  return text +
         " would use them. As it is nothing goes wrong: what is given back and never taken lies idle (PTX "
         "ISA, "
         "\"setmaxnreg\")";
}

}  // namespace tw::check
