#include "tilewright/ir/active_set.h"

#include <algorithm>
#include <vector>

#include "tilewright/base/format.h"

namespace tw::ir {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

std::optional<int64_t> scope_value(ScopeId id, int thread) {
  switch (id) {
    case ScopeId::thread: return thread;
    case ScopeId::lane: return thread % 32;
    case ScopeId::warp: return thread / 32;
    case ScopeId::warpgroup: return thread / 128;
    case ScopeId::warp_in_warpgroup: return thread / 32 % 4;
    case ScopeId::thread_in_warpgroup: return thread % 128;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> evaluate(const Expr& e, int thread) {
  if (auto c = e.constant()) return c;
  if (e->op == Op::scope_id) return scope_value(e->id, thread);
  std::vector<int64_t> v;
  for (const Expr& a : e->args) {
    auto x = evaluate(a, thread);
    if (!x) return std::nullopt;
    v.push_back(*x);
  }
  switch (e->op) {
    case Op::add: {
      int64_t s = 0;
      for (int64_t x : v) s += x;
      return s;
    }
    case Op::mul: return v[0] * v[1];
    case Op::div: return v[1] ? std::optional(floor_div(v[0], v[1])) : std::nullopt;
    case Op::mod: return v[1] ? std::optional(v[0] - floor_div(v[0], v[1]) * v[1]) : std::nullopt;
    case Op::bit_and: return v[0] & v[1];
    case Op::bit_or: return v[0] | v[1];
    case Op::bit_xor: return v[0] ^ v[1];
    case Op::min: return std::min(v[0], v[1]);
    case Op::max: return std::max(v[0], v[1]);
    case Op::lt: return v[0] < v[1];
    case Op::le: return v[0] <= v[1];
    case Op::eq: return v[0] == v[1];
    case Op::ne: return v[0] != v[1];
    case Op::logical_and: return v[0] && v[1];
    case Op::logical_or: return v[0] || v[1];
    case Op::logical_not: return !v[0];
    case Op::select: return v[0] ? v[1] : v[2];
    case Op::cast: return is_integer(e.type()) ? std::optional(v[0]) : std::nullopt;
    default: return std::nullopt;
  }
}

Expr at_rank(const Expr& e, int rank) {
  if (e->op == Op::scope_id && e->id == ScopeId::cluster_rank) return Expr(rank);
  return rebuild(e, [rank](const Expr& a) { return at_rank(a, rank); });
}

ActiveSet ActiveSet::all(int threads, int ctas) {
  ActiveSet s;
  s.total_ = threads;
  s.ctas_ = ctas;
  for (int r = 0; r < ctas; ++r) s.ranks_.set(static_cast<size_t>(r));
  for (int t = 0; t < threads; ++t) s.threads_.set(static_cast<size_t>(t));
  return s;
}

ActiveSet ActiveSet::guarded(const Expr& condition, const SourceLoc& loc) const {
  if (condition->op == Op::logical_and)
    return guarded(condition->args[0], loc).guarded(condition->args[1], loc);
  ActiveSet s = *this;
  if (condition.constant()) return s;  // what a kernel's own constants rule out is not a guard
  if (is_uniform(condition)) {
    for (int r = 0; r < ctas_; ++r) {
      auto passes = at_rank(condition, r).constant();
      if (passes && !*passes) s.ranks_.reset(static_cast<size_t>(r));
    }
    if (s.ranks_ != ranks_) s.narrowed_at_ = loc;
    return s;
  }
  s.narrowed_at_ = loc;
  if (elected_ || !evaluate(condition, 0)) {
    s.divergent_ = true;
    return s;
  }
  for (int t = 0; t < total_; ++t) {
    if (!*evaluate(condition, t)) s.threads_.reset(static_cast<size_t>(t));
  }
  return s;
}

ActiveSet ActiveSet::warps(int first, int count, const SourceLoc& loc) const {
  ActiveSet s = *this;
  s.narrowed_at_ = loc;
  for (int t = 0; t < total_; ++t) {
    if (t < first * 32 || t >= (first + count) * 32) s.threads_.reset(static_cast<size_t>(t));
  }
  return s;
}

ActiveSet ActiveSet::elected(const SourceLoc& loc) const {
  ActiveSet s = *this;
  s.narrowed_at_ = loc;
  s.elected_ = true;
  for (int t = 0; t < total_; ++t) {
    if (t % 32 != 0) s.threads_.reset(static_cast<size_t>(t));  // lane 0 stands for the elected one
  }
  return s;
}

Range ActiveSet::range(const Expr& e) const {
  Range r;
  for (int t = 0; t < total_; ++t) {
    if (!threads_.test(static_cast<size_t>(t))) continue;
    auto v = evaluate(e, t);
    if (!v) return {};
    r.lo = std::min(r.lo.value_or(*v), *v);
    r.hi = std::max(r.hi.value_or(*v), *v);
  }
  return r;
}

bool ActiveSet::in_both_of_a_pair() const {
  return (ranks_.to_ulong() & ranks_.to_ulong() >> 1 & 0x5555) != 0;
}

namespace {
// CTAs of a cluster that do not hold their owner's barriers.
unsigned long away_from_home(Scope owner) {
  return owner == Scope::cta_pair ? 0xaaaa : owner == Scope::cluster ? 0xfffe : 0;
}
}  // namespace

bool ActiveSet::in_home_of(Scope owner) const { return (ranks_.to_ulong() & away_from_home(owner)) == 0; }
bool ActiveSet::reaches_home_of(Scope owner) const {
  return (ranks_.to_ulong() & ~away_from_home(owner)) != 0;
}

int ActiveSet::first_warp() const {
  for (int t = 0; t < total_; ++t)
    if (threads_.test(static_cast<size_t>(t))) return t / 32;
  return 0;
}

int ActiveSet::warp_count() const {
  int n = 0;
  for (int w = 0; w * 32 < total_; ++w) {
    bool any = false;
    for (int t = w * 32; t < std::min(total_, w * 32 + 32); ++t) any |= threads_.test(static_cast<size_t>(t));
    n += any;
  }
  return n;
}

std::string ActiveSet::to_string() const {
  if (empty()) return "no thread";
  std::string ranges;
  for (int t = 0; t < total_; ++t) {
    if (!threads_.test(static_cast<size_t>(t))) continue;
    int end = t;
    while (end + 1 < total_ && threads_.test(static_cast<size_t>(end + 1))) ++end;
    if (!ranges.empty()) ranges += ", ";
    if (elected_) ranges += format("warp {}", t / 32);
    else ranges += t == end ? format("{}", t) : format("{}..{}", t, end);
    t = end;
  }
  std::string text =
      elected_ ? "one elected lane of " + ranges : (count() == 1 ? "thread " : "threads ") + ranges;
  return divergent_ ? "a part, known only at run time, of " + text : text;
}

std::optional<std::string> ActiveSet::unfit(Scope scope) const {
  if (scope == Scope::thread) return std::nullopt;
  if (divergent_) return "the guard lets through threads known only at run time";
  auto complete = [&](int unit, const char* what) -> std::optional<std::string> {
    for (int first = 0; first < total_; first += unit) {
      int active = 0;
      for (int t = first; t < std::min(total_, first + unit); ++t)
        active += threads_.test(static_cast<size_t>(t));
      if (active != 0 && active != unit)
        return format("only {} of {} threads of {} {} are active", active, unit, what, first / unit);
    }
    return std::nullopt;
  };
  switch (scope) {
    case Scope::warp: return complete(32, "warp");
    case Scope::warpgroup: return complete(128, "warpgroup");
    case Scope::cta:
    case Scope::cta_pair:
    case Scope::cluster:
      if (count() != static_cast<size_t>(total_))
        return format("only {} of {} threads of the CTA are active", count(), total_);
      return std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace tw::ir
