// Kernels whose hand-offs are all in order and whose results are not: the checker names what is wrong.
#include "tools/gemm_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/gemm_run.h"

namespace {

using namespace tw::dsl;
using tw::check::FaultKind;
using tw::check::Verdict;
using tw::kernels::GemmShape;
using tw::tools::GemmProblem;
using tw::tools::to_json;
using tw::tools::to_sarif;

struct Plant {
  bool same_columns = false;  // every CTA multiplies by the first 128 rows of B
  bool half_stored = false;   // the CTAs of the last 128 columns store nothing
};

constexpr int BM = 128, BN = 128, BK = 64;

// A grid of 128 x 128 tiles, as step 3 of the ladder.
Kernel product(const GemmShape& s, Arch arch, const Plant& plant) {
  KernelBuilder k("product", arch);
  k.launch({.grid = {s.m / BM, s.n / BN}, .threads = 128});
  const Expr m = cta_id.x * BM, n = cta_id.y * BN;
  auto A = k.global(s.dtype, {s.m, s.k}, "A"), B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {s.m, s.n}, "D");
  auto As = k.shared(s.dtype, {BM, BK}, swizzle_128B, "As"),
       Bs = k.shared(s.dtype, {BN, BK}, swizzle_128B, "Bs");
  auto acc = k.tensor_memory(f32, {BM, BN}, "acc");
  MmaBarrier done(k, 1, "done");
  for_range(s.k / BK, [&](Expr i) {
    cta.copy(As, A.tile(m, i * BK));
    cta.copy(Bs, B.tile(plant.same_columns ? Expr(0) : n, i * BK));
    ptx::fence_proxy_async();
    cta.sync();
    if_(warp_id == 0, [&] {
      elected([&] {
        thread.gemm_async(acc, As, Bs, {.accumulate = i != 0});
        done.commit(0);
      });
    });
    done.wait(0, i % 2);
  });
  ptx::tcgen05_fence_after_thread_sync();
  auto row = k.registers(f32, {BM, BN}, tw::row_per_thread_layout(BN), "row");
  auto out = k.registers(s.dtype, {BM, BN}, tw::row_per_thread_layout(BN), "out");
  warpgroup.copy(row, acc);
  warpgroup.cast(out, row);
  const Expr columns = plant.half_stored ? s.n - BN : s.n;
  if_(n < columns, [&] { warpgroup.copy(D.tile(m, n), out); });
  return k.finish();
}

class CheckGemm : public testing::Test {
 protected:
  CheckGemm() : device_(tw::Device::open("sim:b200")), progress_(false) {}

  GemmProblem problem(const Plant& plant) {
    const auto build = [plant](const GemmShape& s, std::string_view arch) {
      return product(s, tw::ir::arch_from_name(arch), plant);
    };
    return {{"product", "", {"sm_100a"}, build, {}}, *device_, {256, 256, 128}, progress_};
  }

  std::shared_ptr<tw::Device> device_;
  tw::report::Progress progress_;
};

TEST_F(CheckGemm, ARightProductIsClean) {
  GemmProblem right = problem({});
  const auto report = check_gemm(right, {"eager", "late"});
  EXPECT_EQ(report.verdict, Verdict::clean) << tw::check::to_text(report);
  EXPECT_TRUE(run_gemm(right, {}).good());
}

// Independent columns of B: the error of the wrong half is that of two unrelated products, sqrt(2) times
// its norm, and of the whole sqrt(2) * sqrt(1/2).
TEST_F(CheckGemm, AWrongResultIsAFault) {
  GemmProblem wrong = problem({.same_columns = true});
  const auto report = check_gemm(wrong, {"eager", "late"});
  ASSERT_EQ(report.verdict, Verdict::faults);
  ASSERT_EQ(report.faults.size(), 1u) << tw::check::to_text(report);  // once, not once a schedule
  const tw::check::Fault& fault = report.faults[0];
  EXPECT_EQ(fault.kind, FaultKind::wrong_result);
  EXPECT_EQ(fault.schedule, "eager");
  EXPECT_EQ(tw::shown_file(fault.loc), "tools/gemm_check_test.cpp");
  EXPECT_TRUE(
      fault.message.starts_with("buffer 'D': error 1.0e+00, rounded 1.0e+00, the tolerance is 0.002; "
                                "farthest off is D["))
      << fault.message;
  ASSERT_EQ(fault.notes.size(), 1u);
  EXPECT_NE(fault.notes[0].message.find("off by more than 1 %, all of them in D[0 to 255, 128 to 255]; the "
                                        "first is D[0, 128]: "),
            std::string::npos)
      << fault.notes[0].message;
  // `run` judges by the same code.
  const auto outcome = run_gemm(wrong, {});
  EXPECT_FALSE(outcome.good());
  EXPECT_EQ(outcome.judgement->fault->message, fault.message);
}

TEST_F(CheckGemm, UnwrittenOutputIsAFault) {
  GemmProblem half = problem({.half_stored = true});
  const auto report = check_gemm(half, {"late"});
  ASSERT_EQ(report.faults.size(), 1u) << tw::check::to_text(report);
  EXPECT_EQ(report.faults[0].kind, FaultKind::unwritten);
  EXPECT_EQ(report.faults[0].message,
            "nothing wrote 65536 of the 131072 bytes of buffer 'D'; the first are those of D[0, 128]");
}

// Each run is judged by what it wrote itself: right values of a run before do not hide what the next leaves
// out.
TEST_F(CheckGemm, EveryRunStartsFromAPoisonedOutput) {
  GemmProblem right = problem({}), half = problem({.half_stored = true});
  EXPECT_TRUE(run_gemm(right, {}).good());
  for (int run = 0; run < 2; ++run) {
    const auto outcome = run_gemm(half, {});
    ASSERT_FALSE(outcome.good());
    EXPECT_EQ(outcome.judgement->comparison.unwritten, 65536u);
  }
}

TEST_F(CheckGemm, ReportsAreDataToo) {
  GemmProblem wrong = problem({.same_columns = true}), half = problem({.half_stored = true});
  const auto json = to_json(check_gemm(wrong, {"eager"}));
  EXPECT_EQ(json["verdict"], "faults");
  EXPECT_EQ(json["faults"][0]["kind"], "wrong result");
  EXPECT_EQ(json["faults"][0]["explained_in"], "docs/faults/wrong-result.md");
  EXPECT_EQ(json["faults"][0]["at"]["file"], "tools/gemm_check_test.cpp");
  EXPECT_EQ(json["faults"][0]["notes"].size(), 1u);
  const auto sarif = to_sarif(check_gemm(half, {"eager"}));
  EXPECT_EQ(sarif["runs"][0]["results"][0]["ruleId"], "unwritten output");
}

}  // namespace
