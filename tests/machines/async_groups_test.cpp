#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/machines/random_operations.h"
#include "tests/machines/stepper.h"
#include "tilewright/sim/observer.h"
#include "tilewright/sim/testing.h"

// Async-groups: cp.async.bulk.commit_group and wait_group, and those of cp.async, which are groups of their
// own. The reference keeps for every thread the lists that "Async-group mechanism" speaks of.
namespace tw::machines {
namespace {

constexpr uint32_t kWarps = 3, kLanes = 32, kWaits = 8;

enum class Kind : uint8_t {
  store,   // cp.async.bulk to global memory, by bulk group
  reduce,  // cp.reduce.async.bulk, by bulk group
  load,    // cp.async.bulk to shared memory, by mbarrier: in no group
  bulk_commit,
  bulk_wait,
  bulk_wait_read,
  copy,  // cp.async
  commit,
  wait,
  wait_all,
  advance,  // an operation in flight gets on
};
constexpr const char* kNames[] = {"cp.async.bulk to global",
                                  "cp.reduce.async.bulk",
                                  "cp.async.bulk to shared",
                                  "cp.async.bulk.commit_group",
                                  "cp.async.bulk.wait_group",
                                  "cp.async.bulk.wait_group.read",
                                  "cp.async",
                                  "cp.async.commit_group",
                                  "cp.async.wait_group",
                                  "cp.async.wait_all",
                                  "advance"};

enum Level : uint8_t { issued, read, complete };

struct Op {
  Kind kind = Kind::advance;
  uint32_t warp = 0, lanes = 0;
  uint32_t number = 0;  // N of a wait; of `advance`, the operation, counted by issue
  Level level = complete;
};
std::string describe(const Op& op) {
  if (op.kind == Kind::advance)
    return tw::format("operation {} {}", op.number, op.level == read ? "has read" : "completes");
  return tw::format("warp {}, lanes {:#010x}: {} {}", op.warp, op.lanes, kNames[static_cast<int>(op.kind)],
                    op.number);
}

// --- the reference ---

using Groups = std::vector<std::vector<size_t>>;  // operations of each group, oldest group first

struct Thread {
  std::vector<size_t> uncommitted;
  Groups groups;
  void commit() {
    groups.push_back(uncommitted);
    uncommitted.clear();
  }
};
struct Waiting {
  bool blocked = false, bulk = false;
  uint32_t lanes = 0, number = 0;
  Level level = complete;
};

class World {
 public:
  std::vector<Level> operations;  // how far each has got
  std::vector<size_t> in_flight;
  std::array<std::array<Thread, kLanes>, kWarps> bulk, plain;
  std::array<Waiting, kWarps> waits;

  bool blocked(uint32_t warp) const { return waits[warp].blocked; }
  // "until only N or fewer of the most recent bulk async-groups are pending and all the prior ones are
  // complete"
  bool over(const Thread& thread, size_t n, Level level) const {
    for (size_t g = 0; g + n < thread.groups.size(); ++g) {
      for (const size_t op : thread.groups[g]) {
        if (operations[op] < level) return false;
      }
    }
    return true;
  }
  // Whether it can be carried out at all.
  bool meaningful(const Op& op) const {
    if (op.kind != Kind::advance) return !blocked(op.warp);
    return op.number < operations.size() && operations[op.number] < op.level;
  }

  void apply(const Op& op) {
    switch (op.kind) {
      case Kind::store:
      case Kind::reduce:
        each(op, [&](uint32_t l) { bulk[op.warp][l].uncommitted.push_back(start()); });
        break;
      case Kind::load: each(op, [&](uint32_t) { start(); }); break;
      case Kind::copy: {  // one operation of the simulator for all lanes
        const size_t number = start();
        each(op, [&](uint32_t l) { plain[op.warp][l].uncommitted.push_back(number); });
        break;
      }
      case Kind::bulk_commit: each(op, [&](uint32_t l) { bulk[op.warp][l].commit(); }); break;
      case Kind::commit: each(op, [&](uint32_t l) { plain[op.warp][l].commit(); }); break;
      case Kind::bulk_wait: waits[op.warp] = {true, true, op.lanes, op.number, complete}; break;
      case Kind::bulk_wait_read: waits[op.warp] = {true, true, op.lanes, op.number, read}; break;
      case Kind::wait: waits[op.warp] = {true, false, op.lanes, op.number, complete}; break;
      case Kind::wait_all:  // "equivalent to: cp.async.commit_group; cp.async.wait_group 0"
        each(op, [&](uint32_t l) { plain[op.warp][l].commit(); });
        waits[op.warp] = {true, false, op.lanes, 0, complete};
        break;
      case Kind::advance: {
        operations[op.number] = op.level;
        if (op.level == complete) std::erase(in_flight, op.number);
        break;
      }
    }
    for (uint32_t w = 0; w < kWarps; ++w) waits[w].blocked = waits[w].blocked && !wait_over(w);
  }

 private:
  template <class Do>
  void each(const Op& op, Do act) {
    for (uint32_t l = 0; l < kLanes; ++l) {
      if (op.lanes >> l & 1) act(l);
    }
  }
  size_t start() {
    operations.push_back(issued);
    in_flight.push_back(operations.size() - 1);
    return operations.size() - 1;
  }
  bool wait_over(uint32_t w) const {
    const auto& threads = waits[w].bulk ? bulk[w] : plain[w];
    for (uint32_t l = 0; l < kLanes; ++l) {
      if ((waits[w].lanes >> l & 1) && !over(threads[l], waits[w].number, waits[w].level)) return false;
    }
    return true;
  }
};

// --- random operations ---

uint32_t some_lanes(Random& random) {
  switch (random.below(8)) {
    case 0: return ~0u;
    case 1: return static_cast<uint32_t>(random.bits()) | 1;
    case 2: return 3u << random.below(31);
    default: return 1u << random.below(4);
  }
}

std::vector<Op> episode(uint64_t seed, size_t count) {
  World world;
  Random random(seed);
  std::vector<Op> ops;
  const uint32_t busy = 20 + random.below(40);  // how much is left in flight
  while (ops.size() < count) {
    Op op;
    if (random.below(100) < (world.in_flight.size() > busy ? 70u : 25u)) {
      if (world.in_flight.empty()) continue;
      const size_t which = random.one_in(3) ? 0 : random.below(world.in_flight.size());
      op.number = static_cast<uint32_t>(world.in_flight[which]);
      op.level = random.one_in(2) ? read : complete;
    } else {
      static const std::vector<Kind> kinds = {Kind::store,     Kind::store,          Kind::reduce,
                                              Kind::load,      Kind::bulk_commit,    Kind::bulk_commit,
                                              Kind::bulk_wait, Kind::bulk_wait_read, Kind::copy,
                                              Kind::commit,    Kind::wait,           Kind::wait_all};
      op = {random.of(kinds), random.below(kWarps), some_lanes(random), random.below(kWaits), complete};
    }
    if (!world.meaningful(op)) continue;
    world.apply(op);
    ops.push_back(op);
  }
  return ops;
}

// --- through PTX ---

const sim::Program& program() {
  std::vector<std::string> handlers = {
      "@%act cp.async.bulk.global.shared::cta.bulk_group [%extra], [%t4], 16;",
      "@%act cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%extra], [%t4], 16;",
      std::string("@%act mbarrier.expect_tx.relaxed.cta.shared.b64 [%t6], 16;\n") +
          "@%act cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t5], [%extra], 16, "
          "[%t6];",
      "@%act cp.async.bulk.commit_group;",
      "@%act cp.async.ca.shared.global [%t5], [%extra], 16;",
      "@%act cp.async.commit_group;",
      "@%act cp.async.wait_all;"};
  for (uint32_t n = 0; n < kWaits; ++n) {
    handlers.push_back(tw::format("@%act cp.async.bulk.wait_group {};", n));
    handlers.push_back(tw::format("@%act cp.async.bulk.wait_group.read {};", n));
    handlers.push_back(tw::format("@%act cp.async.wait_group {};", n));
  }
  static const sim::Program made = sim::testing::compile(interpreter(
      handlers,
      // %t4, %t5: 16 bytes of this thread to read and to write; %t6: its mbarrier.
      tw::format(
          ".shared .align 16 .b8 from[{0}], to[{0}]; .shared .align 8 .b64 bars[{1}];\n"
          "mov.u32 %t3, %tid.x; mov.u32 %t4, from; mad.lo.u32 %t4, %t3, 16, %t4;\n"
          "mov.u32 %t5, to; mad.lo.u32 %t5, %t3, 16, %t5; mov.u32 %t6, bars; mad.lo.u32 %t6, %t3, 8, %t6;\n"
          "mov.b64 %l0, 0; st.shared.v2.b64 [%t4], {{%l0, %l0}}; mad.wide.u32 %extra, %t3, 16, %extra;\n"
          "mbarrier.init.shared.b64 [%t6], 1;",
          16 * kLanes * kWarps, kLanes * kWarps),
      "sm_90a"));
  return made;
}
uint32_t handler_of(const Op& op) {
  switch (op.kind) {
    case Kind::store:
    case Kind::reduce:
    case Kind::load:
    case Kind::bulk_commit: return static_cast<uint32_t>(op.kind);
    case Kind::copy: return 4;
    case Kind::commit: return 5;
    case Kind::wait_all: return 6;
    case Kind::bulk_wait: return 7 + 3 * op.number;
    case Kind::bulk_wait_read: return 8 + 3 * op.number;
    default: return 9 + 3 * op.number;
  }
}

// The simulator's operations, in the order of their issue.
class Issued final : public sim::Observer {
 public:
  void async_issued(const sim::AsyncOp& op) override { ops.push_back(const_cast<sim::AsyncOp*>(&op)); }
  std::vector<sim::AsyncOp*> ops;
};

// The groups of one thread, another one each time.
std::string compare_groups(const World& world, const sim::Cluster& cluster, size_t i) {
  const auto w = static_cast<uint32_t>(i % kWarps), n = static_cast<uint32_t>(i % 11);
  const auto lane = static_cast<uint32_t>(i % 5 == 4 ? i % kLanes : i % 4);
  const bool bulk = i % 2 == 0;
  const Level level = i % 7 < 3 ? read : complete;
  if (!bulk && world.blocked(w)) return "";  // wait_all may keep what it waits for in any form
  const sim::Warp& warp = *cluster.warps[w];
  const bool want = world.over((bulk ? world.bulk : world.plain)[w][lane], n, level);
  const bool got =
      (bulk ? warp.bulk : warp.cp_async)
          .complete(1u << lane, n, level == read ? sim::Milestone::reads_done : sim::Milestone::signalled);
  if (want == got) return "";
  return tw::format(
      "warp {}, lane {}: all but {} {} groups are {}{} by the reference, not so in the simulator", w, lane, n,
      bulk ? "bulk" : "cp.async", want ? "" : "not ", level == read ? "read" : "complete");
}
std::string compare_warps(const World& world, const sim::Cluster& cluster) {
  for (uint32_t w = 0; w < kWarps; ++w) {
    if (cluster.warps[w]->runnable() == world.blocked(w))
      return tw::format("warp {} is {} by the reference, not so in the simulator", w,
                        world.blocked(w) ? "blocked" : "free");
  }
  return "";
}

std::string compare(const std::vector<Op>& ops) {
  World world, replay;
  std::vector<Op> asked;
  std::vector<std::vector<Record>> lists(kWarps);
  for (const Op& op : ops) {
    if (!world.meaningful(op)) continue;
    world.apply(op);
    asked.push_back(op);
    if (op.kind != Kind::advance) lists[op.warp].push_back({.code = handler_of(op), .lanes = op.lanes});
  }
  sim::GlobalMemory memory;
  const std::vector<uint32_t> zeros(4 * kLanes * kWarps, 0);
  const sim::testing::Buffer<uint32_t> data(memory, zeros, "data");
  Issued issued_ops;
  const Steps steps{
      .count = asked.size(),
      .warp = [&](size_t i) { return asked[i].kind == Kind::advance ? -1 : static_cast<int>(asked[i].warp); },
      .act =
          [&](sim::Cluster&, size_t i) {
            const auto to = asked[i].level == read ? sim::Milestone::reads_done : sim::Milestone::signalled;
            return sim::Action{sim::Action::Kind::advance, nullptr, 0, issued_ops.ops[asked[i].number], to};
          },
      .compare = [&](sim::Cluster& cluster, size_t i) -> std::string {
        replay.apply(asked[i]);
        if (replay.operations.size() != issued_ops.ops.size())
          return tw::format("{} asynchronous operations by the reference, {} in the simulator",
                            replay.operations.size(), issued_ops.ops.size());
        const std::string differs = compare_warps(replay, cluster);
        return differs.empty() ? compare_groups(replay, cluster, i) : differs;
      }};
  const Outcome outcome =
      drive(program(), {.warps = kWarps, .extra = data.address}, memory, lists, steps, &issued_ops);
  return outcome.difference + outcome.fault;
}

TEST(AsyncGroupsReference, AgreesOnAMillionOperations) {
  constexpr size_t kOperations = 1'000'000, kEpisode = 1000;
  for (uint64_t seed = 1; seed <= kOperations / kEpisode; ++seed) {
    const std::string report = disagreement<Op>(episode(seed, kEpisode), seed, compare, describe);
    ASSERT_TRUE(report.empty()) << report;
  }
}

}  // namespace
}  // namespace tw::machines
