// What a kernel's author reads when a kernel is wrong. Every message names the line and the rule.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/registry.h"
#include "tests/error/message.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/lower/lower.h"

namespace {

using namespace tw::dsl;
using tw::lower;
using tw::testing::message_of;

TEST(LanguageError, ShapeTheStepCannotDo) {
  auto build = [](const char* kernel, int64_t m, int64_t n, int64_t k) {
    return message_of(0, [&] { tw::kernels::gemm_kernel(kernel).build({m, n, k}, "sm_100a"); });
  };
  EXPECT_NE(build("gemm.step1", 128, 128, 128)
                .find("gemm.step1: step 1 computes one tile: M = 128, N = 128, K = 64"),
            std::string::npos);
  EXPECT_NE(build("gemm.step2", 128, 128, 96).find("gemm.step2: K is a multiple of 64"), std::string::npos);
  EXPECT_NE(build("gemm.step3", 200, 128, 64).find("gemm.step3: M is a multiple of 128"), std::string::npos);
  EXPECT_NE(build("gemm.step3", 128, 128, 0).find("gemm.step3: K is a multiple of 64"), std::string::npos);
  for (const char* kernel : {"gemm.step4", "gemm.step9_clc", "gemm"})
    EXPECT_NE(
        build(kernel, 128, 128, 12)
            .find(std::string(kernel) + ": K is a multiple of 8: rows of A and B are multiples of 16 bytes"),
        std::string::npos);
  EXPECT_EQ(build("gemm.step0", 1, 1, 1),
            " unknown kernel 'gemm.step0'; known: gemm.step1, gemm.step2, gemm.step3, "
            "gemm.step4, gemm.step5, gemm.step6, gemm.step7, gemm.step8, gemm.step9, gemm.step9_clc, gemm");
}

TEST(LanguageError, TypeTheLadderDoesNotCompute) {
  EXPECT_EQ(message_of(0,
                       [] {
                         tw::kernels::gemm_kernel("gemm.step1").build({128, 128, 64, f32}, "sm_100a");
                       }),
            " the GEMM ladder computes f16 and bf16, not f32");
  EXPECT_EQ(message_of(0,
                       [] {
                         tw::kernels::gemm_kernel("gemm.step1").build({128, 128, 64}, "sm_80");
                       }),
            " unknown architecture 'sm_80'; known: sm_90a, sm_100a, sm_103a");
}

TEST(LanguageError, ScopeDoesNotFitTheActiveThreads) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.threads = 256});
    auto A = k.global(f16, {128, 64}, "A");
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    if_(warp_id < 2, [&] { warpgroup.copy(As, A); });
    k.finish();
  });
  EXPECT_EQ(text,
            "+6 warpgroup.copy needs whole warpgroups, but only 64 of 128 threads of warpgroup 0 are active\n"
            "+6 active threads are narrowed here: threads 0..63");
}

TEST(LanguageError, ScopeUnderARunTimeGuard) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    auto n = k.size("n");
    if_(thread_id < n, [&] { cta.sync(); });
    k.finish();
  });
  EXPECT_EQ(text,
            "+4 cta.sync needs whole CTAs, but the guard lets through threads known only at run time\n"
            "+4 active threads are narrowed here: a part, known only at run time, of threads 0..127");
}

TEST(LanguageError, NoThreadReachesTheStatement) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    if_(warp_id == 4, [&] { warp.sync(); });
    k.finish();
  });
  EXPECT_EQ(text, "+3 no thread reaches this statement\n+3 active threads are narrowed here: no thread");
}

TEST(LanguageError, NoDispatchListsEveryRule) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    auto Bs = k.shared(f16, {128, 64}, swizzle_128B, "Bs");
    auto acc = k.tensor_memory(f32, {128, 128}, "acc");
    warpgroup.gemm_async(acc, As, Bs);
    lower(k.finish());
  });
  EXPECT_EQ(text,
            "+6 no dispatch of warpgroup.gemm_async fits (f32 acc[0:128, 0:128] in tensor_memory, "
            "f16 As[0:128, 0:64] in shared, f16 Bs[0:128, 0:64] in shared)\n"
            "+6 rule 'tcgen05': is issued by one thread: use thread.gemm_async, or cta_pair.gemm_async\n"
            "+6 rule 'wgmma': sm_100a has no wgmma");
}

TEST(LanguageError, GemmIssuedByManyThreads) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    auto acc = k.tensor_memory(f32, {128, 128}, "acc");
    thread.gemm_async(acc, As, As, {.dispatch = "tcgen05"});
    lower(k.finish());
  });
  EXPECT_EQ(text,
            "+5 no dispatch of thread.gemm_async fits (f32 acc[0:128, 0:128] in tensor_memory, "
            "f16 As[0:128, 0:64] in shared, f16 As[0:128, 0:64] in shared)\n"
            "+5 rule 'tcgen05': is issued by one thread, but active are threads 0..127");
}

// ---- CTA pairs ----

// One thread of the CTAs that `where` lets through issues the pair's MMA.
std::string pair_gemm(const Expr& where, int base) {
  return message_of(base, [&] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {2}});
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    auto acc = k.tensor_memory(f32, {128, 256}, "acc", cta_pair);
    if_(where && warp_id == 0, [&] { elected([&] { cta_pair.gemm_async(acc, As, As); }); });
    lower(k.finish());
  });
}

TEST(LanguageError, PairGemmIssuedByBothCtas) {
  const std::string wanted =
      "no dispatch of cta_pair.gemm_async fits (f32 acc[0:128, 0:256] in tensor_memory, f16 As[0:128, 0:64] "
      "in "
      "shared, f16 As[0:128, 0:64] in shared)";
  std::string text = pair_gemm(true, 0);
  EXPECT_NE(text.find(wanted), std::string::npos) << text;
  EXPECT_NE(text.find("rule 'tcgen05': is issued by one CTA of the pair, but both are active: guard it with "
                      "cluster_rank"),
            std::string::npos)
      << text;
  EXPECT_EQ(pair_gemm(cluster_rank == 0, 0), "no error");
  EXPECT_EQ(pair_gemm(cluster_rank == 1, 0), "no error");
}

TEST(LanguageError, GemmOfOneCtaIntoThePairsMemory) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {2}});
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    auto acc = k.tensor_memory(f32, {128, 128}, "acc", cta_pair);
    if_(warp_id == 0, [&] { elected([&] { thread.gemm_async(acc, As, As, {.dispatch = "tcgen05"}); }); });
    lower(k.finish());
  });
  EXPECT_NE(text.find("rule 'tcgen05': the accumulator 'acc' belongs to a cta_pair"), std::string::npos)
      << text;
}

TEST(LanguageError, PairGemmOperandsDoNotFit) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {2}});
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    auto acc = k.tensor_memory(f32, {128, 128}, "acc", cta_pair);
    elected([&] { cta_pair.gemm_async(acc, As, As); });
    k.finish();
  });
  EXPECT_EQ(
      text,
      "+6 cta_pair.gemm_async: each CTA holds half the rows of A and D and half the rows of B; accumulator "
      "128 x 128 (M/2 x N), A 128 x 64 (M/2 x K), B 128 x 64 (N/2 x K) do not fit together");
}

TEST(LanguageError, PairInAClusterOfOne) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.tensor_memory(f32, {128, 128}, "acc", cta_pair);
    k.finish();
  });
  EXPECT_EQ(text, "+3 'acc' belongs to a CTA pair; 'k' has clusters of 1 CTA");
}

TEST(LanguageError, TensorMemoryOfACtaAndOfAPair) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {2}});
    k.tensor_memory(f32, {128, 128}, "mine", cta);
    k.tensor_memory(f32, {128, 128}, "ours", cta_pair);
    lower(k.finish());
  });
  EXPECT_EQ(text,
            "+5 'ours' belongs to a cta_pair, 'mine' to a cta: a kernel's tcgen05 instructions have one "
            ".cta_group\n+4 'mine' is declared here");
}

TEST(LanguageError, WaitForAPairsBarrierInTheOddCta) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {4}});
    Barrier drained(k, 1, 2, "drained", cta_pair);
    if_(cluster_rank == 2, [&] { drained.wait(0, 0); });
    drained.wait(0, 0);
    k.finish();
  });
  EXPECT_EQ(
      text,
      "+6 'drained' lies in the even CTA of each pair, which alone can wait for it: guard the wait with "
      "cluster_rank\n+4 'drained' is declared here");
}

TEST(LanguageError, BytesThatOnlyTheOddCtaLoads) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {2}});
    auto A = k.global(f16, {128, 64}, "A");
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    TmaBarrier loaded(k, 1, "loaded", cta_pair);
    if_(cluster_rank == 1 && warp_id == 0, [&] {
      elected([&] {
        thread.copy_async(As, A, {.signal = loaded[0]});
        loaded.arrive(0);
      });
    });
    k.finish();
  });
  EXPECT_EQ(text,
            "+10 'loaded' lies in the even CTA of each pair, which expects the bytes but does not come here");
}

TEST(LanguageError, ClusterBarrierNeedsNoRank) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    k.launch({.cluster = {2}});
    Barrier b(k, 1, 2, "b", cluster);
    b.arrive_remote(0, 0);
    k.finish();
  });
  EXPECT_EQ(text, "+5 'b' lies in CTA 0 of the cluster: to arrive there takes no rank");
}

TEST(LanguageError, CommitToCtasBeyondTheCluster) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {2}});
    MmaBarrier done(k, 1, "done");
    elected([&] { done.commit(0, {.multicast = 0b100}); });
    k.finish();
  });
  EXPECT_EQ(text, "+5 commit to 'done': the mask 0x4 names CTAs beyond the cluster's 2");
}

TEST(LanguageError, NoBarrierSpansAPair) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    k.launch({.cluster = {4}});
    cta_pair.sync();
    k.finish();
  });
  EXPECT_EQ(text, "+4 no barrier spans a CTA pair alone: use cluster.sync");
}

TEST(LanguageError, ClusterSyncInSomeOfItsCtas) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    k.launch({.cluster = {2}});
    if_(cluster_rank == 0, [&] { cluster.sync(); });
    k.finish();
  });
  EXPECT_EQ(text,
            "+4 cluster.sync needs every CTA of the cluster\n"
            "+4 active threads are narrowed here: threads 0..127");
}

TEST(LanguageError, LaunchControlAnswers) {
  const int base = __LINE__;
  auto ask = [](Arch arch, std::vector<int64_t> shape, bool one_thread) {
    return message_of(base, [&] {
      KernelBuilder k("k", arch);
      auto answer = k.shared(u32, shape, tw::TileLayout::row_major(shape), "answer");
      TmaBarrier received(k, 1, "received");
      auto body = [&] {
        ptx::clusterlaunchcontrol_try_cancel(answer, received[0]);
        received.arrive(0);
      };
      if (one_thread) if_(warp_id == 0, [&] { elected(body); });
      else body();
      k.finish();
    });
  };
  EXPECT_EQ(ask(Arch::sm_100a, {4}, true), "no error");
  EXPECT_EQ(ask(Arch::sm_90a, {4}, true), "+7 sm_90a has no cluster launch control");
  EXPECT_EQ(ask(Arch::sm_100a, {2}, true),
            "+7 the answer of try_cancel is 16 bytes in shared memory; answer[0:2] is 8 in shared");
  EXPECT_EQ(ask(Arch::sm_100a, {4}, false),
            "+7 try_cancel asks once for each thread that runs it: active are threads 0..127; elect one");
}

TEST(LanguageError, UnknownDispatch) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    auto A = k.global(f16, {128, 64}, "A");
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    cta.copy(As, A, {.dispatch = "tma"});
    lower(k.finish());
  });
  EXPECT_EQ(text, "+5 cta.copy has no dispatch 'tma' (there are: vector, registers, stmatrix, tcgen05.ld)");
}

// Boxes begin at whole 16 bytes of a row; where that is not known for certain a GPU might stop the kernel.
TEST(LanguageError, BoxThatMayBeginInsideOf16Bytes) {
  auto box_at = [](const std::function<void(const std::function<void(Expr)>&)>& with_column) {
    const int base = __LINE__;
    return message_of(base, [&] {
      KernelBuilder k("k", Arch::sm_90a);
      auto A = k.global(f16, {256, 256}, "A");
      auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
      TmaBarrier loaded(k, 1, "loaded");
      with_column([&](Expr column) {
        if_(warp_id == 0, [&] {
          elected([&] {
            thread.copy_async(As, A.tile(0, column), {.signal = loaded[0]});
            loaded.arrive(0);
          });
        });
      });
      lower(k.finish());
    });
  };
  auto refusal = [](const std::string& columns, const std::string& why) {
    return "+9 no dispatch of thread.copy_async fits (f16 As[0:128, 0:64] in shared, f16 A[0:128, " +
           columns + "] in global)\n+9 rule 'tma': inner_coordinate: a box begins at element " + why;
  };
  EXPECT_EQ(box_at([](auto body) { body(4); }), refusal("4:68", "4 of a row, byte 8, no multiple of 16"));
  EXPECT_EQ(box_at([](auto body) {
              Var x("x", 0);
              body(x);
            }),
            refusal("x : +64", "x of a row, which is not known to be a multiple of 8 elements, 16 bytes"));
  EXPECT_EQ(box_at([](auto body) { for_range(0, 256, 4, body); }),
            refusal("i : +64", "i of a row, which is not known to be a multiple of 8 elements, 16 bytes"));
  for (int step : {8, 24, 64})
    EXPECT_EQ(box_at([&](auto body) { for_range(-64, 256, step, body); }), "no error") << step;
}

TEST(LanguageError, TooMuchSharedMemory) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("big", Arch::sm_90a);
    k.shared(f16, {8, 128, 64}, swizzle_128B, "As");
    k.shared(f16, {8, 128, 64}, swizzle_128B, "Bs");
    lower(k.finish());
  });
  EXPECT_EQ(text,
            "+2 'big' needs 262144 bytes of shared memory, a CTA has 232448\n"
            "+3 'As' takes 131072 bytes\n"
            "+4 'Bs' takes 131072 bytes");
}

TEST(LanguageError, TooMuchTensorMemory) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("big", Arch::sm_100a);
    k.tensor_memory(f32, {128, 256}, "S");
    k.tensor_memory(f32, {128, 256}, "O0");
    k.tensor_memory(f32, {128, 256}, "O1");
    lower(k.finish());
  });
  EXPECT_EQ(text,
            "+2 'big' needs 768 columns of tensor memory, an SM has 512\n"
            "+3 'S' takes 256 columns\n+4 'O0' takes 256 columns\n+5 'O1' takes 256 columns");
}

TEST(LanguageError, TensorMemoryOnHopper) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    k.tensor_memory(f32, {128, 128}, "acc");
  });
  EXPECT_EQ(text, "+3 'acc': sm_90a has no tensor memory");
}

TEST(LanguageError, ShapesOfACopyDiffer) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    auto A = k.global(f16, {128, 128}, "A");
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    cta.copy(As, A);
    k.finish();
  });
  EXPECT_EQ(text,
            "+5 copy: shapes differ: As[0:128, 0:64] is 128 x 64, A[0:128, 0:128] is 128 x 128\n"
            "+4 'As' is declared here\n+3 'A' is declared here");
}

TEST(LanguageError, CopyDoesNotConvert) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    auto A = k.global(bf16, {128, 64}, "A");
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    cta.copy(As, A);
    k.finish();
  });
  EXPECT_EQ(text, "+5 copy does not convert: 'As' holds f16, 'A' holds bf16; use cast");
}

TEST(LanguageError, TileLeavesItsBuffer) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    auto A = k.global(f16, {128, 64}, "A");
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    cta.copy(As, A.tile(64, 0));
    k.finish();
  });
  EXPECT_EQ(text,
            "+5 tile A[64:192, 0:64] leaves 'A': dimension 0 has 128 elements\n+3 'A' is declared here");
}

TEST(LanguageError, GemmOperandsDoNotFit) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_100a);
    auto As = k.shared(f16, {128, 64}, swizzle_128B, "As");
    auto acc = k.tensor_memory(f32, {128, 256}, "acc");
    elected([&] { thread.gemm_async(acc, As, As); });
    k.finish();
  });
  EXPECT_EQ(text,
            "+5 gemm_async: accumulator 128 x 256 (M x N), A 128 x 64 (M x K), B 128 x 64 (N x K) do not fit "
            "together");
}

TEST(LanguageError, VariableUsedAfterItsBlock) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    MmaBarrier b(k, 1, "b");
    Expr leaked;
    for_range(4, [&](Expr i) { leaked = i; });
    b.wait(0, leaked);
    k.finish();
  });
  EXPECT_EQ(text,
            "+6 variable 'i' is not alive here\n+5 it is declared here, in a block that has ended or in "
            "another kernel");
}

TEST(LanguageError, TwoBuffersOfOneName) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    k.global(f16, {128, 64}, "A");
    k.shared(f16, {128, 64}, swizzle_128B, "A");
  });
  EXPECT_EQ(text, "+4 'A' is the name of another buffer\n+3 which is declared here");
}

TEST(LanguageError, BarrierWithoutArrivals) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    Barrier b(k, 2, 0, "drained");
  });
  EXPECT_EQ(text, "+3 barrier 'drained': a phase expects 1 to 2^20 - 1 arrivals, got 0");
}

TEST(LanguageError, BarrierHasFewerStages) {
  const int base = __LINE__;
  auto text = message_of(base, [] {
    KernelBuilder k("k", Arch::sm_90a);
    Barrier b(k, 2, 1, "drained");
    b.wait(2, 0);
    k.finish();
  });
  EXPECT_EQ(text, "+4 barrier 'drained' has 2 stages, stage 2 is asked for");
}

TEST(LanguageError, NoKernelIsBeingBuilt) {
  const int base = __LINE__;
  EXPECT_EQ(message_of(base, [] { cta.sync(); }),
            "+1 no kernel is being built here: create a KernelBuilder first");
}

TEST(LanguageError, IllFormedRawInstruction) {
  auto text = message_of(__LINE__, [] {
    KernelBuilder k("k", Arch::sm_90a);
    ptx::instruction("fence.proxy.asink");
    lower(k.finish());
  });
  EXPECT_NE(text.find("fence.proxy.asink"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("+2 ")) << text;
}

}  // namespace
