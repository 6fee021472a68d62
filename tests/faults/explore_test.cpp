// Other orders of synchronisation than the observed one: the kernels of the ladder leave none that matters.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/faults/gemm.h"
#include "tilewright/check/check.h"

namespace tw::faults {
namespace {

class Explored : public ::testing::TestWithParam<Case> {};

TEST_P(Explored, TheLadderIsCleanInEveryOrder) {
  const Case& c = GetParam();
  // Several tiles for each worker, more chunks of K than stages.
  const Gemm gemm(c, {c.device == "sim:b200" ? 1100 : 384, 512, 320});
  check::CheckOptions options;
  options.schedules = {};
  options.explore.runs = 20;
  const check::CheckReport report =
      check::check([&](const sim::RunOptions& sim) { gemm.launch(sim); }, options);
  EXPECT_EQ(report.verdict, check::Verdict::clean) << check::to_text(report);
  ASSERT_TRUE(report.exploration.has_value());
  EXPECT_TRUE(report.exploration->complete()) << check::to_text(report);
  std::printf("%s on %s: %llu orders in %llu runs\n", c.kernel.c_str(), c.device.c_str(),
              static_cast<unsigned long long>(report.exploration->orders),
              static_cast<unsigned long long>(report.exploration->runs));
}

INSTANTIATE_TEST_SUITE_P(Ladder, Explored, ::testing::ValuesIn(ladder_cases()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace tw::faults
