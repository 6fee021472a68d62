#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tilewright/base/format.h"

// Random sequences of operations on a small state machine and on its reference. An operation is plain data,
// so that any part of a sequence is a sequence too: what fails can be shrunk.
namespace tw::machines {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  uint32_t below(uint64_t n) { return static_cast<uint32_t>((bits() >> 11) % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;  // the same everywhere, unlike the library's distributions
};

// Runs a sequence on both; "" when they agree, else what they disagree about.
template <class Op>
using Compare = std::function<std::string(const std::vector<Op>&)>;

// A shorter sequence that still fails, without any part that can be left out (A. Zeller and R. Hildebrandt,
// "Simplifying and isolating failure-inducing input", 2002).
template <class Op>
std::vector<Op> shrink(std::vector<Op> ops, const Compare<Op>& compare) {
  for (size_t part = ops.size() / 2; part > 0; part /= 2) {
    for (size_t at = 0; at + part <= ops.size();) {
      std::vector<Op> shorter = ops;
      const auto first = shorter.begin() + static_cast<ptrdiff_t>(at);
      shorter.erase(first, first + static_cast<ptrdiff_t>(part));
      if (compare(shorter).empty()) {
        at += part;
      } else {
        ops = std::move(shorter);
      }
    }
  }
  return ops;
}

// "" when both agree on `ops`, else a report with the seed and the shrunk sequence. `describe` names an
// operation.
template <class Op>
std::string disagreement(const std::vector<Op>& ops, uint64_t seed, const Compare<Op>& compare,
                         std::string (*describe)(const Op&)) {
  if (compare(ops).empty()) return "";
  const std::vector<Op> few = shrink(ops, compare);
  std::string text = tw::format("seed {}, {} operations, shrunk to {}:\n", seed, ops.size(), few.size());
  for (const Op& op : few) text += "  " + describe(op) + "\n";
  return text + compare(few);
}

}  // namespace tw::machines
