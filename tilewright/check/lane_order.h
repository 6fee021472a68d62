#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "tilewright/check/history.h"

namespace tw::check {

// Epochs of a warp's two actors, all lanes and those that run alone. An access is meant by the epoch of the
// one that made it; what it came before is an epoch that had begun later.
using LaneEpochs = std::array<uint32_t, 2>;

// What the lanes of a warp know of each other's accesses: those before a lane's epoch here.
class LaneKnowledge {
 public:
  // All that is there meets.
  void meet_all(const LaneEpochs& now);
  // The lanes of a mask meet: each knows what any of them knew and did.
  void meet(uint32_t lanes, const LaneEpochs& now);
  // Lanes hear, over a barrier or a word of memory, of all that any lane did before these epochs.
  void hear(uint32_t lanes, const LaneEpochs& before);
  void hear_all(const LaneEpochs& before);

  bool all_know(uint32_t actor, uint32_t epoch) const { return epoch < all_[actor]; }
  // Whether lane `b` comes behind an access of lane `a`.
  bool knows(uint32_t b, uint32_t a, uint32_t actor, uint32_t epoch) const;
  // Whether lane `b` comes behind an access of any lane; nothing where that depends on which it is.
  std::optional<bool> knows_any(uint32_t b, uint32_t actor, uint32_t epoch) const;

 private:
  using Pairs = std::array<std::array<LaneEpochs, 32>, 32>;
  LaneEpochs all_{};                    // known to all
  std::array<LaneEpochs, 32> heard_{};  // by lane
  std::unique_ptr<Pairs> of_;           // by lane, of each other; only where some met without the others
};

// The lanes of one warp since it started. A warp is no unit of the memory model (PTX ISA, "Scope"): its lanes
// run apart, and only synchronisation orders what they do. `bar.warp.sync` does, and barriers of the CTA and
// the cluster. Of the collective instructions ".sync" says that lanes wait for each other; we let it order
// memory, but for shuffles, votes, matches and reductions, of which the CUDA Programming Guide says that
// they do not. Reads before those are over all the same: they have returned their values.
class LaneOrder {
 public:
  // Accesses since the lanes last met make the next meeting count.
  void accessed() { apart_ = true; }
  bool apart() const { return apart_; }

  void meet_all(const LaneEpochs& now);
  void meet(uint32_t lanes, const LaneEpochs& now);
  // shfl, vote, match, redux.
  void exchange_all(const LaneEpochs& now) { reads_.meet_all(now); }
  void exchange(uint32_t lanes, const LaneEpochs& now) { reads_.meet(lanes, now); }
  void hear(uint32_t lanes, const LaneEpochs& before);
  void hear_all(const LaneEpochs& before);

  // Whether no lane can come before an access any more.
  bool all_follow(bool write, const Stamp& access) const {
    return of(write).all_know(part(access), access.epoch);
  }
  // Two lanes, of the earlier and the later access, that nothing orders; kSeveral: one of many.
  struct Pair {
    int earlier, later;
  };
  static constexpr int kSeveral = -1;
  // `by`: the earlier one's stamp, of this warp.
  std::optional<Pair> unordered(ShadowEntry earlier, ShadowEntry later, const Stamp& by) const;

  // bar.warp.sync, where lanes pass one after the other: whether the meeting of `members` begins now, for the
  // first of them.
  bool first_of(uint32_t members, uint32_t lanes);

 private:
  static uint32_t part(const Stamp& access) { return access.actor % 2; }
  const LaneKnowledge& of(bool write) const { return write ? writes_ : reads_; }
  LaneKnowledge writes_, reads_;
  uint32_t due_ = 0;  // lanes that a meeting has counted already, and that pass later
  bool apart_ = false;
};

}  // namespace tw::check
