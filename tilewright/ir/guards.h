#pragma once
#include <vector>

#include "tilewright/ir/simplify.h"

namespace tw::ir {

// Conditions that hold together, and what they say about the bounds of integer expressions. Comparisons of
// signed sums are understood, and what `and`, `or` and `not` make of them; of others nothing follows.
class Guards {
 public:
  void add(const Expr& condition, bool holds = true);

  bool never() const { return never_; }  // they contradict themselves
  // Bounds of a value where they hold, at least as close as range(value).
  Range range(const Expr& value) const;

 private:
  std::vector<Linear> at_most_zero_;
  bool never_ = false;
};

}  // namespace tw::ir
