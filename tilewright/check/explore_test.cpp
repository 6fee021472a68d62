#include "tilewright/check/explore.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <algorithm>
#include <functional>
#include <set>

#include "tilewright/check/check.h"
#include "tilewright/sim/testing.h"

// Small programs whose orders of synchronisation can be counted by hand, and faults that only an order shows
// which no schedule gives (B85 and so on: the collection that the checker is built against).
namespace tw::check {
namespace {

using namespace sim::testing;

struct Program {
  std::string body;
  uint32_t warps = 2, ctas = 1;
  std::string arch = "sm_90a";
};

// Every run starts from fresh memory; %g holds the address of 64 zeroed words of it.
CheckReport check(const Program& p, uint64_t runs, std::vector<std::string> schedules = {}) {
  const std::string frame = R"(
    .reg .b32 %t, %w, %a, %v, %n; .reg .pred %p, %q, %e, %w0, %w1, %w2, %w3; .reg .b64 %g, %s;
    .shared .align 8 .b64 bar; .shared .align 16 .b32 counter; .shared .align 16 .b32 data;
    ld.param.u64 %g, [memory]; cvta.to.global.u64 %g, %g;
    mov.u32 %t, %tid.x; shr.u32 %w, %t, 5;
    setp.eq.u32 %w0, %w, 0; setp.eq.u32 %w1, %w, 1; setp.eq.u32 %w2, %w, 2; setp.eq.u32 %w3, %w, 3;
    and.b32 %a, %t, 31; setp.eq.u32 %e, %a, 0;
    setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [counter], 0; @%p mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
)";
  sim::Program program =
      compile(module_text(".param .u64 memory", frame + p.body, p.arch), small_machine(p.arch));
  sim::Launch launch;
  launch.grid = {p.ctas, 1, 1};
  launch.cluster = {1, 1, 1};
  launch.block = {32 * p.warps, 1, 1};
  CheckOptions options;
  options.schedules = std::move(schedules);
  options.explore.runs = runs;
  return check::check(
      [&](const sim::RunOptions& sim) {
        sim::GlobalMemory memory;
        const Buffer<uint32_t> words(memory, std::vector<uint32_t>(64, 0), "words");
        launch.params = Params().add(words.address).bytes();
        program.run(launch, memory, sim);
      },
      options);
}

void expect_orders(const Program& p, uint64_t orders) {
  const CheckReport r = check(p, 1000);
  ASSERT_TRUE(r.exploration.has_value());
  EXPECT_EQ(r.exploration->orders, orders) << to_text(r);
  EXPECT_TRUE(r.exploration->complete()) << to_text(r);
  // Who meets whom by chance is a fault of its own; nothing else may be.
  for (const Fault& f : r.faults) EXPECT_EQ(f.kind, FaultKind::named_barrier) << to_text(r);
}

bool has(const CheckReport& r, FaultKind kind, std::string_view part) {
  return std::any_of(r.faults.begin(), r.faults.end(), [&](const Fault& f) {
    return f.kind == kind && f.message.find(part) != std::string::npos;
  });
}

// The schedules do not show it; the exploration does.
void expect_only_explored(const Program& p, FaultKind kind, std::string_view part) {
  const CheckReport before = check(p, 0, {"eager", "late", "random:1"});
  EXPECT_FALSE(has(before, kind, part)) << to_text(before);
  const CheckReport r = check(p, 100);
  EXPECT_TRUE(has(r, kind, part)) << to_text(r);
  EXPECT_TRUE(r.exploration->complete()) << to_text(r);
}

// Longer than any slice of a schedule that warps take turns in.
std::string delay(std::string_view name) {
  return tw::format("mov.u32 %n, 0;\n{0}: add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 3000; @%q bra {0};\n", name);
}

// Atomics whose results steer, `counts[w]` of them by warp w.
std::string atomics(const std::vector<int>& counts) {
  std::string body;
  for (size_t w = 0; w < counts.size(); ++w)
    for (int i = 0; i < counts[w]; ++i) {
      body += tw::format("@!%w{0} bra past{0}_{1};\n@%e atom.shared.add.u32 %v, [counter], 1;\n", w, i);
      body += tw::format("setp.eq.u32 %q, %v, 77; @%q trap;\npast{0}_{1}:\n", w, i);
    }
  return body + "ret;";
}

TEST(Explore, CountsTheOrdersOfAtomicsThatSteer) {
  expect_orders({atomics({1, 1})}, 2);
  expect_orders({atomics({1, 1, 1}), 3}, 6);
  expect_orders({atomics({2, 2})}, 6);         // 4! / (2! 2!)
  expect_orders({atomics({3, 2})}, 10);        // 5! / (3! 2!)
  expect_orders({atomics({2, 1, 1}), 3}, 12);  // 4! / 2!
  expect_orders({atomics({1, 1, 1, 1}), 4}, 24);
}

// One of the operations below, on one of two words.
struct Operation {
  enum Kind { ticket, add, read } kind;
  int word;
};

// Whether two operations of different warps show in which order they came.
bool conflict(const Operation& a, const Operation& b) {
  if (a.word != b.word) return false;
  return a.kind == Operation::ticket || b.kind == Operation::ticket || a.kind != b.kind;
}

// All interleavings, told apart by the order of the operations that conflict.
size_t count_orders(const std::vector<std::vector<Operation>>& warps) {
  std::vector<std::pair<size_t, size_t>> done;
  std::set<std::vector<std::pair<size_t, size_t>>> orders;
  std::vector<size_t> at(warps.size(), 0);
  const std::function<void()> go_on = [&] {
    bool any = false;
    for (size_t w = 0; w < warps.size(); ++w) {
      if (at[w] == warps[w].size()) continue;
      any = true;
      done.emplace_back(w, at[w]++);
      go_on();
      done.pop_back();
      --at[w];
    }
    if (any) return;
    std::vector<std::pair<size_t, size_t>> order;  // numbers of conflicting operations, the earlier first
    const auto number = [](const auto& o) { return o.first * 100 + o.second; };
    for (size_t i = 0; i < done.size(); ++i)
      for (size_t j = i + 1; j < done.size(); ++j)
        if (done[i].first != done[j].first &&
            conflict(warps[done[i].first][done[i].second], warps[done[j].first][done[j].second]))
          order.emplace_back(number(done[i]), number(done[j]));
    std::sort(order.begin(), order.end());
    orders.insert(order);
  };
  go_on();
  return orders.size();
}

RC_GTEST_PROP(Explore, FindsEveryOrderOnce, ()) {
  const auto operation =
      rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange(0, 2)), [](auto p) {
        return Operation{static_cast<Operation::Kind>(p.first), p.second};
      });
  const size_t n = *rc::gen::inRange<size_t>(2, 4);
  std::vector<std::vector<Operation>> warps(n);
  std::string body;
  for (size_t w = 0; w < n; ++w) {
    warps[w] =
        *rc::gen::container<std::vector<Operation>>(*rc::gen::inRange<size_t>(0, n == 2 ? 4 : 3), operation);
    for (size_t i = 0; i < warps[w].size(); ++i) {
      const Operation& o = warps[w][i];
      const std::string at = tw::format("[%g+{}]", 4 * o.word);
      body += tw::format("@!%w{0} bra past{0}_{1};\n", w, i);
      body += o.kind == Operation::ticket
                  ? "@%e atom.global.add.u32 %v, " + at + ", 1; setp.eq.u32 %q, %v, 77; @%q trap;\n"
              : o.kind == Operation::add ? "@%e red.global.add.u32 " + at + ", 1;\n"
                                         : "@%e ld.relaxed.gpu.global.u32 %v, " + at + ";\n";
      body += tw::format("past{0}_{1}:\n", w, i);
    }
  }
  const CheckReport r = check({body + "ret;", static_cast<uint32_t>(n)}, 5000);
  RC_ASSERT(r.exploration->complete());
  RC_ASSERT(r.exploration->orders == count_orders(warps));
  RC_ASSERT(r.exploration->runs == r.exploration->orders);
}

TEST(Explore, WhatCommutesHasOneOrder) {
  // Arrivals of one phase; additions whose results nobody uses.
  expect_orders({R"(
    @%p mbarrier.inval.shared.b64 [bar]; @%p mbarrier.init.shared.b64 [bar], 4; bar.sync 0;
    @%e mbarrier.arrive.shared.b64 %s, [bar]; @%e red.shared.add.u32 [counter], 1;
wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra wait;
    ret;)",
                 4},
                1);
  // A ring of one stage, four rounds: what fills and what frees it follow each other.
  expect_orders({R"(
    .shared .align 8 .b64 full; .shared .align 8 .b64 empty; .reg .b32 %i, %phase;
    @%p mbarrier.init.shared.b64 [full], 1; @%p mbarrier.init.shared.b64 [empty], 1; bar.sync 0;
    mov.u32 %i, 0;
    @%w1 bra take;
fill: xor.b32 %phase, %i, 1; and.b32 %phase, %phase, 1;
free: mbarrier.try_wait.parity.shared.b64 %q, [empty], %phase; @!%q bra free;
    @%e st.shared.u32 [data], %i; @%e mbarrier.arrive.shared.b64 %s, [full];
    add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 4; @%q bra fill; ret;
take: and.b32 %phase, %i, 1;
come: mbarrier.try_wait.parity.shared.b64 %q, [full], %phase; @!%q bra come;
    ld.shared.u32 %v, [data]; bar.warp.sync -1; @%e mbarrier.arrive.shared.b64 %s, [empty];
    add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 4; @%q bra take; ret;)"},
                1);
}

// A reader that polls a flag only waits for it, however often it has looked.
TEST(Explore, PollingHasOneOrder) {
  expect_orders({R"(
    @%w1 bra reader;
    @%e st.release.gpu.global.u32 [%g], 1; ret;
reader: ld.acquire.gpu.global.u32 %v, [%g]; setp.eq.u32 %q, %v, 0; @%q bra reader; ret;)"},
                1);
  expect_orders({R"(
    @%w0 bra reader;
    @%e st.release.gpu.global.u32 [%g], 1; ret;
reader: ld.acquire.gpu.global.u32 %v, [%g]; setp.eq.u32 %q, %v, 0; @%q bra reader; ret;)"},
                1);
}

// Who takes a lock first, second, third; not how often the others try.
TEST(Explore, CountsWhoTakesALock) {
  const std::string body = R"(
    @!%e ret;
lock: atom.acquire.gpu.global.cas.b32 %v, [%g], 0, 1; setp.ne.u32 %q, %v, 0; @%q bra lock;
    st.release.gpu.global.u32 [%g], 0; ret;)";
  expect_orders({body, 2}, 2);
  expect_orders({body, 3}, 6);
}

// Four arrivals at a barrier of two: which two are the first generation.
TEST(Explore, CountsWhoMeetsWhom) { expect_orders({"bar.arrive 1, 64; ret;", 4}, 6); }

// A wait that looks once, and a completion: before or after.
TEST(Explore, AWaitThatGivesUpHasTwoOrders) {
  expect_orders({R"(
    @%w1 bra look;
    @%e mbarrier.arrive.shared.b64 %s, [bar]; ret;
look: mbarrier.test_wait.parity.shared.b64 %q, [bar], 0; @%q bra done; nanosleep.u32 20;
done: ret;)"},
                2);
}

TEST(Explore, TwoBlocksWithATicket) {
  const std::string body = R"(
    @%e atom.global.add.u32 %v, [%g], 1; setp.eq.u32 %q, %v, 77; @%q trap; ret;)";
  expect_orders({body, 1, 2}, 2);
  expect_orders({body, 1, 3}, 6);
}

// ---- faults ----

TEST(Explore, TheLoserOfARaceSkipsTheWait) {
  expect_only_explored({R"(
    @%w1 bra second;
    @%e st.shared.u32 [data], 1;
    @%e atom.shared.add.u32 %v, [counter], 1; @%e mbarrier.arrive.shared.b64 %s, [bar]; ret;
second:)" + delay("spin") +
                        R"(
    @!%e ret;
    atom.shared.add.u32 %v, [counter], 1; setp.eq.u32 %q, %v, 0; @%q bra read;
wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra wait;
    ret;
read: st.shared.u32 [data], 2; ret;)"},
                       FaultKind::race, "data");
}

// Who draws the first ticket has to arrive; only one of the two does.
TEST(Explore, OneOrderOfTicketsDeadlocks) {
  expect_only_explored({R"(
    @%w1 bra second;
    @!%e ret;
    atom.shared.add.u32 %v, [counter], 1; setp.eq.u32 %q, %v, 0; @%q mbarrier.arrive.shared.b64 %s, [bar]; ret;
second:)" + delay("spin") +
                        R"(
    @!%e ret;
    atom.shared.add.u32 %v, [counter], 1;
wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra wait;
    ret;)"},
                       FaultKind::deadlock, "mbarrier bar");
}

// The same between two blocks, whose waits are loops on a word of global memory.
TEST(Explore, OneOrderOfBlocksNeverEnds) {
  expect_only_explored({R"(
    .reg .b32 %block; mov.u32 %block, %ctaid.x; setp.eq.u32 %q, %block, 1; @%q bra second;
    @!%e ret;
    atom.global.add.u32 %v, [%g], 1; setp.eq.u32 %q, %v, 0; @%q st.release.gpu.global.u32 [%g+4], 1; ret;
second:)" + delay("spin") +
                            R"(
    @!%e ret;
    atom.global.add.u32 %v, [%g], 1;
wait: ld.acquire.gpu.global.u32 %v, [%g+4]; setp.eq.u32 %q, %v, 0; @%q bra wait;
    ret;)",
                        1, 2},
                       FaultKind::deadlock, "nothing in the cluster can move");
}

// B10: the first to leave a barrier of two blocks resets its counter, which the other may not have seen.
TEST(Explore, B10ACounterIsResetByTheFirstToLeave) {
  expect_only_explored({R"(
    .reg .b32 %block; mov.u32 %block, %ctaid.x;
    @!%e ret;
    red.release.gpu.global.add.u32 [%g], 1;
wait: ld.acquire.gpu.global.u32 %v, [%g]; setp.lt.u32 %q, %v, 2; @%q bra wait;
    setp.eq.u32 %q, %block, 0; @%q st.relaxed.gpu.global.u32 [%g], 0; ret;)",
                        1, 2},
                       FaultKind::deadlock, "ld.acquire.gpu.global.u32");
}

// B85: two warps arrive once a tile, the third waits once a tile; the arrivals of the next tile may take the
// place of this one's. Of the five arrivals without the last three may be the first generation: one of each,
// or both of one warp with one of the two others, but not the waiter twice.
TEST(Explore, B85ANamedBarrierIsCompletedByTheNextTile) {
  const Program p{R"(
    .shared .align 16 .b32 tile[2]; .reg .b32 %x;
    @%w0 bra consumer;
    shl.b32 %a, %w, 2; mov.u32 %x, tile; add.u32 %a, %a, %x; sub.u32 %a, %a, 4;
    @%e st.shared.u32 [%a], 1; bar.arrive 1, 96;)" +
                      delay("spin") + R"(
    bar.arrive 1, 96; ret;
consumer:
    bar.sync 1, 96; ld.shared.u32 %v, [tile]; ld.shared.u32 %v, [tile+4];
    bar.sync 1, 96; ret;)",
                  3};
  expect_only_explored(p, FaultKind::undefined, "nothing has written: tile");
  expect_only_explored(p, FaultKind::deadlock, "barrier 1: 64 of 96 threads have arrived");
  EXPECT_EQ(check(p, 100).exploration->orders, 5u);
}

TEST(Explore, TensorMemoryIsHeldWhileWaiting) {
  expect_only_explored({R"(
    .shared .align 4 .b32 place[2]; .reg .b32 %x;
    @%w1 bra second;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;
    ld.shared.u32 %x, [place];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x, 512;
    @%e mbarrier.arrive.shared.b64 %s, [bar]; ret;
second:)" + delay("spin") +
                            R"(
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place+4], 512;
    ld.shared.u32 %x, [place+4];
wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra wait;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x, 512; ret;)",
                        2, 1, "sm_100a"},
                       FaultKind::deadlock, "512 free columns");
}

TEST(Explore, ABarrierIsUsedBeforeItIsInitialised) {
  expect_only_explored({R"(
    .shared .align 8 .b64 late;
    @%p mbarrier.init.shared.b64 [late], 1; @%w0 bra done;)" +
                        delay("spin") + R"(
    @%e mbarrier.arrive.shared.b64 %s, [late];
done: ret;)"},
                       FaultKind::undefined, "no mbarrier is initialised at late");
}

// A wait for the phase before the first passes only as long as the first is not complete.
TEST(Explore, AFirstWaitThatComesTooLate) {
  expect_only_explored({R"(
    @%w1 bra second;
wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 1; @!%q bra wait; ret;
second:)" + delay("spin") +
                        R"(
    @%e mbarrier.arrive.shared.b64 %s, [bar]; ret;)"},
                       FaultKind::deadlock, "mbarrier bar, parity 1");
}

// try_wait may give up; who does not look at its answer goes on too early.
TEST(Explore, AWaitWithoutALoop) {
  expect_only_explored({R"(
    @%w1 bra reader;
    @%e st.shared.u32 [data], 1; @%e mbarrier.arrive.shared.b64 %s, [bar]; ret;
reader: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
    @%e st.shared.u32 [data], 2; ret;)"},
                       FaultKind::race, "data");
}

// ---- budgets and what is left ----

TEST(Explore, SaysWhatIsLeft) {
  const CheckReport r = check({atomics({2, 2})}, 3);
  ASSERT_TRUE(r.exploration.has_value());
  EXPECT_EQ(r.exploration->runs, 3u);
  EXPECT_EQ(r.exploration->orders, 3u);
  EXPECT_GT(r.exploration->left, 0u);
  ASSERT_FALSE(r.exploration->not_explored.empty());
  EXPECT_NE(r.exploration->not_explored[0].find("counter: atom.shared.add.u32"), std::string::npos)
      << to_text(r);
  EXPECT_EQ(r.verdict, Verdict::clean);  // of what ran
  EXPECT_NE(to_text(r).find("explored 3 orders of synchronisation in 3 runs; not explored: "),
            std::string::npos)
      << to_text(r);
}

TEST(Explore, IsOffUnlessAskedFor) { EXPECT_FALSE(check({atomics({1, 1})}, 0).exploration.has_value()); }

TEST(Explore, SaysWhenNoOtherOrderMatters) {
  const CheckReport r = check({"bar.sync 0; ret;"}, 10);
  EXPECT_EQ(r.exploration->runs, 1u);
  EXPECT_NE(to_text(r).find("no other order of synchronisation can change the outcome"), std::string::npos);
}

}  // namespace
}  // namespace tw::check
