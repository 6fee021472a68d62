#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/sim/mbarrier.h"
#include "tilewright/sim/testing.h"

namespace tw::sim::testing {
namespace {

constexpr const char* kRegs =
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<48>; .reg .b64 %rd<16>; .reg .f32 %f<16>;\n";
const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:2", "random:77"};

struct Case {
  Dim3 grid{}, block{32, 1, 1}, cluster{};
  std::string schedule = "eager";
  int threads = 1;
  size_t words = 32;
  std::vector<uint32_t> input{};
  uint32_t sms = 4;
  std::string arch = "sm_90a";
};

std::vector<uint32_t> run(const Case& s, std::string_view body) {
  Program program =
      compile(module_text(".param .u64 out, .param .u64 in",
                          std::string(kRegs) + "ld.param.u64 %rd0, [out]; ld.param.u64 %rd10, [in];\n" +
                              std::string(body),
                          s.arch),
              small_machine(s.arch, s.sms));
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(s.words, 0), "out"),
      in(memory, s.input.empty() ? std::vector<uint32_t>{0} : s.input, "in");
  RunOptions options;
  options.schedule = parse_schedule(s.schedule);
  options.host_threads = s.threads;
  options.instruction_limit = 20'000'000;
  program.run({s.grid, s.block, s.cluster, 0, Params().add(out.address).add(in.address).bytes()}, memory,
              options);
  return out.get();
}

std::string fault_of(const Case& s, std::string_view body) {
  try {
    run(s, body);
  } catch (const Error& e) {
    return e.message();
  }
  return "no fault";
}

constexpr const char* kStore =
    "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; exit;";

// ---- griddepcontrol ----

// Launches run one after the other: the wait passes at once, in whichever lanes execute it, and a trigger
// starts nothing early, however often it is repeated.
TEST(Griddepcontrol, FindsTheGridBeforeComplete) {
  const Program program = compile(module_text(".param .u64 out", std::string(kRegs) + R"(
      ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
      griddepcontrol.launch_dependents;
      and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0;
      @%p0 griddepcontrol.wait;
      @!%p0 griddepcontrol.wait;
      ld.global.u32 %r2, [%rd1]; griddepcontrol.launch_dependents; griddepcontrol.launch_dependents;
      mad.lo.u32 %r2, %r2, 2, %r0; st.global.u32 [%rd1], %r2; exit;)"));
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(64, 1), "out");
  Launch launch{{}, {64, 1, 1}, {}, 0, Params().add(out.address).bytes()};
  for (const bool dependent : {false, true, true}) {
    if (dependent) launch.grid_before = GridBefore{{{out.address, out.address + 256, true}}};
    program.run(launch, memory);
  }
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out.get()[i], ((1 * 2 + i) * 2 + i) * 2 + i) << i;
}

// ---- mbarrier ----

TEST(MBarrierObject, PhasesCountsAndLimits) {
  MBarrier b(2);
  EXPECT_TRUE(b.passes_parity(1));  // a fresh barrier: the phase before the first counts as complete
  EXPECT_FALSE(b.passes_parity(0));
  EXPECT_STREQ(b.arrive(1), "");
  EXPECT_STREQ(b.expect_tx(64), "");
  EXPECT_STREQ(b.arrive(1), "");
  EXPECT_EQ(b.phase(), 0u);  // bytes are outstanding
  EXPECT_STREQ(b.complete_tx(64), "");
  EXPECT_EQ(b.phase(), 1u);
  EXPECT_EQ(b.pending(), 2u);
  EXPECT_TRUE(b.passes_parity(0));
  EXPECT_STREQ(b.complete_tx(16), "");  // completion may come before its expectation
  EXPECT_EQ(b.tx(), -16);
  EXPECT_STREQ(b.arrive_drop(1), "");
  EXPECT_STRNE(b.arrive(2), "");
  EXPECT_STREQ(b.arrive(1), "");
  EXPECT_STREQ(b.expect_tx(16), "");
  EXPECT_EQ(b.phase(), 2u);
  EXPECT_EQ(b.expected(), 1u);
  EXPECT_STRNE(b.arrive_drop(1), "");
  EXPECT_STRNE(b.expect_tx(1 << 20), "");
  EXPECT_STRNE(b.arrive_no_complete(1), "");
}

// "Contents of the mbarrier object" limits the tx-count. More bytes at once than the limit fault too,
// whatever the count: recorded on an H200 (conformance cases barrier/large_tx and barrier/large_complete_tx).
TEST(MBarrierObject, BytesAreLimitedAndSoIsTheCountTheyLeadTo) {
  constexpr int64_t limit = MBarrier::kMaxCount;
  MBarrier b(1);
  EXPECT_STREQ(b.complete_tx(limit), "");
  EXPECT_STRNE(b.expect_tx(limit + 1), "");
  EXPECT_EQ(b.tx(), -limit);
  EXPECT_STRNE(b.complete_tx(1), "");
  EXPECT_STREQ(b.expect_tx(limit), "");
  EXPECT_EQ(b.tx(), 0);
  EXPECT_STRNE(b.complete_tx(limit + 1), "");
}

// "mbarrier.arrive_drop" lowers the expected count, which "Contents of the mbarrier object" keeps at 1 or
// more, even while cp.async.mbarrier.arrive has raised the pending count above it.
TEST(MBarrierObject, DropsAreLimitedByTheExpectedCount) {
  MBarrier b(2);
  EXPECT_STREQ(b.increase_pending(3), "");
  EXPECT_NE(std::string(b.arrive_drop(3)).find("expected count must stay at least 1"), std::string::npos);
}

TEST(MBarrier, RingBetweenTwoWarps) {
  for (const auto& schedule : kSchedules) {
    const auto got = run({.block = {64, 1, 1}, .schedule = schedule}, std::string(R"(
      .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2]; .shared .align 4 .b32 buf[64];
      mov.u32 %r10, %tid.x; and.b32 %r0, %r10, 31; mov.u32 %r1, 0; mov.u32 %r2, 0;
      mov.u32 %r3, full; mov.u32 %r4, empty; mov.u32 %r5, buf; shl.b32 %r6, %r0, 2; add.u32 %r5, %r5, %r6;
      setp.ne.u32 %p0, %r10, 0; @%p0 bra INITED;
      mbarrier.init.shared.b64 [%r3], 32; mbarrier.init.shared.b64 [%r3+8], 32; mbarrier.init.shared.b64 [%r4], 32; mbarrier.init.shared.b64 [%r4+8], 32;
      fence.mbarrier_init.release.cluster;
      INITED: bar.sync 0;
      setp.ge.u32 %p1, %r10, 32; @%p1 bra CONSUMER;
      PRODUCER: and.b32 %r7, %r2, 1; shl.b32 %r8, %r7, 3; shl.b32 %r9, %r7, 7; shr.u32 %r11, %r2, 1; and.b32 %r11, %r11, 1; xor.b32 %r11, %r11, 1;
      add.u32 %r12, %r4, %r8; add.u32 %r13, %r3, %r8; add.u32 %r14, %r5, %r9;
      WAIT1: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r12], %r11; @!%p2 bra WAIT1;
      add.u32 %r15, %r2, %r0; st.shared.u32 [%r14], %r15;
      mbarrier.arrive.shared::cta.b64 _, [%r13];
      add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 20; @%p3 bra PRODUCER; exit;
      CONSUMER: and.b32 %r7, %r2, 1; shl.b32 %r8, %r7, 3; shl.b32 %r9, %r7, 7; shr.u32 %r11, %r2, 1; and.b32 %r11, %r11, 1;
      add.u32 %r12, %r4, %r8; add.u32 %r13, %r3, %r8; add.u32 %r14, %r5, %r9;
      WAIT2: mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r13], %r11; @!%p2 bra WAIT2;
      ld.shared.u32 %r15, [%r14]; add.u32 %r1, %r1, %r15;
      mbarrier.arrive.shared::cta.b64 _, [%r12];
      add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 20; @%p3 bra CONSUMER;)") +
                                                                          kStore);
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], 190 + 20 * i) << schedule;
  }
}

// "bar, barrier": when the barrier completes, the result goes to all who wait, and the barrier can be reused
// at once: the second reduction must not reach the warp that still waits for the first.
TEST(NamedBarrier, AReductionsResultOutlivesTheBarriersNextUse) {
  for (const auto& schedule : kSchedules) {
    const auto got =
        run({.block = {64, 1, 1}, .schedule = schedule, .words = 64},
            std::string("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 64; setp.ge.u32 %p1, %r0, 64;"
                        "bar.red.popc.u32 %r1, 1, 64, %p0; bar.red.popc.u32 %r2, 1, 32, %p1;"
                        "mad.lo.u32 %r1, %r2, 1000, %r1;") +
                kStore);
    EXPECT_EQ(got, std::vector<uint32_t>(64, 64)) << schedule;
  }
}

// "barrier{.cta}.red should not be intermixed with barrier{.cta}.sync or barrier{.cta}.arrive using the same
// active barrier", whichever comes first.
TEST(NamedBarrier, ReductionsDoNotMixWithOtherOperations) {
  for (const auto& schedule : kSchedules) {
    EXPECT_NE(fault_of({.block = {64, 1, 1}, .schedule = schedule},
                       "mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32; @%p0 bra REDUCE; bar.sync 1, 64; exit;"
                       "REDUCE: bar.red.popc.u32 %r1, 1, 64, %p0; exit;")
                  .find("mixes .red"),
              std::string::npos)
        << schedule;
  }
}

constexpr const char* kOneBarrier =
    ".shared .align 8 .b64 bar; mov.u32 %r2, bar; mov.u32 %r0, %tid.x; mbarrier.init.shared.b64 [%r2], 1;";

TEST(MBarrier, StatesAndCounts) {
  const auto got = run({.block = {1, 1, 1}}, std::string(R"(
      .shared .align 8 .b64 bar; mov.u32 %r2, bar; mov.u32 %r0, %tid.x; mbarrier.init.shared.b64 [%r2], 5;
      mbarrier.arrive.shared.b64 %rd3, [%r2], 2; mbarrier.pending_count.b64 %r3, %rd3;
      mbarrier.arrive.noComplete.shared.b64 %rd4, [%r2], 1; mbarrier.pending_count.b64 %r4, %rd4;
      mbarrier.test_wait.shared.b64 %p0, [%r2], %rd3;
      mbarrier.arrive_drop.shared.b64 %rd5, [%r2]; mbarrier.arrive.shared.b64 %rd6, [%r2];
      mbarrier.test_wait.shared.b64 %p1, [%r2], %rd3;
      mbarrier.arrive.shared.b64 %rd7, [%r2]; mbarrier.pending_count.b64 %r5, %rd7;
      selp.b32 %r6, 1000, 0, %p0; selp.b32 %r7, 2000, 0, %p1;
      mad.lo.u32 %r1, %r3, 100, %r6; mad.lo.u32 %r4, %r4, 10, %r7; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5;)") +
                                                 kStore);
  EXPECT_EQ(got[0], 5 * 100 + 3 * 10 + 2000 + 4u);
}

TEST(MBarrier, BrokenRulesAreFaults) {
  const Case one{.block = {1, 1, 1}};
  EXPECT_NE(fault_of(one, std::string(kOneBarrier) + "mbarrier.arrive.shared.b64 _, [%r2], 2; exit;")
                .find("more arrivals than the phase still expects"),
            std::string::npos);
  // "mbarrier.arrive_drop": with .noComplete it must not complete the phase.
  EXPECT_NE(
      fault_of(one,
               ".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 _, "
               "[bar]; mbarrier.arrive_drop.noComplete.shared.b64 _, [bar], 1; exit;")
          .find("mbarrier.arrive_drop.noComplete completes the phase"),
      std::string::npos);
  EXPECT_NE(fault_of(one, std::string(kOneBarrier) + "mbarrier.init.shared.b64 [%r2], 1; exit;")
                .find("inval must come first"),
            std::string::npos);
  EXPECT_NE(fault_of(one, std::string(kOneBarrier) +
                              "mbarrier.inval.shared.b64 [%r2]; mbarrier.arrive.shared.b64 _, [%r2]; exit;")
                .find("no mbarrier is initialised at bar"),
            std::string::npos);
  const std::string dead = fault_of(
      one, std::string(kOneBarrier) +
               "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 128; mbarrier.arrive.shared.b64 _, "
               "[%r2]; W: mbarrier.try_wait.parity.shared.b64 %p0, [%r2], 0; @!%p0 bra W; exit;");
  EXPECT_NE(
      dead.find(
          "mbarrier bar, parity 0: it is in phase 0 with 0 of 1 arrivals pending and 128 bytes outstanding"),
      std::string::npos)
      << dead;
}

TEST(MBarrier, RemoteArriveInTheCluster) {
  for (const auto& schedule : kSchedules) {
    const auto got =
        run({.grid = {2, 1, 1}, .cluster = {2, 1, 1}, .schedule = schedule, .words = 64}, std::string(R"(
      .shared .align 8 .b64 bar; mov.u32 %r2, bar; mov.u32 %r10, %tid.x; mov.u32 %r3, %cluster_ctarank;
      setp.ne.u32 %p0, %r10, 0; @!%p0 mbarrier.init.shared.b64 [%r2], 32;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      xor.b32 %r4, %r3, 1; mapa.shared::cluster.u32 %r5, %r2, %r4;
      mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
      W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra W;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      mad.lo.u32 %r0, %r3, 32, %r10; add.u32 %r1, %r0, 5;)") + kStore);
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i + 5);
  }
}

// ---- cp.async ----

TEST(CpAsync, GroupsAndMbarrierArrive) {
  std::vector<uint32_t> input(512);
  for (uint32_t i = 0; i < 512; ++i) input[i] = 7 * i;
  for (const auto& schedule : kSchedules) {
    const auto got = run({.schedule = schedule, .input = input}, std::string(R"(
      .shared .align 16 .b32 buf[256]; .shared .align 8 .b64 bar;
      mov.u32 %r0, %tid.x; shl.b32 %r2, %r0, 4; mov.u32 %r3, buf; add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd2, %r2; add.u64 %rd3, %rd10, %rd2;
      cp.async.cg.shared.global [%r3], [%rd3], 16; cp.async.commit_group;
      cp.async.ca.shared.global [%r3+512], [%rd3+512], 16, 8; cp.async.commit_group;
      cp.async.wait_group 1; ld.shared.u32 %r4, [%r3+4];
      cp.async.wait_group 0; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3+512];
      add.u32 %r1, %r4, %r6; add.u32 %r1, %r1, %r7; add.u32 %r1, %r1, %r8;
      setp.ne.u32 %p0, %r0, 0; mov.u32 %r9, bar; @!%p0 mbarrier.init.shared.b64 [%r9], 32; bar.warp.sync 0xffffffff;
      cp.async.ca.shared.global [%r3], [%rd3+1024], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r9];
      W: mbarrier.try_wait.parity.shared.b64 %p1, [%r9], 0; @!%p1 bra W;
      ld.shared.u32 %r10, [%r3]; add.u32 %r1, %r1, %r10;)") + kStore);
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(got[i], 7 * (4 * i + 1) + 7 * (128 + 4 * i + 1) + 7 * (256 + 4 * i)) << schedule;
  }
}

TEST(CpAsync, LateScheduleShowsAMissingWait) {
  std::vector<uint32_t> input(128, 9);
  const std::string body = std::string(R"(
      .shared .align 16 .b32 buf[32]; mov.u32 %r0, %tid.x; shl.b32 %r2, %r0, 2; mov.u32 %r3, buf; add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd2, %r2; add.u64 %rd3, %rd10, %rd2;
      st.shared.u32 [%r3], %r0; cp.async.ca.shared.global [%r3], [%rd3], 4; ld.shared.u32 %r1, [%r3];)") +
                           kStore;
  EXPECT_EQ(run({.schedule = "eager", .input = input}, body)[5], 9u);
  EXPECT_EQ(run({.schedule = "late", .input = input}, body)[5], 5u);
}

// ---- warp operations ----

TEST(WarpOps, ShufflesVotesMatchReduxElect) {
  const auto got = run({.words = 32 * 9}, R"(
      mov.u32 %r0, %tid.x; mul.lo.u32 %r20, %r0, 3; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
      shfl.sync.down.b32 %r1|%p0, %r20, 5, 31, 0xffffffff; selp.b32 %r2, 1000, 0, %p0; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;
      shfl.sync.bfly.b32 %r1, %r20, 1, 0x1f, -1; st.global.u32 [%rd1+128], %r1;
      shfl.sync.up.b32 %r1|%p0, %r20, 2, 0x1800, -1; selp.b32 %r2, 1000, 0, %p0; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1+256], %r1;
      shfl.sync.idx.b32 %r1, %r20, 3, 0x181f, -1; st.global.u32 [%rd1+384], %r1;
      setp.lt.u32 %p1, %r0, 10; vote.sync.ballot.b32 %r1, !%p1, -1; st.global.u32 [%rd1+512], %r1;
      and.b32 %r3, %r0, 3; match.any.sync.b32 %r1, %r3, -1; st.global.u32 [%rd1+640], %r1;
      redux.sync.add.s32 %r1, %r20, -1; st.global.u32 [%rd1+768], %r1;
      elect.sync %r4|%p2, -1; selp.b32 %r1, 1, 0, %p2; mad.lo.u32 %r1, %r4, 10, %r1; st.global.u32 [%rd1+896], %r1;
      mov.u32 %r1, %lanemask_lt; st.global.u32 [%rd1+1024], %r1; exit;)");
  for (uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(got[l], l + 5 <= 31 ? 3 * (l + 5) + 1000 : 3 * l);
    EXPECT_EQ(got[32 + l], 3 * (l ^ 1));
    EXPECT_EQ(got[64 + l], l % 8 >= 2 ? 3 * (l - 2) + 1000 : 3 * l);
    EXPECT_EQ(got[96 + l], 3 * (l / 8 * 8 + 3));
    EXPECT_EQ(got[128 + l], 0xFFFFFC00u);
    EXPECT_EQ(got[160 + l], 0x11111111u << (l % 4));
    EXPECT_EQ(got[192 + l], 3 * 496u);
    EXPECT_EQ(got[224 + l], l == 0 ? 1u : 0u);
    EXPECT_EQ(got[256 + l], (1u << l) - 1);
  }
}

// "shfl.sync", "bar.warp.sync": each thread waits for the members of its own mask. Groups may come together.
TEST(WarpOps, GroupsWithMasksOfTheirOwn) {
  for (const std::string& schedule : kSchedules) {
    const auto got = run({.schedule = schedule, .words = 32 * 5}, R"(
      .shared .align 16 .b32 buf[32];
      mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
      and.b32 %r2, %r0, 24; mov.u32 %r3, 255; shl.b32 %r3, %r3, %r2;
      mov.u32 %r5, buf; mad.lo.u32 %r5, %r0, 4, %r5; xor.b32 %r6, %r0, 5; mov.u32 %r7, buf; mad.lo.u32 %r7, %r6, 4, %r7;
      st.shared.u32 [%r5], %r0; bar.warp.sync %r3; ld.shared.u32 %r1, [%r7]; st.global.u32 [%rd1], %r1;
      shfl.sync.bfly.b32 %r1, %r0, 3, 0x181f, %r3; st.global.u32 [%rd1+128], %r1;
      redux.sync.add.u32 %r1, %r0, %r3; st.global.u32 [%rd1+256], %r1;
      // Two of the groups come late, the lanes of each to places of their own.
      setp.lt.u32 %p0, %r0, 16; @%p0 bra meet;
      and.b32 %r4, %r0, 1; setp.eq.u32 %p1, %r4, 0; st.shared.u32 [%r5], %r6; @%p1 bra even;
      bar.warp.sync %r3; bra meet;
      even: bar.warp.sync %r3;
      meet: ld.shared.u32 %r1, [%r7]; st.global.u32 [%rd1+384], %r1;
      vote.sync.ballot.b32 %r1, %p1, %r3; @%p0 mov.u32 %r1, 0; st.global.u32 [%rd1+512], %r1; exit;)");
    for (uint32_t l = 0; l < 32; ++l) {
      EXPECT_EQ(got[l], l ^ 5);
      EXPECT_EQ(got[32 + l], l ^ 3);
      EXPECT_EQ(got[64 + l], l / 8 * 64 + 28);
      EXPECT_EQ(got[96 + l], l < 16 ? l ^ 5 : l);
      EXPECT_EQ(got[128 + l], l < 16 ? 0 : 0x55u << (l & 24));
    }
  }
  EXPECT_NE(
      fault_of({}, "mov.u32 %r0, %tid.x; mov.u32 %r3, 0xff; bar.warp.sync %r3; exit;").find("leaves out"),
      std::string::npos);
}

TEST(WarpOps, MatrixLoadStoreAndMma) {
  // ldmatrix of an 8x8 matrix of 16-bit numbers, plain and transposed; stmatrix puts it back transposed.
  const auto got = run({.words = 128}, R"(
      .shared .align 16 .b16 m[64]; .shared .align 16 .b16 t[64];
      mov.u32 %r0, %tid.x; shl.b32 %r2, %r0, 2; mov.u32 %r3, m; add.u32 %r4, %r3, %r2; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;
      shl.b32 %r5, %r0, 1; add.u32 %r6, %r5, 1; shl.b32 %r6, %r6, 16; or.b32 %r5, %r5, %r6; st.shared.u32 [%r4], %r5; bar.sync 0;
      and.b32 %r7, %r0, 7; shl.b32 %r7, %r7, 4; add.u32 %r8, %r3, %r7;
      ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r8]; st.global.u32 [%rd1], %r9;
      ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%r8]; st.global.u32 [%rd1+128], %r10;
      mov.u32 %r11, t; add.u32 %r12, %r11, %r7; stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r12], {%r9}; bar.sync 0;
      add.u32 %r13, %r11, %r2; ld.shared.u32 %r14, [%r13]; st.global.u32 [%rd1+256], %r14; exit;)");
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t row = l / 4, col = 2 * (l % 4);
    EXPECT_EQ(got[l], (row * 8 + col) | (row * 8 + col + 1) << 16);
    EXPECT_EQ(got[32 + l], (col * 8 + row) | ((col + 1) * 8 + row) << 16);
    EXPECT_EQ(got[64 + l], (col * 8 + row) | ((col + 1) * 8 + row) << 16);
  }
}

// ---- atomics and the order between clusters ----

TEST(Atomics, OperationsReturnTheOldValue) {
  const auto got = run({.words = 16, .input = {}}, R"(
      mov.u32 %r0, %tid.x;
      atom.global.add.u32 %r1, [%rd0], %r0; red.global.max.u32 [%rd0+4], %r0; atom.global.inc.u32 %r2, [%rd0+8], 9; atom.global.dec.u32 %r3, [%rd0+12], 9;
      setp.eq.u32 %p0, %r0, 3; @%p0 atom.global.cas.b32 %r4, [%rd0+16], 0, 77; @%p0 atom.global.exch.b32 %r4, [%rd0+20], 88;
      mov.f32 %f0, 0f3F000000; red.global.add.f32 [%rd0+24], %f0; mov.b32 %r5, 0x3C003C00; red.global.add.noftz.f16x2 [%rd0+28], %r5; red.global.or.b32 [%rd0+32], %r0; exit;)");
  EXPECT_EQ(got[0], 496u);
  EXPECT_EQ(got[1], 31u);
  EXPECT_EQ(got[2], 32 % 10u);
  EXPECT_EQ(got[3], (40 - 32) % 10u);
  EXPECT_EQ(got[4], 77u);
  EXPECT_EQ(got[5], 88u);
  EXPECT_EQ(std::bit_cast<float>(got[6]), 16.0f);
  EXPECT_EQ(got[7], 0x50005000u);  // 32 in f16
  EXPECT_EQ(got[8], 31u);
}

std::vector<uint32_t> float_sums(int threads, const std::string& schedule) {
  // Sums whose value depends on the order of the additions.
  return run({.grid = {60, 1, 1}, .block = {64, 1, 1}, .schedule = schedule, .threads = threads, .words = 4},
             R"(
      mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r0, 64, %r1; mad.lo.u32 %r2, %r2, 1664525, 1013904223; shr.u32 %r3, %r2, 9; or.b32 %r3, %r3, 0x3F800000; mov.b32 %f0, %r3;
      and.b32 %r4, %r2, 31; mov.u32 %r5, 0; LOOP: add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, %r4; @%p0 bra LOOP;
      mul.f32 %f0, %f0, %f0; red.global.add.f32 [%rd0], %f0; exit;)");
}

TEST(Threads, FloatAtomicsDoNotDependOnHostThreads) {
  for (const std::string schedule : {"eager", "random:5"}) {
    const auto one = float_sums(1, schedule);
    for (int threads : {2, 3, 8}) EXPECT_EQ(float_sums(threads, schedule)[0], one[0]) << threads;
  }
}

TEST(Threads, TileSchedulerFromAGlobalCounter) {
  // Each CTA takes tiles from a counter; which CTA got which tile must not depend on host threads.
  const std::string body = R"(
      .shared .align 4 .b32 tile; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r9, %ctaid.x;
      NEXT: @%p0 bra WAIT; atom.global.add.u32 %r1, [%rd0], 1; st.shared.u32 [tile], %r1;
      WAIT: bar.sync 0; ld.shared.u32 %r2, [tile]; bar.sync 0;
      setp.ge.u32 %p1, %r2, 100; @%p1 exit;
      and.b32 %r3, %r2, 7; mov.u32 %r4, 0; SPIN: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r3; @%p2 bra SPIN;
      mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd0, %rd1; @!%p0 st.global.u32 [%rd1+4], %r9; bra NEXT;)";
  const auto one = run({.grid = {12, 1, 1}, .threads = 1, .words = 128}, body);
  std::vector<uint32_t> takers(12, 0);
  for (uint32_t t = 0; t < 100; ++t) ++takers.at(one[1 + t]);
  EXPECT_GT(*std::min_element(takers.begin(), takers.end()), 0u);
  for (int threads : {2, 3, 8})
    EXPECT_EQ(run({.grid = {12, 1, 1}, .threads = threads, .words = 128}, body), one) << threads;
}

TEST(Threads, GridBarrierThroughGlobalMemory) {
  // Every CTA waits until all have arrived: they must be on the machine together.
  const std::string body = R"(
      mov.u32 %r0, %ctaid.x; mov.u32 %r9, %tid.x; setp.ne.u32 %p0, %r9, 0; @%p0 bra JOIN;
      mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; add.u32 %r1, %r0, 1; st.global.u32 [%rd1+64], %r1; membar.gl;
      atom.global.add.u32 %r2, [%rd0], 1;
      SPIN: ld.acquire.gpu.global.u32 %r3, [%rd0]; setp.lt.u32 %p1, %r3, 16; @%p1 bra SPIN;
      xor.b32 %r4, %r0, 15; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd0, %rd2; ld.global.u32 %r5, [%rd2+64]; st.global.u32 [%rd1+256], %r5;
      JOIN: bar.sync 0; exit;)";
  const auto one = run({.grid = {16, 1, 1}, .threads = 1, .words = 128}, body);
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(one[64 + i], (i ^ 15) + 1);
  for (int threads : {2, 3, 8})
    EXPECT_EQ(run({.grid = {16, 1, 1}, .threads = threads, .words = 128}, body), one);
}

}  // namespace
}  // namespace tw::sim::testing
