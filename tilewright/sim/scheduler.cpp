#include "tilewright/sim/scheduler.h"

#include <algorithm>
#include <charconv>

#include "tilewright/base/error.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"

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

// One role comes last: its warps run, and what they issued advances, only when nothing else gets anywhere.
// Warps outside of it run in short slices, because they may enter it.
class Starve final : public Scheduler {
 public:
  explicit Starve(std::string role) : name_(std::move(role)) {}
  Action next(Cluster& cluster) override {
    if (role_ < 0) find(cluster);
    if (cluster.epoch != epoch_) epoch_ = cluster.epoch, turns_ = 0;
    const auto& ops = cluster.advanceable();
    for (AsyncOp* op : ops) {
      if (!has_role(cluster, op->pc)) return advance_action(op, Milestone::signalled);
    }
    const size_t n = cluster.warps.size();
    if (turns_ >= 2 * kPatience * n) turns_ = 0;
    const bool spinning = turns_ >= kPatience * n;
    Warp *starved = nullptr, *polling = nullptr;
    for (size_t i = 0; i < n; ++i) {
      Warp* warp = cluster.warps[(turn_ + i) % n];
      if (!warp->runnable()) continue;
      const bool idle = warp->idle_epoch == cluster.epoch;
      if (in_role(cluster, *warp)) {
        if (!starved && !idle) starved = warp;
      } else if (!idle && !spinning) {
        return take(cluster, warp);
      }
      if (!polling && idle) polling = warp;
    }
    if (starved) return take(cluster, starved);
    if (!ops.empty()) {
      const auto to = static_cast<Milestone>(static_cast<int>(ops.front()->milestone()) + 1);
      return advance_action(ops.front(), to);
    }
    if (!polling) polling = cluster.next_runnable(turn_);
    return polling ? take(cluster, polling) : Action{};
  }

 private:
  static constexpr uint32_t kShort = 16;
  static constexpr uint64_t kPatience = 256;  // slices without any change: the others spin on memory
  void find(const Cluster& cluster) {
    const auto& roles = cluster.grid.program.names->roles;  // checked at the launch
    role_ = static_cast<int>(std::find(roles.begin(), roles.end(), name_) - roles.begin());
  }
  bool has_role(const Cluster& cluster, uint32_t pc) const {
    const ptx::Instruction* inst = cluster.grid.program.code.source[pc];
    return inst && inst->role == role_;
  }
  bool in_role(const Cluster& cluster, const Warp& warp) const {
    const auto& all = warp.fragments();
    return std::any_of(all.begin(), all.end(), [&](const Fragment& f) { return has_role(cluster, f.pc); });
  }
  Action take(Cluster& cluster, Warp* warp) {
    turn_ = cluster.position(*warp) + 1;
    ++turns_;
    return run_action(warp, kShort);
  }
  const std::string name_;
  int role_ = -1;
  size_t turn_ = 0;
  uint64_t epoch_ = 0, turns_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const ScheduleSpec& spec, uint64_t cluster_index) {
  switch (spec.kind) {
    case ScheduleSpec::Kind::eager: return std::make_unique<Eager>();
    case ScheduleSpec::Kind::late: return std::make_unique<Late>();
    case ScheduleSpec::Kind::starve: return std::make_unique<Starve>(spec.role);
    case ScheduleSpec::Kind::random: break;
  }
  return std::make_unique<Random>(spec.seed * 0x9E3779B97F4A7C15u + cluster_index);
}

ScheduleSpec parse_schedule(std::string_view text) {
  if (text == "eager") return {ScheduleSpec::Kind::eager, 0};
  if (text == "late") return {ScheduleSpec::Kind::late, 0};
  constexpr std::string_view starve = "starve:";
  if (text.starts_with(starve) && text.size() > starve.size())
    return {ScheduleSpec::Kind::starve, 0, std::string(text.substr(starve.size()))};
  constexpr std::string_view prefix = "random:";
  if (text.starts_with(prefix)) {
    const std::string_view digits = text.substr(prefix.size());
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error == std::errc{} && end == digits.data() + digits.size())
      return {ScheduleSpec::Kind::random, seed};
  }
  user_error({},
             "'{}' is not a schedule; the schedules are eager, late, random:SEED with SEED a number, and "
             "starve:ROLE with ROLE one of the kernel's roles",
             text);
}

std::string to_string(const ScheduleSpec& spec) {
  switch (spec.kind) {
    case ScheduleSpec::Kind::eager: return "eager";
    case ScheduleSpec::Kind::late: return "late";
    case ScheduleSpec::Kind::starve: return "starve:" + spec.role;
    case ScheduleSpec::Kind::random: break;
  }
  return tw::format("random:{}", spec.seed);
}

}  // namespace tw::sim
