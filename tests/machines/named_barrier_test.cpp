#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/machines/random_operations.h"
#include "tests/machines/stepper.h"
#include "tilewright/sim/testing.h"

// Named barriers ("bar, barrier"): the simulator against a reference that keeps the list of arrivals of each.
namespace tw::machines {
namespace {

constexpr uint32_t kWarps = 6, kBarriers = 16, kThreads = 32 * kWarps;

enum class Kind : uint8_t { sync, sync_aligned, sync_split, arrive, popc, all_of, any_of, exit };
constexpr const char* kNames[] = {"barrier.sync", "bar.sync",     "barrier.sync by two halves of the warp",
                                  "bar.arrive",   "bar.red.popc", "bar.red.and",
                                  "bar.red.or",   "exit"};

struct Op {
  Kind kind = Kind::sync;
  uint32_t warp = 0, id = 0;
  uint32_t count = 0;  // threads; 0: the form without a count
  uint32_t lanes = 0;  // whose predicate holds; of exit: who leaves
};
std::string describe(const Op& op) {
  return tw::format("warp {}: {} {}, {} threads, lanes {:#010x}", op.warp, kNames[static_cast<int>(op.kind)],
                    op.id, op.count, op.lanes);
}
bool reduces(Kind k) { return k == Kind::popc || k == Kind::all_of || k == Kind::any_of; }

enum class Rule : uint8_t { none, number, multiple, other_count, mixed };
constexpr const char* kWords[] = {"", "0 to 15", "multiple of 32", "is in use with", "mixes .red"};

// --- the reference ---

struct Arrival {
  Op op;
  uint32_t live = 0;  // lanes that took part
};

class World {
 public:
  std::array<std::vector<Arrival>, kBarriers> barriers;
  std::array<uint32_t, kWarps> live;
  std::array<bool, kWarps> blocked{};
  std::array<uint32_t, kWarps> result{};  // of the warp's last reduction
  std::array<uint64_t, kBarriers> completed{};

  World() { live.fill(~0u); }
  bool meaningful(const Op& op) const { return !blocked[op.warp] && live[op.warp] != 0; }
  uint32_t live_warps() const {
    return static_cast<uint32_t>(std::count_if(live.begin(), live.end(), [](uint32_t l) { return l != 0; }));
  }
  // "all threads in the CTA participate" without a count; threads that have exited are not waited for. Warps
  // arrive as a whole.
  uint32_t expected(uint32_t id) const {
    return barriers[id].front().op.count ? barriers[id].front().op.count : 32 * live_warps();
  }
  uint32_t arrived(uint32_t id) const { return 32 * static_cast<uint32_t>(barriers[id].size()); }

  Rule apply(const Op& op) {
    if (op.kind == Kind::exit) {
      live[op.warp] &= ~op.lanes;
      for (uint32_t id = 0; id < kBarriers; ++id) settle(id);
      return Rule::none;
    }
    if (op.id >= kBarriers) return Rule::number;
    if (op.count % 32 != 0 || (op.kind == Kind::arrive && op.count == 0)) return Rule::multiple;
    auto& arrivals = barriers[op.id];
    if (!arrivals.empty()) {
      const Op& first = arrivals.front().op;
      if (threads(first) != threads(op)) return Rule::other_count;
      if (reduces(first.kind) || reduces(op.kind)) {
        if (first.kind != op.kind) return Rule::mixed;
      }
    }
    arrivals.push_back({op, live[op.warp]});
    blocked[op.warp] = op.kind != Kind::arrive;
    settle(op.id);
    return Rule::none;
  }

 private:
  static uint32_t threads(const Op& op) { return op.count ? op.count : kThreads; }
  void settle(uint32_t id) {
    auto& arrivals = barriers[id];
    if (arrivals.empty() || arrived(id) < expected(id)) return;
    uint32_t yes = 0, all = 0;
    for (const Arrival& a : arrivals) {
      yes += static_cast<uint32_t>(__builtin_popcount(a.op.lanes & a.live));
      all += static_cast<uint32_t>(__builtin_popcount(a.live));
    }
    for (const Arrival& a : arrivals) {
      if (a.op.kind == Kind::arrive) continue;
      blocked[a.op.warp] = false;
      if (a.op.kind == Kind::popc) result[a.op.warp] = yes;
      if (a.op.kind == Kind::all_of) result[a.op.warp] = yes == all;
      if (a.op.kind == Kind::any_of) result[a.op.warp] = yes != 0;
    }
    arrivals.clear();  // "the barrier is reinitialized so that it can be immediately reused"
    ++completed[id];
  }
};

// --- random operations ---

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), exits_(random_.one_in(3)) {}

  // Nothing when no warp can go on.
  bool next(const World& world, Op& op) {
    std::vector<uint32_t> free;
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (!world.blocked[w] && world.live[w]) free.push_back(w);
    }
    if (free.empty()) return false;
    op = {};
    op.warp = random_.of(free);
    op.lanes = random_.one_in(4) ? ~0u : random_.one_in(3) ? 0 : static_cast<uint32_t>(random_.bits());
    if (exits_ && random_.one_in(150)) {
      op.kind = Kind::exit;
      if (random_.one_in(3)) op.lanes = ~0u;
      return safe_exit(world, op);
    }
    op.id = pending_or_new(world, free.size());
    const auto& arrivals = world.barriers[op.id];
    if (arrivals.empty()) begin(world, op);
    else join(world, op);
    if (random_.one_in(2500)) stray(op);
    return true;
  }

 private:
  // Where few warps are left, a barrier that is under way.
  uint32_t pending_or_new(const World& world, size_t free) {
    std::vector<uint32_t> pending;
    for (uint32_t id = 0; id < kBarriers; ++id) {
      if (!world.barriers[id].empty()) pending.push_back(id);
    }
    if (!pending.empty() && (free <= 2 || random_.one_in(2))) return random_.of(pending);
    return random_.below(random_.one_in(3) ? kBarriers : 4);
  }
  void begin(const World& world, Op& op) {
    static const std::vector<Kind> kinds = {Kind::sync, Kind::sync_aligned, Kind::sync_split, Kind::arrive,
                                            Kind::popc, Kind::all_of,       Kind::any_of,     Kind::arrive};
    op.kind = random_.of(kinds);
    op.count = 32 * (1 + random_.below(std::max(1u, world.live_warps())));
    if (op.kind != Kind::arrive && random_.one_in(4)) op.count = 0;
  }
  void join(const World& world, Op& op) {
    const Op& first = world.barriers[op.id].front().op;
    op.count = first.count;
    static const std::vector<Kind> plain = {Kind::sync, Kind::sync_aligned, Kind::sync_split};
    op.kind = reduces(first.kind) ? first.kind : random_.of(plain);
    const bool last = world.arrived(op.id) + 32 >= world.expected(op.id);
    if (!reduces(first.kind) && op.count && (random_.one_in(3) || (!last && random_.one_in(2))))
      op.kind = Kind::arrive;
    // All threads of the CTA can be named or left out, as long as none has exited.
    if (!exits_ && op.kind != Kind::arrive && op.count % kThreads == 0 && random_.one_in(2))
      op.count = op.count ? 0 : kThreads;
  }
  void stray(Op& op) {
    switch (random_.below(4)) {
      case 0: op.id = 16 + random_.below(3); break;
      case 1: op.count += 1 + random_.below(31); break;
      case 2: op.count = op.count == 64 ? 96 : 64; break;
      default: op.kind = reduces(op.kind) ? Kind::sync : Kind::popc; break;
    }
    if (op.kind == Kind::arrive && op.count == 0) op.count = 32;
  }
  // The ISA does not say what becomes of a barrier that names all threads both ways when one exits; nor of a
  // warp that exits after bar.arrive.
  bool safe_exit(const World& world, const Op& op) {
    for (const auto& arrivals : world.barriers) {
      for (const Arrival& a : arrivals) {
        if (a.op.warp == op.warp) return false;
      }
    }
    return true;
  }
  Random random_;
  bool exits_;
};

struct Episode {
  std::vector<Op> ops;
  bool broken = false;
};
Episode episode(uint64_t seed, size_t count) {
  Episode e;
  World world;
  Generator generator(seed);
  for (size_t tries = 0; e.ops.size() < count && !e.broken && tries < 2 * count; ++tries) {
    Op op;
    if (!generator.next(world, op)) continue;
    e.broken = world.apply(op) != Rule::none;
    e.ops.push_back(op);
    if (world.live_warps() == 0) break;
  }
  return e;
}

// --- through PTX ---

const sim::Program& program() {
  auto both = [&](std::string_view label, std::string_view with, std::string_view without) {
    return tw::format(
        "setp.eq.u32 %none, %o1, 0; @%none bra {0}_ALL;\n{1}\nbra {0}_OVER;\n{0}_ALL: {2}\n{0}_OVER:", label,
        with, without);
  };
  static const sim::Program made = sim::testing::compile(interpreter(
      {
          both("SYNC", "barrier.sync %o0, %o1;", "barrier.sync %o0;"),
          both("BAR", "bar.sync %o0, %o1;", "bar.sync %o0;"),
          "@%act bra SPLIT; mov.u32 %t1, 0;\nSPLIT: " +
              both("SPLIT", "barrier.sync %o0, %o1;", "barrier.sync %o0;"),
          "bar.arrive %o0, %o1;",
          both("POPC", "bar.red.popc.u32 %r, %o0, %o1, %act;", "bar.red.popc.u32 %r, %o0, %act;"),
          both("AND", "bar.red.and.pred %p, %o0, %o1, %act;", "bar.red.and.pred %p, %o0, %act;") +
              " selp.u32 %r, 1, 0, %p;",
          both("OR", "bar.red.or.pred %p, %o0, %o1, %act;", "bar.red.or.pred %p, %o0, %act;") +
              " selp.u32 %r, 1, 0, %p;",
          "@%act exit;",
      },
      ".reg .pred %none;", "sm_90a"));
  return made;
}

std::string compare_state(const World& world, const sim::Cluster& cluster) {
  for (uint32_t w = 0; w < kWarps; ++w) {
    const bool free = world.live[w] && !world.blocked[w];
    if (cluster.warps[w]->runnable() != free)
      return tw::format("warp {} is {} by the reference, {} in the simulator", w, free ? "free" : "blocked",
                        free ? "blocked" : "free");
    if (cluster.warps[w]->live() != world.live[w])
      return tw::format("warp {} has lanes {:#010x} by the reference, {:#010x} in the simulator", w,
                        world.live[w], cluster.warps[w]->live());
  }
  for (uint32_t id = 0; id < kBarriers; ++id) {
    const sim::NamedBarrier& b = cluster.ctas[0]->barriers[id];
    if (b.arrived != world.arrived(id) || b.generation != world.completed[id])
      return tw::format(
          "barrier {}: {} threads arrived, completed {} times by the reference, {} and {} in the simulator",
          id, world.arrived(id), world.completed[id], b.arrived, b.generation);
  }
  return "";
}

std::string compare(const std::vector<Op>& ops) {
  World world, replay;
  std::vector<Op> asked;
  std::vector<std::vector<Record>> lists(kWarps);
  struct Result {
    uint32_t warp;
    size_t index;
    Kind kind;
    uint32_t value = 0;
  };
  std::vector<Result> results;
  std::array<int, kWarps> open;  // of `results`: the reduction a warp is in
  open.fill(-1);
  Rule last = Rule::none;
  for (const Op& op : ops) {
    if (!world.meaningful(op)) continue;
    asked.push_back(op);
    if (int& r = open[op.warp]; r >= 0) {
      results[static_cast<size_t>(r)].value = world.result[op.warp];
      r = -1;
    }
    if (reduces(op.kind)) {
      open[op.warp] = static_cast<int>(results.size());
      results.push_back({op.warp, lists[op.warp].size(), op.kind});
    }
    lists[op.warp].push_back(
        {.code = static_cast<uint32_t>(op.kind), .lanes = op.lanes, .operands = {op.id, op.count, 0, 0, 0}});
    last = world.apply(op);
    if (last != Rule::none || world.live_warps() == 0) break;
  }
  for (const int r : open) {  // the kernel has not stored these
    if (r >= 0) results[static_cast<size_t>(r)].warp = kWarps;
  }
  const bool all_gone = world.live_warps() == 0;
  sim::GlobalMemory memory;
  const Steps steps{.count = asked.size(),
                    .warp = [&](size_t i) { return static_cast<int>(asked[i].warp); },
                    .compare = [&](sim::Cluster& cluster, size_t i) -> std::string {
                      if (replay.apply(asked[i]) != Rule::none)
                        return "illegal by the reference, legal in the simulator: " + describe(asked[i]);
                      return compare_state(replay, cluster);
                    }};
  const Outcome outcome = drive(program(), {.warps = kWarps}, memory, lists, steps);
  if (!outcome.difference.empty()) return outcome.difference;
  const bool to_the_end =
      outcome.done == asked.size() - (last != Rule::none || all_gone) && outcome.exited == all_gone;
  if (!to_the_end)
    return tw::format("after {} of {} operations: {}", outcome.done, asked.size(), outcome.fault);
  if (last != Rule::none && outcome.fault.find(kWords[static_cast<int>(last)]) == std::string::npos)
    return tw::format("illegal ({}) by the reference; the simulator says '{}'",
                      kWords[static_cast<int>(last)], outcome.fault);
  std::array<size_t, kWarps> first{};
  for (uint32_t w = 1; w < kWarps; ++w) first[w] = first[w - 1] + lists[w - 1].size() + 1;
  for (const Result& r : results) {
    if (r.warp == kWarps) continue;
    const uint32_t got = outcome.records[first[r.warp] + r.index].result;
    if (got != r.value)
      return tw::format("warp {}, operation {} ({}): the result is {} by the reference, {} in the simulator",
                        r.warp, r.index, kNames[static_cast<int>(r.kind)], r.value, got);
  }
  return "";
}

TEST(NamedBarrierReference, AgreesOnAMillionOperations) {
  constexpr size_t kOperations = 1'000'000;
  size_t done = 0, broken = 0;
  for (uint64_t seed = 1; done < kOperations; ++seed) {
    const Episode e = episode(seed, 5000);
    const std::string report = disagreement<Op>(e.ops, seed, compare, describe);
    ASSERT_TRUE(report.empty()) << report;
    done += e.ops.size();
    broken += e.broken;
  }
  EXPECT_GT(broken, 100u);
}

}  // namespace
}  // namespace tw::machines
