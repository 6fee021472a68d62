#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "tilewright/base/error.h"
#include "tilewright/machine/gpu.h"
#include "tilewright/machine/roofline.h"
#include "tilewright/machine/target.h"

namespace tw::machine {
namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// Dense f16 peaks of the data sheets, in TFLOPS: H100 SXM and H200 989, B200 2250. The sheets assume a lower
// clock than the highest, so ours lie above by no more than the ratio of the clocks.
TEST(Gpu, TensorPeaksStandNearTheDataSheets) {
  for (auto [name, sheet] : {std::pair{"h100", 989.0}, {"h200", 989.0}, {"b200", 2250.0}}) {
    double tflops = peak(gpu(name), DType::f16).flops_per_second / 1e12;
    EXPECT_GE(tflops, sheet) << name;
    EXPECT_LE(tflops, sheet * 1.09) << name;
  }
  // B300: 2500 TFLOPS f16 and 15 PFLOPS NVFP4, given for no particular clock.
  EXPECT_NEAR(peak(gpu("b300"), DType::f16).flops_per_second, 2500e12, 0.02 * 2500e12);
  EXPECT_NEAR(peak(gpu("b300"), DType::e2m1).flops_per_second, 15e15, 0.02 * 15e15);
  // "1070 TFLOPS" of 132 SMs at 1.98 GHz, the ceiling seen by a main loop alone (1073 measured).
  EXPECT_NEAR(peak(gpu("h200"), DType::bf16).flops_per_second, 1070e12, 1e12);
}

TEST(Gpu, LimitsOfComputeCapability9And10) {
  for (const Gpu& g : gpus()) {
    EXPECT_EQ(g.shared_per_sm, 233472u);
    EXPECT_EQ(g.shared_per_cta, 232448u);
    EXPECT_EQ(g.registers_per_sm, 65536u);
    EXPECT_EQ(g.threads_per_sm, 2048u);
    EXPECT_EQ(g.ctas_per_sm, 32u);
    EXPECT_EQ(g.tensor_memory_columns, g.arch == "sm_90a" ? 0u : 512u) << g.name;
  }
  EXPECT_EQ(gpu("b300").arch, "sm_103a");
  EXPECT_EQ(gpu("b300").ex2_per_clock, 2 * gpu("b200").ex2_per_clock);
}

TEST(Gpu, AnUnknownNameListsTheKnownOnes) {
  EXPECT_EQ(message_of([] { gpu("a100"); }), "error: unknown GPU 'a100'; known: h100, h200, b200, b300");
}

// PTX ISA, "PTX Module Directives: .target": the onion layer model, its suffixes, and the table of families.
TEST(Target, SuffixesBoundWhereCodeRuns) {
  for (auto [target, arch] : {std::pair{"sm_90a", "sm_90a"},
                              {"sm_90", "sm_90a"},
                              {"sm_80", "sm_100a"},
                              {"sm_100f", "sm_100a"},
                              {"sm_100f", "sm_103a"},
                              {"sm_101f", "sm_110a"}})
    EXPECT_EQ(why_not_on(target, arch), "") << target << " on " << arch;
  EXPECT_EQ(why_not_on("sm_100a", "sm_90a"),
            "sm_100a is architecture-specific: it runs on that architecture alone, not on sm_90a");
  EXPECT_EQ(why_not_on("sm_100a", "sm_103a"),
            "sm_100a is architecture-specific: it runs on that architecture alone, not on sm_103a");
  EXPECT_EQ(
      why_not_on("sm_103f", "sm_100a"),
      "sm_103f is family-specific: it runs on sm_103 and later architectures of its family, not on sm_100a");
  EXPECT_EQ(
      why_not_on("sm_100f", "sm_120a"),
      "sm_100f is family-specific: it runs on sm_100 and later architectures of its family, not on sm_120a");
  EXPECT_EQ(why_not_on("sm_100", "sm_90a"),
            "sm_100 runs on that architecture and later ones, not on the older sm_90a");
  EXPECT_EQ(message_of([] { why_not_on("compute_90", "sm_90a"); }),
            "error: 'compute_90' is no target architecture; one reads like sm_90a or sm_100f");
}

TEST(Roofline, RidgeAndIntensitiesOfTheB200) {
  Peak b200 = peak(2000, 8);
  EXPECT_DOUBLE_EQ(b200.ridge(), 250);
  Work square = work(GemmShape{.m = 4096, .n = 4096, .k = 4096});
  EXPECT_NEAR(square.intensity(), 1370, 10);
  EXPECT_DOUBLE_EQ(square.bytes, 3.0 * 4096 * 4096 * 2);
  Work row = work(GemmShape{.m = 1, .n = 4096, .k = 4096});
  EXPECT_NEAR(row.intensity(), 1, 0.01);

  Roofline compute = roofline(square, b200);
  EXPECT_EQ(compute.bound, Bound::compute);
  EXPECT_DOUBLE_EQ(compute.flops_per_second, 2000e12);
  EXPECT_DOUBLE_EQ(compute.seconds, 2.0 * 4096 * 4096 * 4096 / 2000e12);
  Roofline memory = roofline(row, b200);
  EXPECT_EQ(memory.bound, Bound::memory);
  EXPECT_DOUBLE_EQ(memory.seconds, row.bytes / 8e12);
}

TEST(Roofline, OutputTypeCounts) {
  Work half = work(GemmShape{.m = 128, .n = 256, .k = 64});
  Work full = work(GemmShape{.m = 128, .n = 256, .k = 64, .output = DType::f32});
  EXPECT_DOUBLE_EQ(full.bytes - half.bytes, 128 * 256 * 2);
  // Four-bit elements: half a byte each.
  EXPECT_DOUBLE_EQ(work(GemmShape{.m = 2, .n = 2, .k = 4, .input = DType::e2m1}).bytes, 8 + 8);
}

// The H200 table of docs/hardware.md: "attn fwd D=128 L=4096 B=4 H=16" at 620.2 TFLOPS and its causal row
// count 4*B*H*L*L*D and half of it.
TEST(Roofline, AttentionCountsAsThePublishedTablesDo) {
  AttentionShape s{
      .batch = 4, .q_heads = 16, .kv_heads = 16, .q_length = 4096, .kv_length = 4096, .head_dim = 128};
  double flops = 4.0 * 4 * 16 * 4096.0 * 4096 * 128;
  EXPECT_DOUBLE_EQ(work(s).flops, flops);
  EXPECT_DOUBLE_EQ(work(s).bytes, 4.0 * 4 * 16 * 4096 * 128 * 2);
  s.causal = true;
  EXPECT_DOUBLE_EQ(work(s).flops, flops / 2);
}

// "decode B=16 Hq=32 Hkv=8 L=8192 D=128 ms 0.1416 GB/s 3791" on the H200: 537 MB, nearly all K and V.
TEST(Roofline, DecodeIsBoundByTheKvCache) {
  AttentionShape s{
      .batch = 16, .q_heads = 32, .kv_heads = 8, .q_length = 1, .kv_length = 8192, .head_dim = 128};
  Work w = work(s);
  EXPECT_NEAR(w.bytes, 0.1416e-3 * 3791e9, 0.001 * w.bytes);
  EXPECT_EQ(roofline(w, peak(gpu("h200"), DType::bf16)).bound, Bound::memory);
  // One query sees all keys but half of its own diagonal cell.
  s.causal = true;
  EXPECT_NEAR(work(s).flops / w.flops, 1, 1e-4);
}

TEST(Roofline, CausalAreaAgreesWithCountingPairs) {
  EXPECT_TRUE(rc::check("bottom-right anchored mask", [] {
    int64_t lq = *rc::gen::inRange(1, 200), lk = *rc::gen::inRange(1, 200);
    double pairs = 0;
    for (int64_t i = 0; i < lq; ++i)
      for (int64_t j = 0; j < lk; ++j) {
        if (j < i + lk - lq) pairs += 1;
        if (j == i + lk - lq) pairs += 0.5;
      }
    AttentionShape s{
        .q_heads = 1, .kv_heads = 1, .q_length = lq, .kv_length = lk, .head_dim = 1, .causal = true};
    RC_ASSERT(work(s).flops == 4 * pairs);
  }));
}

TEST(Roofline, NeitherCeilingIsExceeded) {
  EXPECT_TRUE(rc::check("attainable <= both ceilings, time = flops / attainable", [] {
    Work w{*rc::gen::inRange<int64_t>(1, 1 << 30) * 1e3, *rc::gen::inRange<int64_t>(1, 1 << 30) * 1e1};
    Peak p = peak(*rc::gen::inRange(1, 5000), *rc::gen::inRange(1, 20));
    Roofline r = roofline(w, p);
    RC_ASSERT(r.flops_per_second <= p.flops_per_second);
    RC_ASSERT(r.flops_per_second / w.intensity() <= p.bytes_per_second * (1 + 1e-12));
    double seconds = w.flops / r.flops_per_second;
    RC_ASSERT(std::abs(seconds - r.seconds) <= 1e-12 * seconds);
  }));
}

TEST(Roofline, BadInputNamesTheRule) {
  EXPECT_EQ(message_of([] { work(GemmShape{.m = 0, .n = 1, .k = 1}); }),
            "error: GEMM: m must be positive, got 0");
  EXPECT_EQ(
      message_of([] {
        work(AttentionShape{.q_heads = 6, .kv_heads = 4, .q_length = 1, .kv_length = 1, .head_dim = 64});
      }),
      "error: attention: 6 query heads do not divide into 4 KV heads");
  EXPECT_EQ(message_of([] { peak(gpu("h200"), DType::e2m1); }),
            "error: no peak is known for products of e2m1 on h200");
  EXPECT_EQ(message_of([] { peak(0, 8); }), "error: a peak needs positive TFLOPS and TB/s, got 0 and 8");
}

}  // namespace
}  // namespace tw::machine
