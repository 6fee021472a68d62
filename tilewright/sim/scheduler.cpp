#include "tilewright/sim/scheduler.h"

#include <charconv>

#include "tilewright/base/error.h"
#include "tilewright/sim/cluster.h"

namespace tw::sim {

namespace {

constexpr uint32_t kSlice = 2048;

Action run_action(Warp* warp, uint32_t limit) { return {Action::Kind::run, warp, limit, nullptr, {}}; }
Action advance_action(AsyncOp* op, Milestone to) { return {Action::Kind::advance, nullptr, 0, op, to}; }

// Warps in turn; an operation completes as soon as it may.
class Eager final : public Scheduler {
 public:
  Action next(Cluster& cluster) override {
    const auto& ops = cluster.advanceable();
    if (!ops.empty()) return advance_action(ops.front(), Milestone::signalled);
    Warp* warp = cluster.next_runnable(turn_);
    if (!warp) return {};
    turn_ = cluster.position(*warp) + 1;
    return run_action(warp, kSlice);
  }

 private:
  size_t turn_ = 0;
};

// Warps in turn; an operation takes one step when no warp gets anywhere without it. Warps that only poll get
// nowhere; so, after many turns in which nothing changed, do warps that spin on memory.
class Late final : public Scheduler {
 public:
  Action next(Cluster& cluster) override {
    if (cluster.epoch != epoch_) epoch_ = cluster.epoch, turns_ = 0;
    const size_t n = cluster.warps.size();
    Warp* polling = nullptr;
    if (turns_ < kPatience * n) {
      for (size_t i = 0; i < n; ++i) {
        Warp* warp = cluster.warps[(turn_ + i) % n];
        if (!warp->runnable()) continue;
        if (warp->idle_epoch == cluster.epoch) {
          if (!polling) polling = warp;
          continue;
        }
        return take(cluster, warp);
      }
    }
    const auto& ops = cluster.advanceable();
    if (!ops.empty()) {
      const auto to = static_cast<Milestone>(static_cast<int>(ops.front()->milestone()) + 1);
      turns_ = 0;
      return advance_action(ops.front(), to);
    }
    if (!polling) polling = cluster.next_runnable(turn_);
    return polling ? take(cluster, polling) : Action{};
  }

 private:
  static constexpr uint64_t kPatience = 64;
  Action take(Cluster& cluster, Warp* warp) {
    turn_ = cluster.position(*warp) + 1;
    ++turns_;
    return run_action(warp, kSlice);
  }
  size_t turn_ = 0;
  uint64_t epoch_ = 0, turns_ = 0;
};

// Everything in an order drawn from a seed: short slices of any warp, single steps of any operation.
class Random final : public Scheduler {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  Action next(Cluster& cluster) override {
    const auto& ops = cluster.advanceable();
    Warp* warp = cluster.next_runnable(draw(cluster.warps.size()));
    if (ops.empty() || (warp && draw(2) == 0)) {
      if (!warp) return {};
      return run_action(warp, static_cast<uint32_t>(1 + draw(draw(4) == 0 ? 1000 : 30)));
    }
    AsyncOp* op = ops[draw(ops.size())];
    const auto to =
        draw(3) == 0 ? Milestone::signalled : static_cast<Milestone>(static_cast<int>(op->milestone()) + 1);
    return advance_action(op, to);
  }

 private:
  // SplitMix64 (G. Steele et al., "Fast splittable pseudorandom number generators", 2014).
  uint64_t draw(uint64_t n) {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % n;
  }
  uint64_t state_;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const ScheduleSpec& spec, uint64_t cluster_index) {
  switch (spec.kind) {
    case ScheduleSpec::Kind::eager: return std::make_unique<Eager>();
    case ScheduleSpec::Kind::late: return std::make_unique<Late>();
    case ScheduleSpec::Kind::random: break;
  }
  return std::make_unique<Random>(spec.seed * 0x9E3779B97F4A7C15u + cluster_index);
}

ScheduleSpec parse_schedule(std::string_view text) {
  if (text == "eager") return {ScheduleSpec::Kind::eager, 0};
  if (text == "late") return {ScheduleSpec::Kind::late, 0};
  constexpr std::string_view prefix = "random:";
  if (text.starts_with(prefix)) {
    const std::string_view digits = text.substr(prefix.size());
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error == std::errc{} && end == digits.data() + digits.size())
      return {ScheduleSpec::Kind::random, seed};
  }
  user_error({}, "'{}' is not a schedule; the schedules are eager, late and random:SEED with SEED a number",
             text);
}

std::string to_string(const ScheduleSpec& spec) {
  switch (spec.kind) {
    case ScheduleSpec::Kind::eager: return "eager";
    case ScheduleSpec::Kind::late: return "late";
    case ScheduleSpec::Kind::random: break;
  }
  return tw::format("random:{}", spec.seed);
}

}  // namespace tw::sim
