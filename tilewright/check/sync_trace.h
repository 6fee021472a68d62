#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

// The order of synchronisation in one run: a sequence of steps, each what one actor did up to and including
// one event that others can notice, and which steps follow from which.
namespace tw::check {

// A warp by its position, or one half of an asynchronous operation by its issuer and number.
using ActorKey = uint64_t;
inline constexpr ActorKey kOperation = uint64_t{1} << 63;

// The steps that a step follows. A warp's are a prefix of its own; an operation has one.
class Past {
 public:
  uint32_t of_warp(size_t warp) const { return warp < warps_.size() ? warps_[warp] : 0; }
  bool has_op(size_t op) const { return op / 64 < ops_.size() && (ops_[op / 64] >> (op % 64) & 1); }
  void set_warp(size_t warp, uint32_t steps);
  void add_op(size_t op);
  void join(const Past& other);
  const std::vector<uint32_t>& warps() const { return warps_; }
  template <class F>
  void each_op(F f) const {
    for (size_t word = 0; word < ops_.size(); ++word)
      for (size_t bit = 0; bit < 64; ++bit)
        if (ops_[word] >> bit & 1) f(word * 64 + bit);
  }

 private:
  std::vector<uint32_t> warps_;
  std::vector<uint64_t> ops_;
};

struct Step {
  ActorKey actor = 0;
  uint32_t index = 0;  // of the actor's steps; operations have only 0
  uint32_t op = 0;     // number of an operation in this run
  uint32_t pc = 0;
  uint64_t hash = 0;                 // of the step and of its past
  std::shared_ptr<const Past> past;  // with the step itself
  bool is_op() const { return actor & kOperation; }
};

// Two steps that came one after the other and may come the other way round, with another outcome.
struct Reversal {
  uint32_t first = 0, second = 0;           // steps
  bool expire = false;                      // the second is a wait, which then fails
  std::shared_ptr<const std::string> text;  // "barrier full[0]: warp 1, mbarrier.arrive ... before ..."
};

struct SyncTrace {
  std::vector<Step> steps;
  std::vector<Reversal> reversals;
  std::unordered_map<ActorKey, std::vector<uint32_t>> by_actor;  // its steps
  std::vector<ActorKey> ops;                                     // by number

  bool follows(const Step& later, const Step& earlier) const;
  const Step* find(ActorKey actor, uint32_t index) const;
  uint64_t hash() const;  // does not depend on the order of steps that nothing orders
};

uint64_t mix(uint64_t a, uint64_t b);

// What to do first in a run: steps of these actors, one after the other.
struct Plan {
  struct Item {
    ActorKey actor;
    bool expire = false;
  };
  std::vector<Item> items;
  ActorKey held = 0;  // whose next step comes later than all of them
};

// The steps of a trace that come before a reversal's second step once it is first, and that step.
class Prefix {
 public:
  Prefix(const SyncTrace& trace, const Reversal& reversal);
  Plan plan() const;
  uint64_t hash() const;  // of the steps as a set, with the one that was put first
  // Whether a run began with these steps, as far as order matters.
  bool begins(const SyncTrace& other) const;

 private:
  const SyncTrace& trace_;
  const Reversal& reversal_;
  std::vector<uint32_t> steps_;
  std::unordered_map<ActorKey, uint32_t> last_;  // step of each actor
};

}  // namespace tw::check
