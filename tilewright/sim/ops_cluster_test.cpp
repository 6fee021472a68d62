#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/sim/testing.h"

// Clusters: shared memory of other CTAs, the cluster barrier, launch control, registers that move.
namespace tw::sim::testing {
namespace {

const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:2", "random:77"};
constexpr const char* kRegs =
    ".reg .pred %p<8>; .reg .b32 %r<48>; .reg .b64 %rd<16>; .reg .b128 %q<2>;\nld.param.u64 %rd0, [out];\n";

struct Case {
  Dim3 grid{}, block{32, 1, 1}, cluster{};
  std::string schedule = "eager";
  int threads = 1;
  size_t words = 64;
  uint32_t sms = 4;
  std::string arch = "sm_100a";
  std::string directives{};
};

std::vector<uint32_t> run(const Case& s, std::string_view body) {
  Program program = compile(
      module_text(".param .u64 out", std::string(kRegs) + std::string(body), s.arch, "", s.directives),
      small_machine(s.arch, s.sms));
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(s.words, 0), "out");
  RunOptions options;
  options.schedule = parse_schedule(s.schedule);
  options.host_threads = s.threads;
  options.instruction_limit = 20'000'000;
  program.run({s.grid, s.block, s.cluster, 0, Params().add(out.address).bytes()}, memory, options);
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
#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// ---- distributed shared memory ----

// Each CTA adds its rank to a word of every CTA and stores to the next CTA; then reads the next one's.
TEST(ClusterMemory, LoadsStoresAndAtomicsReachEveryCta) {
  for (uint32_t n : {2u, 8u, 16u}) {
    for (const std::string& schedule : kSchedules) {
      const auto got = run({.grid = {n, 1, 1}, .cluster = {n, 1, 1}, .schedule = schedule}, R"(
      .shared .align 4 .b32 sum; .shared .align 4 .b32 word;
      mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; mov.u32 %r4, %tid.x;
      setp.ne.u32 %p0, %r4, 0; @!%p0 st.shared.u32 [sum], 0;
      barrier.cluster.arrive; barrier.cluster.wait;
      mov.u32 %r5, sum; mov.u32 %r6, word; add.u32 %r7, %r2, 1;
      @%p0 bra JOIN;
      mov.u32 %r8, 0;
      NEXT: mapa.shared::cluster.u32 %r9, %r5, %r8; atom.shared::cluster.add.u32 %r10, [%r9], %r7;
      add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, %r3; @%p1 bra NEXT;
      rem.u32 %r11, %r7, %r3; mapa.shared::cluster.u32 %r12, %r6, %r11;
      st.shared::cluster.u32 [%r12], %r2;
      JOIN: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
      @%p0 bra END;
      mapa.shared::cluster.u32 %r12, %r6, %r2; getctarank.shared::cluster.u32 %r13, %r12;
      ld.shared.u32 %r14, [sum]; ld.shared::cluster.u32 %r15, [%r12];
      mul.lo.u32 %r14, %r14, 100; add.u32 %r14, %r14, %r15; mad.lo.u32 %r14, %r13, 1000000, %r14;
      mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r14;
      END: exit;)");
      for (uint32_t r = 0; r < n; ++r)
        EXPECT_EQ(got[r], r * 1000000 + n * (n + 1) / 2 * 100 + (r + n - 1) % n) << n << " " << schedule;
    }
  }
}

// "If no sub-qualifier is specified with the .shared state space, then it defaults to ::cta."
TEST(ClusterMemory, OfAnotherCtaNeedsItsOwnSpace) {
  const std::string body = R"(
      .shared .align 4 .b32 word; mov.u32 %r1, word; mapa.shared::cluster.u32 %r2, %r1, 1; mov.u32 %r4, %cluster_ctarank;
      st.shared.u32 [word], 5; barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p0, %r4, 0;
      @%p0 ld.shared.u32 %r3, [%r2]; barrier.cluster.arrive; barrier.cluster.wait; exit;)";
  EXPECT_CONTAINS(fault_of({.grid = {2, 1, 1}, .cluster = {2, 1, 1}}, body),
                  "lies in CTA rank 1 of the cluster: .shared is .shared::cta");
}

TEST(ClusterMemory, OfACtaThatHasExited) {
  const std::string error = fault_of({.grid = {2, 1, 1}, .cluster = {2, 1, 1}, .schedule = "late"}, R"(
      .shared .align 4 .b32 word; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p0, %r2, 1;
      st.shared.u32 [word], 5; barrier.cluster.arrive; barrier.cluster.wait; @%p0 exit;
      nanosleep.u32 10; mov.u32 %r3, word; mapa.shared::cluster.u32 %r3, %r3, 1;
      mov.u32 %r5, 0; SPIN: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 100000; @%p1 bra SPIN;
      ld.shared::cluster.u32 %r4, [%r3]; exit;)");
  EXPECT_CONTAINS(error, "access to word of CTA rank 1, which has exited");
  EXPECT_CONTAINS(error, "CTA (0, 0, 0), warp 0");
}

TEST(ClusterMemory, SpecialRegistersOfAThreeDimensionalCluster) {
  // cluster (2, 2, 1) of a grid (4, 4, 2): the cluster of CTA (3, 2, 1) and its place in it.
  const auto got = run({.grid = {4, 4, 2}, .cluster = {2, 2, 1}, .words = 16}, R"(
      mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %tid.x;
      setp.eq.u32 %p0, %r1, 3; setp.eq.and.u32 %p0, %r2, 2, %p0; setp.eq.and.u32 %p0, %r3, 1, %p0;
      setp.eq.and.u32 %p0, %r4, 0, %p0; @!%p0 exit;
      mov.u32 %r5, %clusterid.x; st.global.u32 [%rd0], %r5; mov.u32 %r5, %clusterid.y; st.global.u32 [%rd0+4], %r5;
      mov.u32 %r5, %clusterid.z; st.global.u32 [%rd0+8], %r5; mov.u32 %r5, %nclusterid.x; st.global.u32 [%rd0+12], %r5;
      mov.u32 %r5, %nclusterid.y; st.global.u32 [%rd0+16], %r5; mov.u32 %r5, %cluster_ctaid.x; st.global.u32 [%rd0+20], %r5;
      mov.u32 %r5, %cluster_ctaid.y; st.global.u32 [%rd0+24], %r5; mov.u32 %r5, %cluster_ctarank; st.global.u32 [%rd0+28], %r5;
      mov.u32 %r5, %cluster_nctaid.x; st.global.u32 [%rd0+32], %r5; mov.u32 %r5, %cluster_nctarank; st.global.u32 [%rd0+36], %r5;
      mov.pred %p1, %is_explicit_cluster; selp.u32 %r5, 1, 0, %p1; st.global.u32 [%rd0+40], %r5; exit;)");
  EXPECT_EQ(std::vector<uint32_t>(got.begin(), got.begin() + 11),
            (std::vector<uint32_t>{1, 1, 1, 2, 2, 1, 0, 1, 2, 4, 1}));
}

// ".reqnctapercluster": used when the launch names no cluster; another one is an error.
TEST(ClusterMemory, RequiredClusterDimensions) {
  const std::string body = "mov.u32 %r1, %cluster_nctarank; st.global.u32 [%rd0], %r1; exit;";
  EXPECT_EQ(run({.grid = {4, 1, 1}, .directives = ".reqnctapercluster 4, 1, 1"}, body)[0], 4u);
  EXPECT_CONTAINS(
      fault_of({.grid = {4, 1, 1}, .cluster = {2, 1, 1}, .directives = ".reqnctapercluster 4, 1, 1"}, body),
      "cluster (2, 1, 1) is not what .reqnctapercluster asks for: (4, 1, 1)");
  EXPECT_CONTAINS(fault_of({.grid = {6, 1, 1}, .directives = ".reqnctapercluster 4, 1, 1"}, body),
                  "is not a multiple of the cluster (4, 1, 1)");
  EXPECT_CONTAINS(fault_of({.grid = {4, 1, 1}, .directives = ".explicitcluster"}, body),
                  ".explicitcluster asks for a cluster, the launch names none");
  EXPECT_EQ(run({.grid = {4, 1, 1}, .cluster = {2, 1, 1}, .directives = ".explicitcluster"}, body)[0], 2u);
  EXPECT_CONTAINS(
      fault_of({.grid = {8, 1, 1}, .cluster = {8, 1, 1}, .directives = ".maxclusterrank 4"}, body),
      "over .maxclusterrank 4");
}

TEST(ClusterBarrier, WaitsForEveryLiveThread) {
  const std::string error = fault_of({.grid = {2, 1, 1}, .cluster = {2, 1, 1}}, R"(
      mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p0, %r1, 0; @%p0 bra SKIP; barrier.cluster.arrive.relaxed;
      barrier.cluster.wait; exit;
      SKIP: .shared .align 8 .b64 bar; mov.u32 %r2, %tid.x; setp.eq.u32 %p2, %r2, 0;
      @%p2 mbarrier.init.shared.b64 [bar], 64; bar.warp.sync 0xffffffff;
      W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W; exit;)");
  EXPECT_CONTAINS(error, "wait cycle");
  EXPECT_CONTAINS(error, "barrier.cluster: 32 of 64 threads have arrived");
}

// ---- cluster launch control ----

// Clusters of `ctas` CTAs process their own first CTA id, then whatever they cancel. out[id] = ctaid.x of the
// cluster that processed it, plus one, by rank 0; out[words - 1] counts them.
std::string persistent(bool multicast) {
  std::string text = R"(
      .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
      mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, 0;
      setp.ne.u32 %p0, %r1, 0; @!%p0 mbarrier.init.shared.b64 [bar], 1;
      setp.ne.or.u32 %p1, %r2, 0, %p0;
      fence.mbarrier_init.release.cluster;
      barrier.cluster.arrive; barrier.cluster.wait;
      sub.u32 %r3, %r3, %r2;
      PROCESS:
      @!%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 16;
      REQUEST clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytesMULTICAST.b128 [answer], [bar];
      mul.wide.u32 %rd1, %r3, 4; add.u64 %rd1, %rd0, %rd1; add.u32 %r6, %r4, 1; @!%p1 st.global.u32 [%rd1], %r6;
      and.b32 %r8, %r3, 7; mov.u32 %r7, 0; SPIN: add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, %r8; @%p3 bra SPIN;
      W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], %r5; @!%p2 bra W;
      xor.b32 %r5, %r5, 1;
      ld.shared.b128 %q0, [answer];
      clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q0;
      @!%p4 bra DONE;
      clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, _, _, _}, %q0;
      clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r9, %q0;
      add.u32 %r3, %r3, %r9;
      fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
      barrier.cluster.arrive.relaxed; barrier.cluster.wait;
      bra PROCESS;
      DONE: barrier.cluster.arrive; barrier.cluster.wait; exit;)";
  auto put = [&](std::string_view what, std::string_view with) {
    text.replace(text.find(what), what.size(), with);
  };
  put("REQUEST", multicast ? "@!%p1" : "@!%p0");
  put("MULTICAST", multicast ? ".shared::cta.multicast::cluster::all" : ".shared::cta");
  return text;
}

// 4 SMs of 2048 threads: CTAs of 1024 threads, two an SM, so 8 CTAs at a time of a grid of 60.
TEST(LaunchControl, EveryClusterOfALargeGridIsProcessedOnce) {
  for (bool multicast : {false, true}) {
    const uint32_t ctas = multicast ? 2 : 1;
    for (const std::string& schedule : kSchedules) {
      SCOPED_TRACE(schedule);
      Case c{.grid = {60, 1, 1}, .block = {1024, 1, 1}, .cluster = {ctas, 1, 1}, .schedule = schedule};
      const auto one = run(c, persistent(multicast));
      std::vector<uint32_t> processors;
      for (uint32_t id = 0; id < 60; id += ctas) {
        ASSERT_NE(one[id], 0u) << id;
        processors.push_back(one[id]);
      }
      // Most clusters were cancelled: few processors did the work of all.
      std::sort(processors.begin(), processors.end());
      processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
      EXPECT_LE(processors.size(), 16u / ctas);
      for (int threads : {2, 3, 8}) {
        c.threads = threads;
        EXPECT_EQ(run(c, persistent(multicast)), one) << threads;
      }
    }
  }
}

TEST(LaunchControl, BrokenRulesAreFaults) {
  const std::string start = R"(
      .shared .align 16 .b8 answer[32]; .shared .align 8 .b64 bar;
      mov.u32 %r1, %tid.x; setp.ne.u32 %p0, %r1, 0; @%p0 exit; mbarrier.init.shared.b64 [bar], 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;)";
  const std::string ask =
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], "
      "[bar];\n";
  const std::string wait =
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W; ld.shared.b128 %q0, "
      "[answer];\n";
  const std::string query = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q0;\n";
  // A grid of one cluster: every request fails.
  EXPECT_CONTAINS(fault_of({}, start + ask + wait + query + ask + "exit;"),
                  "try_cancel after this CTA has observed that an earlier one failed");
  EXPECT_EQ(fault_of({}, start + ask + wait + query + "exit;"), "no fault");
  EXPECT_CONTAINS(
      fault_of({}, start + ask + wait +
                       "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r2, %q0; exit;"),
      "get_first_ctaid of a request that failed");
  std::string shifted = ask;
  shifted.replace(shifted.find("[answer]"), 8, "[answer+8]");
  EXPECT_CONTAINS(fault_of({}, start + shifted + "exit;"), "is not aligned to 16 bytes");
  EXPECT_CONTAINS(fault_of({}, start +
                                   "st.shared.v4.u32 [answer], {%r1, %r1, %r1, %r1}; ld.shared.b128 %q0, "
                                   "[answer];\n" +
                                   query + "exit;"),
                  "no response of clusterlaunchcontrol.try_cancel");
  EXPECT_CONTAINS(fault_of({.arch = "sm_90a"}, start + ask + "exit;"), "requires sm_100");
}

// ---- setmaxnreg ----

// Warpgroup 0 takes what warpgroup 1 gives: 128 threads each.
std::string registers_text(int give, int take) {
  return tw::format(R"(
      mov.u32 %r1, %tid.x; setp.ge.u32 %p0, %r1, 128; @%p0 bra GIVE;
      setmaxnreg.inc.sync.aligned.u32 {}; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd0], 1; exit;
      GIVE: setmaxnreg.dec.sync.aligned.u32 {}; exit;)",
                    take, give);
}

TEST(Registers, MoveThroughThePoolOfTheCta) {
  for (const std::string& schedule : kSchedules) {
    Case c{.block = {256, 1, 1}, .schedule = schedule, .directives = ".maxnreg 128"};
    EXPECT_EQ(run(c, registers_text(40, 216))[0], 1u);
    EXPECT_CONTAINS(fault_of(c, registers_text(40, 224)), "(setmaxnreg.inc)");
  }
  // Launch bounds: 65536 registers for 256 threads, at most 255 each; for 384 threads 168.
  Case bounds{.block = {384, 1, 1}, .directives = ".maxntid 384, 1, 1 .minnctapersm 1"};
  const std::string three = R"(
      mov.u32 %r1, %tid.x; setp.ge.u32 %p0, %r1, 128; @%p0 bra TAKE;
      setmaxnreg.dec.sync.aligned.u32 40; exit;
      TAKE: setmaxnreg.inc.sync.aligned.u32 232; setp.eq.u32 %p1, %r1, 128; @%p1 st.global.u32 [%rd0], 1; exit;)";
  EXPECT_EQ(run(bounds, three)[0], 1u);
  std::string greedy = three;
  greedy.replace(greedy.find("232"), 3, "240");
  EXPECT_CONTAINS(fault_of(bounds, greedy), "(setmaxnreg.inc)");
  EXPECT_CONTAINS(fault_of(bounds, "setmaxnreg.dec.sync.aligned.u32 232; exit;"), "the warp has only 168");
  // 13 warps: one quarter of the SM has four of them, 16384 / 128.
  bounds = {.block = {416, 1, 1}, .directives = ".maxntid 416, 1, 1"};
  EXPECT_CONTAINS(fault_of(bounds, "setmaxnreg.dec.sync.aligned.u32 152; exit;"), "the warp has only 128");
}

// As cuFuncGetAttribute(MAX_THREADS_PER_BLOCK) of an H200 says: 384 threads at 168 registers, 256 at 170.
TEST(Registers, AWarpTakesUnitsOf8FromAQuarterOfTheSm) {
  EXPECT_EQ(fault_of({.block = {384, 1, 1}, .directives = ".maxnreg 168"}, "exit;"), "no fault");
  EXPECT_CONTAINS(fault_of({.block = {384, 1, 1}, .directives = ".maxnreg 170"}, "exit;"),
                  "a CTA has 384 threads, but at 170 registers a thread no more than 256 fit");
}

}  // namespace
}  // namespace tw::sim::testing
