#pragma once
#include <bitset>
#include <optional>
#include <string>

#include "tilewright/base/source.h"
#include "tilewright/ir/kernel.h"

namespace tw::ir {

// Which threads of a CTA, and which CTAs of a cluster, execute a statement, as far as the compiler knows.
// Guards over thread, lane, warp and warpgroup ids narrow it exactly, and so do those over the rank in the
// cluster; a guard on a value that is the same in all threads leaves it as it is;
// any other guard leaves an unknown part of it.
class ActiveSet {
 public:
  static constexpr int kMaxThreads = 1024;

  static ActiveSet all(int threads, int ctas = 1);  // ctas: of a cluster

  ActiveSet guarded(const Expr& condition, const SourceLoc& loc) const;
  ActiveSet warps(int first, int count, const SourceLoc& loc) const;
  ActiveSet elected(const SourceLoc& loc) const;  // one lane of each warp

  // Why an operation of this scope cannot run here, or nothing when it can.
  std::optional<std::string> unfit(Scope scope) const;

  // Smallest and largest value among the active threads; nothing if it depends on more than the thread.
  Range range(const Expr& e) const;

  size_t count() const { return threads_.count(); }
  bool one_lane_a_warp() const { return !divergent_ && count() == static_cast<size_t>(warp_count()); }
  bool one_thread() const { return threads_.count() == 1 && !divergent_; }
  bool empty() const { return threads_.none() || ranks_.none(); }
  // Whether all CTAs of the cluster come here, and whether both of a pair may.
  bool in_every_cta() const { return ranks_.count() == static_cast<size_t>(ctas_); }
  bool in_both_of_a_pair() const;
  // Whether all CTAs that may come here are the one that holds the barriers of their pair or cluster, and
  // whether that one is among them.
  bool in_home_of(Scope owner) const;
  bool reaches_home_of(Scope owner) const;
  int first_warp() const;
  int warp_count() const;                                        // warps with an active thread
  const SourceLoc& narrowed_at() const { return narrowed_at_; }  // the innermost guard that narrowed it
  std::string to_string() const;  // "threads 0..127", "one elected lane of warp 4"

 private:
  int total_ = 0;
  std::bitset<kMaxThreads> threads_;
  std::bitset<16> ranks_;
  int ctas_ = 1;
  bool elected_ = false;
  bool divergent_ = false;
  SourceLoc narrowed_at_;
};

// The value of an expression over thread ids and constants in one thread of the CTA; nothing if it depends on
// more.
std::optional<int64_t> evaluate(const Expr& e, int thread);

// The expression in the CTA of that rank in its cluster.
Expr at_rank(const Expr& e, int rank);

}  // namespace tw::ir
