#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tilewright/ir/kernel.h"

// Whether a kernel's index arithmetic stays within the 32 bits that it is done in. Sums and products that
// wrap and come back are harmless; what an offset, a comparison, a quotient or a variable takes must fit.
// Addresses are computed in 64 bits and never wrap.
namespace tw::ir {

// A 32-bit sum or product that something other than a sum takes.
struct IndexValue {
  Expr value;
  SourceLoc loc;
  std::vector<Expr> guards;  // hold wherever it is taken
};

class IndexRanges {
 public:
  using Sizes = std::function<int64_t(const std::string&)>;
  explicit IndexRanges(Kernel kernel);
  IndexRanges(const IndexRanges&) = delete;
  IndexRanges& operator=(const IndexRanges&) = delete;

  const std::vector<IndexValue>& values() const { return values_; }
  // Bounds of a value over all threads of a launch, where the run-time sizes are what `size` says, or
  // anything without it; where these leave 32 bits, over the threads that its guards let through (lo > hi:
  // none). Without a bound where a variable that changes or an argument decides.
  Range of(const IndexValue& value, const Sizes& size) const;
  // Whether values()[i] may leave 32 bits. Launches repeat, so the answer for the last sizes is kept.
  bool overflows(size_t i, const Sizes& size) const;

 private:
  void block(const Block& b);
  void read(const Tile& tile);
  void data(const Expr& e);      // a value that is stored or computed with: may wrap as it likes
  void consumed(const Expr& e);  // read by what is no sum
  void inside(const Expr& e);
  // `body` reads what is used only where the condition holds.
  template <class Body>
  void guarded(const Expr& condition, Body body);

  Kernel kernel_;
  std::vector<IndexValue> values_;
  std::map<const Variable*, Expr> declared_;  // variables with one value
  std::map<const Variable*, const For*> counters_;
  SourceLoc loc_;             // of the statement being read
  std::vector<Expr> guards_;  // around it

  mutable std::mutex mutex_;
  mutable std::vector<int64_t> sizes_;   // of the last launch
  mutable std::vector<bool> overflows_;  // with these
};

// Whether 32 bits may not hold what lies within these bounds; false where one is missing.
bool leaves_32_bits(const Range& range);

}  // namespace tw::ir
