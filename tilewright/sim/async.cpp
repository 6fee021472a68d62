#include "tilewright/sim/async.h"

#include <algorithm>

namespace tw::sim {

std::string_view name(Milestone m) {
  constexpr std::string_view names[] = {"issued", "reads done", "writes done", "signalled"};
  return names[static_cast<int>(m)];
}

bool Engine::may_advance(const AsyncOp& op) const {
  if (order == Order::any || op.milestone() != Milestone::issued) return true;
  for (const auto& other : ops_) {
    if (other.get() == &op) return true;
    if (!other->reached(Milestone::writes_done)) return false;
  }
  return true;
}

void AsyncGroups::add(std::shared_ptr<AsyncOp> op) {
  const uint32_t lanes = op->lanes;
  open_.push_back({std::move(op), lanes});
}

void AsyncGroups::commit(uint32_t lanes) {
  prune();
  Group group{lanes, {}};
  for (Entry& entry : open_) {
    if (uint32_t common = entry.lanes & lanes) {
      group.entries.push_back({entry.op, common});
      entry.lanes &= ~common;
    }
  }
  std::erase_if(open_, [](const Entry& e) { return e.lanes == 0; });
  groups_.push_back(std::move(group));
}

bool AsyncGroups::complete(uint32_t lanes, uint32_t allowed, Milestone m) const {
  // A lane's newest `allowed` groups may be unfinished. Walk from the newest, counting per lane.
  uint32_t seen[32] = {};
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    uint32_t due = 0;  // lanes for which this group has to be complete
    for (int lane = 0; lane < 32; ++lane) {
      if (!((group->lanes & lanes) >> lane & 1)) continue;
      if (seen[lane]++ >= allowed) due |= 1u << lane;
    }
    for (const Entry& entry : group->entries) {
      if ((entry.lanes & due) && !entry.op->reached(m)) return false;
    }
  }
  return true;
}

bool AsyncGroups::open_complete(uint32_t lanes, Milestone m) const {
  return complete(lanes, 0, m) && std::none_of(open_.begin(), open_.end(), [&](const Entry& e) {
           return (e.lanes & lanes) && !e.op->reached(m);
         });
}

std::vector<std::shared_ptr<AsyncOp>> AsyncGroups::outstanding(uint32_t lanes) const {
  std::vector<std::shared_ptr<AsyncOp>> result;
  auto collect = [&](const std::vector<Entry>& entries) {
    for (const Entry& e : entries) {
      if ((e.lanes & lanes) && !e.op->reached(Milestone::signalled)) result.push_back(e.op);
    }
  };
  for (const Group& g : groups_) collect(g.entries);
  collect(open_);
  return result;
}

// Finished groups at the old end can no longer hold anyone up.
void AsyncGroups::prune() {
  while (!groups_.empty() &&
         std::all_of(groups_.front().entries.begin(), groups_.front().entries.end(),
                     [](const Entry& e) { return e.op->reached(Milestone::signalled); })) {
    groups_.pop_front();
  }
}

}  // namespace tw::sim
