#include "tilewright/check/checker.h"
#include "tilewright/check/check.h"

#include <gtest/gtest.h>

#include "tilewright/sim/testing.h"

// Small programs with one hand-off each: right, and with a part of it missing. The faults are those of public
// reports (B08 and so on: the collection that the checker is built against).
namespace tw::check {
namespace {

using namespace sim::testing;

// What the checker says of a CTA of two warps (or `threads`) under every schedule.
CheckReport check(std::string_view body, uint32_t threads = 64, std::string_view params = "",
                  std::vector<std::byte> arguments = {}, sim::GlobalMemory* memory = nullptr) {
  sim::Program program = compile(module_text(params, body));
  sim::GlobalMemory own;
  sim::Launch launch;
  launch.grid = launch.cluster = {1, 1, 1};
  launch.block = {threads, 1, 1};
  launch.params = arguments;
  CheckOptions options;
  options.schedules = {"eager", "late", "random:1", "random:2"};
  return check::check([&](const sim::RunOptions& sim) { program.run(launch, memory ? *memory : own, sim); },
                      options);
}

void expect_clean(const CheckReport& r) { EXPECT_EQ(r.verdict, Verdict::clean) << to_text(r); }
void expect_fault(const CheckReport& r, FaultKind kind, std::string_view part) {
  ASSERT_EQ(r.faults.size(), 1u) << to_text(r);
  EXPECT_EQ(r.faults[0].kind, kind) << to_text(r);
  EXPECT_NE(r.faults[0].message.find(part), std::string::npos) << r.faults[0].message;
}

// Warp 0 writes 128 bytes, warp 1 reads them; `between` hands over.
std::string exchange(std::string_view between) {
  return tw::format(R"(
    .shared .align 16 .b32 data[32]; .shared .align 8 .b64 bar;
    .reg .b32 %t, %w, %l, %a, %v; .reg .pred %p, %q, %e; .reg .b64 %s;
    mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %l, %t, 31; shl.b32 %a, %l, 2;
    mov.u32 %v, data; add.u32 %a, %a, %v;
    setp.eq.u32 %p, %w, 0; setp.eq.u32 %e, %t, 0;
    @%e mbarrier.init.shared.b64 [bar], 1;
    bar.sync 1, 64;
    @%p st.shared.b32 [%a], %t;
    {}
    @!%p ld.shared.b32 %v, [%a];
    ret;)",
                    between);
}

TEST(Checker, ABarrierHandsOver) { expect_clean(check(exchange("bar.sync 0;"))); }

TEST(Checker, NothingHandsOver) {
  const CheckReport r = check(exchange(""));
  ASSERT_FALSE(r.faults.empty());
  // Under the schedule that runs warp 1 first it reads what nothing has written; else it is a race.
  bool race = false;
  for (const Fault& f : r.faults) race |= f.kind == FaultKind::race;
  EXPECT_TRUE(race) << to_text(r);
}

constexpr const char* kWait = R"(
wait: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
    @!%q bra wait;)";

// B08: an elected lane arrives for the writes of its 31 neighbours.
TEST(Checker, AnArriveGivesOnlyItsOwnLanesWrites) {
  const std::string arrive = "@%e mbarrier.arrive.shared.b64 %s, [bar];";
  expect_clean(check(exchange("bar.warp.sync -1;\n" + arrive + kWait)));
  expect_fault(check(exchange(arrive + kWait)), FaultKind::race, "ld.shared.b32 reads it");
}

// Where a barrier is told of the earlier access and nobody waits for it, the report names that barrier.
TEST(Checker, TheMissedHandOverIsNamed) {
  const CheckReport r = check(exchange("bar.warp.sync -1; @%e mbarrier.arrive.shared.b64 %s, [bar];"));
  bool named = false;
  for (const Fault& f : r.faults)
    for (const Note& n : f.notes)
      named |= n.message ==
               "bar is signalled after the earlier access (phase 0), but CTA (0, 0, 0), warp 1 has not "
               "waited for that";
  EXPECT_TRUE(named) << to_text(r);
}

// B26, B31: threads write, the copy engine reads.
std::string store(std::string_view fence, std::string_view wait) {
  return tw::format(R"(
    .shared .align 128 .b8 tile[256];
    .reg .b32 %t, %a, %v; .reg .pred %e; .reg .b64 %g;
    ld.param.u64 %g, [out]; cvta.to.global.u64 %g, %g;
    mov.u32 %t, %tid.x; shl.b32 %a, %t, 2; mov.u32 %v, tile; add.u32 %a, %a, %v;
    setp.eq.u32 %e, %t, 0;
    st.shared.b32 [%a], %t;
    {}
    bar.sync 0;
    @%e cp.async.bulk.global.shared::cta.bulk_group [%g], [tile], 256;
    @%e cp.async.bulk.commit_group;
    {}
    ret;)",
                    fence, wait);
}
CheckReport check_store(std::string_view fence, std::string_view wait) {
  sim::GlobalMemory memory;
  const uint64_t out = memory.allocate(256, "out");
  return check(store(fence, wait), 64, ".param .u64 out", Params().add(out).bytes(), &memory);
}

TEST(Checker, ACopyOfWhatThreadsWroteNeedsAProxyFence) {
  const char* wait = "@%e cp.async.bulk.wait_group.read 0;";
  expect_clean(check_store("fence.proxy.async.shared::cta;", wait));
  expect_fault(check_store("", wait), FaultKind::proxy_fence, "cp.async.bulk");
}

TEST(Checker, ACopyIsOverBeforeItsThreadEnds) {
  expect_fault(check_store("fence.proxy.async.shared::cta;", ""), FaultKind::exit, "may still read it");
}

TEST(Checker, AStagingBufferIsReusedAfterItsWait) {
  const char* again = "st.shared.b32 [%a], %t; @%e cp.async.bulk.wait_group.read 0;";
  const char* waited = "@%e cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.b32 [%a], %t;";
  const char* alone = "@%e cp.async.bulk.wait_group.read 0; st.shared.b32 [%a], %t;";
  expect_clean(check_store("fence.proxy.async.shared::cta;", waited));
  expect_fault(check_store("fence.proxy.async.shared::cta;", again), FaultKind::race, "tile: ");
  expect_fault(check_store("fence.proxy.async.shared::cta;", alone), FaultKind::race, "tile: ");
}

// B26, "barrier initialisation lacks its fence": a copy completes on a barrier.
std::string load(std::string_view fence, std::string_view wait, std::string_view after) {
  return tw::format(R"(
    .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
    .reg .b32 %t, %a, %v; .reg .pred %e, %q; .reg .b64 %g;
    ld.param.u64 %g, [in]; cvta.to.global.u64 %g, %g;
    mov.u32 %t, %tid.x; shl.b32 %a, %t, 2; mov.u32 %v, tile; add.u32 %a, %a, %v;
    setp.eq.u32 %e, %t, 0;
    @%e mbarrier.init.shared.b64 [bar], 1;
    {}
    bar.sync 0;
    @%e mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    @%e cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%g], 256, [bar];
    {}
    {}
    ret;)",
                    fence, wait, after);
}
CheckReport check_load(std::string_view fence, std::string_view wait, std::string_view after) {
  sim::GlobalMemory memory;
  const uint64_t in = memory.allocate(256, "in");
  const std::vector<std::byte> zeros(256);
  memory.write(in, zeros);
  return check(load(fence, wait, after), 64, ".param .u64 in", Params().add(in).bytes(), &memory);
}

TEST(Checker, ACopyIsWaitedFor) {
  const char* fence = "fence.mbarrier_init.release.cluster;";
  expect_clean(check_load(fence, kWait, "ld.shared.b32 %v, [%a];"));
  expect_fault(check_load("", kWait, "ld.shared.b32 %v, [%a];"), FaultKind::init_fence,
               "initialised without a fence");
  // One lane waits; the others read.
  const std::string one = "@!%e bra past;" + std::string(kWait) + "\npast:";
  const CheckReport r = check_load(fence, one, "ld.shared.b32 %v, [%a];");
  ASSERT_FALSE(r.faults.empty());
  EXPECT_TRUE(r.faults[0].kind == FaultKind::race || r.faults[0].kind == FaultKind::undefined) << to_text(r);
}

// B11, B13: warp 1 waits and nobody learns whether it has.
TEST(Checker, AWaiterThatNobodyWaitsForIsLapped) {
  const auto twice = [](std::string_view between) {
    return exchange(std::string("@%e mbarrier.arrive.shared.b64 %s, [bar];") + kWait + "\n" +
                    std::string(between) + "\n@%e mbarrier.arrive.shared.b64 %s, [bar];\n" + R"(
again: mbarrier.try_wait.parity.shared.b64 %q, [bar], 1;
    @!%q bra again; bar.sync 0;)");
  };
  expect_clean(check(twice("bar.sync 0;")));
  const CheckReport r = check(twice(""));
  bool lapped = false;
  for (const Fault& f : r.faults) lapped |= f.kind == FaultKind::lapping || f.kind == FaultKind::deadlock;
  EXPECT_TRUE(lapped) << to_text(r);
}

// B43: what is computed from the address of one variable lands in another.
TEST(Checker, AnAccessStaysInTheVariableOfItsAddress) {
  const auto body = [](std::string_view address) {
    return tw::format(R"(
    .shared .align 16 .b8 first[128]; .shared .align 16 .b8 second[128];
    .reg .b32 %t, %a, %b, %c; .reg .pred %p;
    mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 16;
    {}
    st.shared.b32 [%a], %t;
    ret;)",
                      address);
  };
  expect_clean(check(body("mov.u32 %a, first; mad.lo.u32 %a, %t, 4, %a;"), 32));
  expect_fault(check(body("mov.u32 %a, first; mad.lo.u32 %a, %t, 8, %a;"), 32), FaultKind::undefined,
               "st.shared.b32 writes 4 bytes at offset 128 of first, which has 128: that is second");
  expect_fault(check(body("mov.u32 %b, second; shl.b32 %c, %t, 2; sub.u32 %a, %b, %c;"), 32),
               FaultKind::undefined, "at offset -4 of second, which has 128: that is first + 124 bytes");
  // Registers that hold addresses in both, and distances between the two, say nothing.
  expect_clean(check(body("mov.u32 %a, first; @%p mov.u32 %a, second; mad.lo.u32 %a, %t, 4, %a;"), 16));
  expect_clean(check(body(R"(mov.u32 %a, first; mov.u32 %b, second; sub.u32 %c, %b, %a;
    mad.lo.u32 %a, %t, 4, %a; add.u32 %a, %a, %c;)"),
                     32));
}

// B35 and its like: bulk groups are those of the thread that committed them.
TEST(Checker, BulkGroupsAreEachThreads) {
  const char* fence = "fence.proxy.async.shared::cta;";
  expect_clean(check_store(fence, "cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.b32 [%a], %t;"));
  const char* other = "setp.eq.u32 %e, %t, 1; @%e cp.async.bulk.wait_group.read 0;";
  expect_fault(check_store(fence, other), FaultKind::exit, "may still read it");
}

TEST(Checker, WhatIsNotModelledIsNeverClean) {
  const CheckReport r = check("cp.async.wait_all; ret;");
  expect_clean(r);
  Checker checker;
  EXPECT_TRUE(checker.take(Error(ErrorKind::not_modelled, {}, "mma.sp")));
  EXPECT_EQ(checker.report().verdict, Verdict::incomplete);
  EXPECT_FALSE(checker.take(Error(ErrorKind::user, {}, "a wrong launch")));
}

TEST(Checker, ADeadlockIsAFault) {
  const CheckReport r = check(exchange(kWait));
  ASSERT_FALSE(r.faults.empty());
  EXPECT_EQ(r.faults[0].kind, FaultKind::deadlock) << to_text(r);
}

}  // namespace
}  // namespace tw::check
