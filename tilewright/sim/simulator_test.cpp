#include "tilewright/sim/simulator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tilewright/base/error.h"
#include "tilewright/sim/testing.h"

namespace tw::sim::testing {
namespace {

template <class F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::internal, {}, "none");
}

constexpr const char* kRegs = ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>;\n";
const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:2", "random:77"};

// One launch of `body` with one output buffer of `words` 32-bit words.
std::vector<uint32_t> run(std::string_view body, Dim3 grid, Dim3 block, size_t words,
                          std::string_view schedule = "eager", int threads = 1, Dim3 cluster = {},
                          uint32_t dynamic_shared = 0) {
  Program program = compile(
      module_text(".param .u64 out", std::string(kRegs) + "ld.param.u64 %rd0, [out];\n" + std::string(body)));
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(words, 0), "out");
  Launch launch{grid, block, cluster, dynamic_shared, Params().add(out.address).bytes()};
  RunOptions options;
  options.schedule = parse_schedule(schedule);
  options.host_threads = threads;
  options.instruction_limit = 10'000'000;
  program.run(launch, memory, options);
  return out.get();
}

TEST(Simulator, SaxpyOverManyCtas) {
  Program program = compile(module_text(".param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n", R"(
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<4>;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.f32 %f0, [a]; ld.param.u32 %r0, [n];
    cvta.to.global.u64 %rd0, %rd0;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p bra DONE;
    mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd0, %rd2; add.s64 %rd4, %rd1, %rd2;
    ld.global.nc.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd4];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%rd4], %f3;
    DONE: ret;)"));
  const uint32_t n = 100000;
  std::vector<float> x(n), y(n);
  for (uint32_t i = 0; i < n; ++i)
    x[i] = 0.25f * static_cast<float>(i), y[i] = 1.0f / static_cast<float>(i + 1);
  GlobalMemory memory;
  Buffer<float> bx(memory, x, "x"), by(memory, y, "y");
  Launch launch{{(n + 255) / 256, 1, 1},
                {256, 1, 1},
                {},
                0,
                Params().add(bx.address).add(by.address).add(1.5f).add(n).bytes()};
  const RunStats stats = program.run(launch, memory, {});
  const auto got = by.get();
  for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(got[i], std::fma(1.5f, x[i], y[i])) << i;
  EXPECT_EQ(stats.ctas, (n + 255) / 256);
  EXPECT_GT(stats.warp_instructions, n / 32 * 10);
}

TEST(Simulator, DivergentLoopsReconverge) {
  // Each lane loops lane+1 times; after the loop all lanes must be together for the aligned barrier.
  const auto got = run(R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, 0; mov.u32 %r2, 0;
    LOOP: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1; setp.le.u32 %p0, %r2, %r0; @%p0 bra LOOP;
    bar.sync 0;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; exit;)",
                       {}, {64, 1, 1}, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i * (i + 1) / 2);
}

TEST(Simulator, NestedBranchesBreakAndContinueReconverge) {
  const std::string body = R"(
    mov.u32 %r0, %tid.x; mov.u32 %r1, 0; mov.u32 %r2, 0;
    LOOP: add.u32 %r2, %r2, 1;
    and.b32 %r3, %r2, 1; setp.eq.u32 %p0, %r3, 0; @%p0 bra CONTINUE;
    setp.gt.u32 %p1, %r2, %r0; @%p1 bra BREAK;
    add.u32 %r1, %r1, %r2;
    CONTINUE: setp.lt.u32 %p2, %r2, 40; @%p2 bra LOOP;
    bra JOIN;
    BREAK: add.u32 %r1, %r1, 1000;
    JOIN: bar.sync 0; bar.sync 1, 32;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; exit;)";
  for (const auto& schedule : kSchedules) {
    const auto got = run(body, {}, {32, 1, 1}, 32, schedule);
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t sum = 0;
      for (uint32_t k = 1; k <= 40; ++k) {
        if (k % 2 == 0) continue;
        if (k > i) {
          sum += 1000;
          break;
        }
        sum += k;
      }
      EXPECT_EQ(got[i], sum) << i;
    }
  }
}

TEST(Simulator, LanesOfOneWarpMayWaitForEachOther) {
  // Lane 0 spins on a flag in shared memory that lane 31 sets on another path (independent thread
  // scheduling).
  for (const auto& schedule : kSchedules) {
    const auto got = run(R"(
      .shared .align 4 .b32 flag;
      mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
      @%p0 st.shared.u32 [flag], 0;
      bar.warp.sync 0xffffffff;
      @!%p0 bra OTHERS;
      SPIN: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN;
      bra JOIN;
      OTHERS: setp.eq.u32 %p2, %r0, 31; @%p2 st.volatile.shared.u32 [flag], 7;
      mov.u32 %r1, 1;
      JOIN: bar.sync 0;
      mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; exit;)",
                         {}, {32, 1, 1}, 32, schedule);
    EXPECT_EQ(got[0], 7u);
    EXPECT_EQ(got[5], 1u);
  }
}

TEST(Simulator, BarrierInsideADivergentBranchIsAFault) {
  const Error e = error_of([] {
    run("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 5; @!%p0 bra SKIP; bar.sync 0; SKIP: exit;", {},
        {32, 1, 1}, 1);
  });
  EXPECT_EQ(e.kind(), ErrorKind::fault);
  EXPECT_NE(e.message().find("5 of the warp's 32 live lanes"), std::string::npos) << e.what();
  const Error guard = error_of([] {
    run("mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 5; @%p0 bar.sync 0; exit;", {}, {32, 1, 1}, 1);
  });
  EXPECT_NE(guard.message().find("its guard differs between lanes"), std::string::npos) << guard.what();
}

TEST(Simulator, NamedBarriersHandOver) {
  // Warp 0 produces into shared memory and only arrives; warp 1 waits, then hands back ("bar, barrier").
  for (const auto& schedule : kSchedules) {
    const auto got = run(R"(
      .shared .align 4 .b32 buf[32];
      mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; shl.b32 %r2, %r1, 2; mov.u32 %r3, buf; add.u32 %r3, %r3, %r2;
      mov.u32 %r5, 0; mov.u32 %r6, 0;
      setp.ge.u32 %p0, %r0, 32; @%p0 bra CONSUMER;
      PRODUCER: add.u32 %r7, %r5, %r1; st.shared.u32 [%r3], %r7; bar.arrive 1, 64; bar.sync 2, 64;
      add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 10; @%p1 bra PRODUCER; exit;
      CONSUMER: bar.sync 1, 64; ld.shared.u32 %r7, [%r3]; add.u32 %r6, %r6, %r7; bar.arrive 2, 64;
      add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 10; @%p1 bra CONSUMER;
      mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r6; exit;)",
                         {}, {64, 1, 1}, 32, schedule);
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], 45 + 10 * i);
  }
}

TEST(Simulator, BarrierReductions) {
  const auto got = run(R"(
    mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 70; setp.lt.u32 %p1, %r0, 1000;
    bar.red.popc.u32 %r1, 0, %p0; bar.red.and.pred %p2, 0, %p0; bar.red.or.pred %p3, 0, %p0; bar.red.and.pred %p4, 0, %p1;
    selp.b32 %r2, 100, 0, %p2; selp.b32 %r3, 200, 0, %p3; selp.b32 %r4, 400, 0, %p4;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; exit;)",
                       {}, {128, 1, 1}, 128);
  for (uint32_t v : got) EXPECT_EQ(v, 670u);
}

TEST(Simulator, DeadlockNamesEveryoneAndTheBarrier) {
  const Error e = error_of([] {
    run("mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; @%p0 bra W1; bar.sync 3, 64; exit; W1: bar.sync 4, "
        "64; exit;",
        {}, {64, 1, 1}, 1);
  });
  EXPECT_EQ(e.kind(), ErrorKind::deadlock);
  const std::string& m = e.message();
  EXPECT_NE(m.find("warp 0"), std::string::npos) << m;
  EXPECT_NE(m.find("barrier 3: 32 of 64 threads have arrived"), std::string::npos) << m;
  EXPECT_NE(m.find("barrier 4: 32 of 64 threads have arrived"), std::string::npos) << m;
}

TEST(Simulator, PoisonBoundsAndAlignment) {
  const auto fault = [](std::string_view body) {
    return error_of([&] { run(body, {}, {32, 1, 1}, 4); }).message();
  };
  EXPECT_NE(fault(".shared .align 4 .b32 table[8]; ld.shared.u32 %r0, [table+8]; exit;")
                .find("read of shared memory that nothing has written: table + 8 bytes"),
            std::string::npos);
  EXPECT_NE(fault("ld.global.u32 %r0, [%rd0+16]; exit;").find("out, 16 bytes"), std::string::npos);
  EXPECT_NE(fault("ld.global.u32 %r0, [%rd0+2]; exit;").find("not aligned"), std::string::npos);
  EXPECT_NE(fault("mov.u32 %r1, 0; ld.shared.u32 %r0, [%r1]; exit;").find("outside the CTA's shared memory"),
            std::string::npos);
  // Fresh global memory is poison too.
  Program program = compile(module_text(
      ".param .u64 out",
      ".reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd0, [out]; ld.global.u32 %r0, [%rd0]; exit;"));
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, 4, "fresh");
  const Error e = error_of([&] {
    program.run({{}, {1, 1, 1}, {}, 0, Params().add(out.address).bytes()}, memory, {});
  });
  EXPECT_NE(e.message().find("byte 0 of fresh"), std::string::npos) << e.what();
  EXPECT_EQ(memory.unwritten(out.address, 16), 16u);
}

TEST(Simulator, VectorAndGenericAccesses) {
  const auto got = run(R"(
    .shared .align 16 .b32 buf[128];
    mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 4; mov.u32 %r2, buf; add.u32 %r2, %r2, %r1;
    add.u32 %r3, %r0, 100; add.u32 %r4, %r0, 200; add.u32 %r5, %r0, 300;
    st.shared.v4.b32 [%r2], {%r0, %r3, %r4, %r5};
    bar.sync 0;
    mov.u64 %rd2, buf; cvta.shared.u64 %rd2, %rd2; cvt.u64.u32 %rd3, %r1; add.u64 %rd2, %rd2, %rd3;
    ld.v2.u32 {%r6, %r7}, [%rd2+8]; ld.u8 %r8, [%rd2+4];
    add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8;
    isspacep.shared %p0, %rd2; isspacep.global %p1, %rd0; and.pred %p0, %p0, %p1; @!%p0 trap;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.u32 [%rd1], %r6; exit;)",
                       {}, {32, 1, 1}, 32);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(got[i], 2 * i + 500 + ((i + 100) & 0xFF));
}

TEST(Simulator, LocalConstAndModuleVariables) {
  Program program = compile(module_text(
      ".param .u64 out", R"(
    .reg .b32 %r<8>; .reg .b64 %rd<8>; .local .align 4 .b32 stack[4];
    ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; st.local.u32 [stack+4], %r0; ld.local.u32 %r1, [stack+4];
    ld.const.u32 %r2, [table+8]; ld.global.u32 %r3, [counter]; add.u32 %r4, %r3, 1;
    add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; st.global.u32 [counter], %r4; exit;)",
      "sm_90a", ".const .align 4 .b32 table[3] = {1, 2, 30};\n.global .align 4 .b32 counter = 5;"));
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, 32, "out");
  const Launch launch{{}, {32, 1, 1}, {}, 0, Params().add(out.address).bytes()};
  program.run(launch, memory, {});
  EXPECT_EQ(out.get()[7], 42u);
  program.run(launch, memory, {});  // the module's variable keeps its value
  EXPECT_EQ(out.get()[7], 43u);
}

TEST(Simulator, UnknownInstructionsStopAtDecode) {
  const Error e = error_of([] {
    compile(module_text(
        "",
        ".reg .b64 %rd<2>; .reg .b32 %r<9>;\n tex.1d.v4.s32.s32 {%r1,%r2,%r3,%r4}, [%rd0, {%r5}]; exit;"));
  });
  EXPECT_TRUE(e.kind() == ErrorKind::not_modelled || e.kind() == ErrorKind::user) << e.what();
}

TEST(Simulator, LaunchLimitsAreNamed) {
  Program program = compile(
      module_text(".param .u64 out", ".shared .b8 big[1000]; exit;", "sm_90a", "", ".maxntid 128, 1, 1"));
  GlobalMemory memory;
  const auto params = Params().add(uint64_t{0}).bytes();
  const auto message = [&](Launch launch) {
    return error_of([&] { program.run(launch, memory, {}); }).message();
  };
  EXPECT_NE(message({{}, {2048, 1, 1}, {}, 0, params}).find("1024 threads"), std::string::npos);
  EXPECT_NE(message({{}, {256, 1, 1}, {}, 0, params}).find(".maxntid"), std::string::npos);
  EXPECT_NE(message({{}, {32, 1, 1}, {}, 232000, params}).find("232448"), std::string::npos);
  EXPECT_NE(message({{3, 1, 1}, {32, 1, 1}, {2, 1, 1}, 0, params}).find("not a multiple of the cluster"),
            std::string::npos);
  EXPECT_NE(message({{}, {32, 1, 1}, {}, 0, {}}).find("0 bytes, the entry takes 8"), std::string::npos);
  EXPECT_NE(error_of([] { compile(module_text("", "exit;", "sm_90a"), small_machine("sm_100a")); })
                .message()
                .find("sm_90a"),
            std::string::npos);
  EXPECT_NE(error_of([] { parse_schedule("lazy"); }).message().find("eager, late, random:SEED"),
            std::string::npos);
}

TEST(Simulator, ClusterAddressesBarriersAndRemoteShared) {
  for (const auto& schedule : kSchedules) {
    const auto got = run(R"(
      .shared .align 4 .b32 slot;
      mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %clusterid.x; mov.u32 %r9, %tid.x; setp.ne.u32 %p1, %r9, 0;
      mul.lo.u32 %r2, %r1, 10; add.u32 %r2, %r2, %r0; @!%p1 st.shared.u32 [slot], %r2;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      xor.b32 %r3, %r0, 1; mov.u32 %r4, slot; mapa.shared::cluster.u32 %r5, %r4, %r3; ld.shared::cluster.u32 %r6, [%r5];
      getctarank.shared::cluster.u32 %r7, %r5; setp.ne.u32 %p0, %r7, %r3; @%p0 trap;
      barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd1, %r8, 4; add.u64 %rd1, %rd0, %rd1; @!%p1 st.global.u32 [%rd1], %r6; exit;)",
                         {8, 1, 1}, {64, 1, 1}, 8, schedule, 2, {2, 1, 1});
    for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(got[i], i / 2 * 10 + (i ^ 1) % 2);
  }
}

}  // namespace
}  // namespace tw::sim::testing
