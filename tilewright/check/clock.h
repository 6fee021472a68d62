#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

// Happens-before by vector clocks. An actor is a warp, or the part of a warp that runs without the others
// (its elected lane); an epoch counts an actor's releases and acquisitions.
namespace tw::check {

// Of actors beyond its size it knows nothing.
class Clock {
 public:
  Clock() = default;
  explicit Clock(size_t actors) : at_(actors, 0) {}
  uint32_t operator[](size_t actor) const { return actor < at_.size() ? at_[actor] : 0; }
  bool empty() const { return at_.empty(); }
  void set(size_t actor, uint32_t epoch) {
    grow(actor + 1);
    at_[actor] = std::max(at_[actor], epoch);
  }
  void reset(size_t actor, uint32_t epoch) {
    if (epoch == (*this)[actor]) return;
    grow(actor + 1);
    at_[actor] = epoch;
  }
  // `begin`: as for join().
  bool covers(const Clock& other, size_t begin = 0) const {
    for (size_t i = 0; i < other.at_.size(); ++i)
      if (other.at_[i] > (*this)[begin + i]) return false;
    return true;
  }
  // `begin`: the other's first actor is this one's at that place.
  void join(const Clock& other, size_t begin = 0) {
    grow(begin + other.at_.size());
    uint32_t* at = at_.data() + begin;
    for (size_t i = 0; i < other.at_.size(); ++i) at[i] = std::max(at[i], other.at_[i]);
  }

 private:
  void grow(size_t actors) {
    if (at_.size() < actors) at_.resize(actors);
  }
  std::vector<uint32_t> at_;
};

}  // namespace tw::check
