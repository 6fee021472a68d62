#include "tilewright/check/explore.h"

#include <chrono>
#include <deque>
#include <unordered_set>

#include "tilewright/base/error.h"
#include "tilewright/check/checker.h"
#include "tilewright/check/order_recorder.h"

namespace tw::check {

namespace {

// One domain's orders: those that ran, and the reversals of them that have not.
class Orders {
 public:
  // An order that ran before may still come with reversals that it had not: what a read polls for is learned.
  void add(SyncTrace trace) {
    const uint64_t hash = trace.hash();
    const bool fresh = known_.insert(hash).second;
    traces_.push_back(std::move(trace));
    const SyncTrace& t = traces_.back();
    bool any = false;
    for (uint32_t i = 0; i < t.reversals.size(); ++i) {
      const Reversal& r = t.reversals[i];
      const Step &one = t.steps[r.first], &two = t.steps[r.second];
      const uint64_t pair = mix(mix(one.actor, one.index), mix(mix(two.actor, two.index), r.expire));
      if (!offered_.insert(mix(hash, pair)).second) continue;
      any = true;
      const bool first_of_places = places_.insert(mix(one.pc, two.pc)).second;
      (first_of_places ? fresh_ : rest_).push_back({static_cast<uint32_t>(traces_.size() - 1), i});
    }
    if (!fresh && !any) traces_.pop_back();
  }
  size_t count() const { return known_.size(); }

  struct Next {
    Plan plan;
    std::string text;
  };
  // It did not come to run.
  void put_back(Next next) { again_.push_back(std::move(next)); }
  // A reversal that no run began with; those of places that none was of come first.
  std::optional<Next> next() {
    if (!again_.empty()) {
      Next first = std::move(again_.front());
      again_.pop_front();
      return first;
    }
    for (auto* queue : {&fresh_, &rest_}) {
      while (!queue->empty()) {
        const auto [number, which] = queue->front();
        queue->pop_front();
        const Reversal& r = traces_[number].reversals[which];
        const Prefix prefix(traces_[number], r);
        if (covered(prefix) || !planned_.insert(prefix.hash()).second) continue;
        return Next{prefix.plan(), *r.text};
      }
    }
    return std::nullopt;
  }

 private:
  bool covered(const Prefix& prefix) const {
    for (const SyncTrace& t : traces_)
      if (prefix.begins(t)) return true;
    return false;
  }

  std::deque<SyncTrace> traces_;  // prefixes refer to them
  std::unordered_set<uint64_t> known_, offered_, planned_, places_;
  std::deque<std::pair<uint32_t, uint32_t>> fresh_, rest_;  // traces and reversals
  std::deque<Next> again_;
};

class Search {
 public:
  Search(Checker& checker, const ExploreBudget& budget)
      : checker_(checker), budget_(budget), recorder_(checker) {}

  Exploration search(const std::function<void(const sim::RunOptions&)>& run, bool stop_at_first,
                     const std::function<void(const std::string&)>& progress) {
    const auto begin = std::chrono::steady_clock::now();
    std::map<DomainKey, Orders::Next> plans;
    while (true) {
      ++result_.runs;
      if (progress) progress(tw::format("order {}", result_.runs));
      checker_.under_order(tw::format("order {}{}", result_.runs, name_of(plans)));
      one_run(run, std::move(plans));
      if (stop_at_first && !checker_.report().faults.empty()) break;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      if (result_.runs >= budget_.runs || (budget_.seconds > 0 && spent.count() > budget_.seconds)) break;
      plans = next();
      if (plans.empty()) break;
    }
    conclude();
    return result_;
  }

 private:
  void one_run(const std::function<void(const sim::RunOptions&)>& run,
               std::map<DomainKey, Orders::Next> next) {
    std::map<DomainKey, Plan> plans;
    for (const auto& [key, n] : next) plans[key] = n.plan;
    sim::RunOptions sim;
    sim.host_threads = 1;
    sim.observer = &recorder_;
    sim.schedulers = &recorder_;
    sim.instruction_limit = limit_;
    recorder_.begin_run(std::move(plans));
    try {
      run(sim);
    } catch (const Error& e) {
      if (!checker_.take(e)) throw;
    }
    // No order makes a kernel run this much longer, unless it never ends.
    constexpr uint64_t kLeast = 10'000'000, kFactor = 4;
    limit_ = std::max({limit_, kLeast, kFactor * recorder_.instructions()});
    for (auto& recorded : recorder_.end_run()) {
      domains_[recorded.domain].add(std::move(recorded.trace));
      next.erase(recorded.domain);
    }
    for (auto& [key, n] : next) domains_[key].put_back(std::move(n));
  }

  // One reversal for each domain that has any left: they do not notice each other.
  std::map<DomainKey, Orders::Next> next() {
    std::map<DomainKey, Orders::Next> plans;
    for (auto& [key, orders] : domains_)
      if (auto next = orders.next()) plans[key] = std::move(*next);
    return plans;
  }

  static std::string name_of(const std::map<DomainKey, Orders::Next>& plans) {
    if (plans.empty()) return {};
    const std::string& text = plans.begin()->second.text;
    return tw::format(" ({}{})", text, plans.size() == 1 ? "" : ", and the like in other clusters");
  }

  void conclude() {
    std::map<std::string, uint64_t> left;
    result_.orders = 1;
    for (auto& [key, orders] : domains_) {
      result_.orders += orders.count() ? orders.count() - 1 : 0;
      while (auto next = orders.next()) ++left[next->text], ++result_.left;
    }
    for (const auto& [text, count] : left)
      result_.not_explored.push_back(count == 1 ? text : tw::format("{} ({} times)", text, count));
    for (const std::string& what : recorder_.not_explored()) result_.not_explored.push_back(what);
  }

  Checker& checker_;
  const ExploreBudget budget_;
  OrderRecorder recorder_;
  std::map<DomainKey, Orders> domains_;
  uint64_t limit_ = 0;
  Exploration result_;
};

}  // namespace

Exploration explore(Checker& checker, const std::function<void(const sim::RunOptions&)>& run,
                    const ExploreBudget& budget, bool stop_at_first,
                    const std::function<void(const std::string&)>& progress) {
  return Search(checker, budget).search(run, stop_at_first, progress);
}

}  // namespace tw::check
