// What is right is not reported: every kernel of the registry, at the sizes of the ladder's tests and from
// one chunk of K to more than there are stages, on many schedules.
#include <gtest/gtest.h>

#include "tests/faults/gemm.h"
#include "tests/ladder/sizes.h"
#include "tilewright/base/format.h"
#include "tilewright/check/check.h"

namespace tw::faults {
namespace {

using kernels::GemmKernel;
using kernels::GemmShape;

std::vector<std::string> twenty_random() {
  std::vector<std::string> schedules;
  for (int seed = 1; seed <= 20; ++seed) schedules.push_back(format("random:{}", seed));
  return schedules;
}

class Clean : public ::testing::TestWithParam<Case> {
 protected:
  void expect_clean(GemmShape s, const std::vector<std::string>& schedules) {
    const Gemm gemm(GetParam(), s);
    check::CheckOptions options;
    options.schedules = schedules;
    const check::CheckReport report =
        check::check([&](const sim::RunOptions& sim) { gemm.launch(sim); }, options);
    EXPECT_EQ(report.verdict, check::Verdict::clean)
        << format("{} x {} x {}\n", s.m, s.n, s.k) << check::to_text(report);
    EXPECT_TRUE(report.remarks.empty()) << check::to_text(report);
  }
};

TEST_P(Clean, AtEverySizeOfTheLadder) {
  for (const LadderSize& s : kLadderSizes)
    if (s.kernel == GetParam().kernel) expect_clean({s.m, s.n, s.k}, twenty_random());
}

TEST_P(Clean, OnTwentyRandomSchedules) {
  const GemmShape demo = kernels::gemm_kernel(GetParam().kernel).demo;
  expect_clean(demo.m > 1000 ? GemmShape{600, 264, 200} : demo, twenty_random());
}

TEST_P(Clean, FromOneChunkToMoreThanThereAreStages) {
  if (kernels::gemm_kernel(GetParam().kernel).demo.m == 128 || GetParam().kernel == "gemm.step3")
    GTEST_SKIP() << "takes whole tiles only";
  for (int64_t k : {8, 64, 72, 256, 320, 520}) expect_clean({130, 201, k}, {"eager", "late"});
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const GemmKernel& k : kernels::gemm_kernels())
    for (const std::string& arch : k.archs)
      if (arch != "sm_103a") out.push_back({k.name, arch == "sm_90a" ? "sim:h200" : "sim:b200"});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Clean, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace tw::faults
