#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tilewright/check/history.h"
#include "tilewright/sim/lanes.h"

namespace tw::check {

// The copies of a warp that complete by groups ("cp.async.commit_group", "cp.async.bulk.commit_group").
// Groups belong to threads: each lane commits what it issued itself, and waits for its own groups alone.
class CopyGroups {
 public:
  // A copy that these lanes issue, or each its own; returns its index in the streams.
  uint64_t issue(uint32_t lanes, uint32_t pc);
  void commit(uint32_t lanes);
  // A wait for all but the newest `pending` groups: f(lanes, up_to) for lanes whose copies up to that one are
  // over.
  template <class F>
  void wait(uint32_t lanes, uint64_t pending, F f) {
    while (lanes != 0) {
      const uint64_t up_to = covered(lane(lanes), pending);
      uint32_t alike = 0;
      for (uint32_t rest = lanes; rest != 0; rest &= rest - 1)
        if (covered(lane(rest), pending) == up_to) alike |= rest & (~rest + 1);
      lanes &= ~alike;
      if (up_to == 0) continue;  // no groups: the wait ends at once
      for (uint32_t rest = alike; rest != 0; rest &= rest - 1) forget(lane(rest), up_to);
      f(alike, up_to);
    }
  }
  uint64_t issued() const { return done->issued; }
  // Where a lane issued a copy whose group it never waited for.
  std::optional<uint32_t> unwaited() const;

  const std::shared_ptr<Stream> done = std::make_shared<Stream>();
  const std::shared_ptr<Stream> read =
      std::make_shared<Stream>();  // of what they read, where that ends earlier

 private:
  struct Lane {
    std::vector<uint64_t> commits;  // copies issued at each commit, from the last one known to be over
    uint64_t newest = 0, over = 0;
    uint32_t pc = 0;  // of the newest
  };
  Lane& lane(uint32_t lanes) { return lanes_[static_cast<size_t>(std::countr_zero(lanes))]; }
  static uint64_t covered(const Lane& l, uint64_t pending) {
    return l.commits.size() > pending ? l.commits[l.commits.size() - 1 - pending] : 0;
  }
  static void forget(Lane& l, uint64_t up_to);

  std::array<Lane, sim::kLanes> lanes_;
};

}  // namespace tw::check
