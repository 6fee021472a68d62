#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

// Happens-before by vector clocks. An actor is a warp, or the part of a warp that runs without the others
// (its elected lane); an epoch counts an actor's releases and acquisitions.
namespace tw::check {

class Clock {
 public:
  explicit Clock(size_t actors = 0) : at_(actors, 0) {}
  uint32_t operator[](size_t actor) const { return at_[actor]; }
  void set(size_t actor, uint32_t epoch) { at_[actor] = std::max(at_[actor], epoch); }
  void reset(size_t actor, uint32_t epoch) { at_[actor] = epoch; }
  void join(const Clock& other) {
    for (size_t i = 0; i < at_.size(); ++i) at_[i] = std::max(at_[i], other.at_[i]);
  }

 private:
  std::vector<uint32_t> at_;
};

// What an actor knows to have happened, and for whom its effects are visible.
struct View {
  explicit View(size_t actors = 0)
      : ordinary(actors), proxied(actors), caused(actors), tensor(actors), fenced(actors) {}
  Clock ordinary;  // accesses of threads, ordered by synchronisation
  Clock proxied;   // of those, what a proxy fence made visible to the async proxy
  Clock caused;    // events that asynchronous operations followed, beyond `ordinary`
  Clock tensor;    // tensor-memory operations this actor's own may follow: a fence::after came since
  Clock fenced;    // and those that a fence::before passed on

  void join(const View& other) {
    ordinary.join(other.ordinary);
    proxied.join(other.proxied);
    caused.join(other.caused);
    fenced.join(other.fenced);
  }
};

}  // namespace tw::check
