#include "tilewright/check/groups.h"

#include <algorithm>

namespace tw::check {

uint64_t CopyGroups::issue(uint32_t lanes, uint32_t pc) {
  const uint64_t index = ++done->issued;
  for (; lanes != 0; lanes &= lanes - 1) {
    lane(lanes).newest = index;
    lane(lanes).pc = pc;
  }
  return index;
}

void CopyGroups::commit(uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    Lane& l = lane(lanes);
    if (l.newest > 0) l.commits.push_back(l.newest);
  }
}

// The groups before the newest one that is over make no difference to later waits.
void CopyGroups::forget(Lane& l, uint64_t up_to) {
  l.over = std::max(l.over, up_to);
  l.commits.erase(l.commits.begin(), std::find(l.commits.begin(), l.commits.end(), up_to));
}

std::optional<uint32_t> CopyGroups::unwaited() const {
  for (const Lane& l : lanes_)
    if (l.newest > l.over) return l.pc;
  return std::nullopt;
}

}  // namespace tw::check
