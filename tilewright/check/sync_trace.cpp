#include "tilewright/check/sync_trace.h"

#include <algorithm>

namespace tw::check {

// SplitMix64's finaliser (G. Steele et al., "Fast splittable pseudorandom number generators", 2014).
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Past::set_warp(size_t warp, uint32_t steps) {
  if (warp >= warps_.size()) warps_.resize(warp + 1, 0);
  warps_[warp] = steps;
}

void Past::add_op(size_t op) {
  if (op / 64 >= ops_.size()) ops_.resize(op / 64 + 1, 0);
  ops_[op / 64] |= uint64_t{1} << (op % 64);
}

void Past::join(const Past& other) {
  if (warps_.size() < other.warps_.size()) warps_.resize(other.warps_.size(), 0);
  for (size_t i = 0; i < other.warps_.size(); ++i) warps_[i] = std::max(warps_[i], other.warps_[i]);
  if (ops_.size() < other.ops_.size()) ops_.resize(other.ops_.size(), 0);
  for (size_t i = 0; i < other.ops_.size(); ++i) ops_[i] |= other.ops_[i];
}

bool SyncTrace::follows(const Step& later, const Step& earlier) const {
  return earlier.is_op() ? later.past->has_op(earlier.op)
                         : later.past->of_warp(earlier.actor) > earlier.index;
}

const Step* SyncTrace::find(ActorKey actor, uint32_t index) const {
  auto it = by_actor.find(actor);
  return it != by_actor.end() && index < it->second.size() ? &steps[it->second[index]] : nullptr;
}

uint64_t SyncTrace::hash() const {
  uint64_t sum = 0;
  for (const Step& s : steps) sum += mix(s.hash, 1);
  return sum;
}

Prefix::Prefix(const SyncTrace& trace, const Reversal& reversal) : trace_(trace), reversal_(reversal) {
  const Step& held = trace.steps[reversal.first];
  for (uint32_t i = 0; i < reversal.second; ++i) {
    if (i == reversal.first || (i > reversal.first && trace.follows(trace.steps[i], held))) continue;
    steps_.push_back(i);
    last_[trace.steps[i].actor] = i;
  }
}

Plan Prefix::plan() const {
  Plan p;
  p.held = trace_.steps[reversal_.first].actor;
  for (uint32_t i : steps_) p.items.push_back({trace_.steps[i].actor, false});
  p.items.push_back({trace_.steps[reversal_.second].actor, reversal_.expire});
  return p;
}

uint64_t Prefix::hash() const {
  uint64_t sum = 0;
  for (uint32_t i : steps_) sum += mix(trace_.steps[i].hash, 1);
  return mix(sum, mix(trace_.steps[reversal_.second].actor, reversal_.expire));
}

bool Prefix::begins(const SyncTrace& other) const {
  for (const auto& [actor, at] : last_) {
    const Step* same = other.find(actor, trace_.steps[at].index);
    if (!same || same->hash != trace_.steps[at].hash) return false;
  }
  const Step& moved = trace_.steps[reversal_.second];
  const Step* there = other.find(moved.actor, moved.index);
  if (!there) return false;
  // It came after none but these.
  for (size_t w = 0; w < there->past->warps().size(); ++w) {
    const uint32_t steps = there->past->warps()[w];
    auto it = last_.find(w);
    const uint32_t known = it == last_.end() ? 0 : trace_.steps[it->second].index + 1;
    if (steps > known && !(w == moved.actor && steps == moved.index + 1)) return false;
  }
  bool all = true;
  there->past->each_op([&](size_t op) {
    const ActorKey key = other.ops[op];
    all &= key == moved.actor || last_.count(key) != 0;
  });
  return all;
}

}  // namespace tw::check
