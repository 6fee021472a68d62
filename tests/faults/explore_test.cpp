// Other orders of synchronisation than the observed one: the kernels of the ladder leave none that matters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "kernels/registry.h"
#include "tilewright/base/format.h"
#include "tilewright/check/check.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"

namespace tw {
namespace {

struct Case {
  std::string kernel, device;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " on " << c.device; }

class Explored : public ::testing::TestWithParam<Case> {};

TEST_P(Explored, TheLadderIsCleanInEveryOrder) {
  const auto device = Device::open(GetParam().device);
  // Several tiles for each worker, more chunks of K than stages.
  kernels::GemmShape s{GetParam().device == "sim:b200" ? 1100 : 384, 512, 320};
  s.sms = 2;
  const Compiled kernel = lower(kernels::gemm_kernel(GetParam().kernel).build(s, device->target()));
  Tensor a = device->tensor(s.dtype, {s.m, s.k}, "A"), b = device->tensor(s.dtype, {s.n, s.k}, "B");
  Tensor d = device->tensor(s.dtype, {s.m, s.n}, "D");
  fill_normal(a, 1);
  fill_normal(b, 2);
  check::CheckOptions options;
  options.schedules = {};
  options.explore.runs = 20;
  const check::CheckReport report = check::check(
      [&](const sim::RunOptions& sim) {
        d.poison();
        LaunchOptions launch;
        launch.sim = sim;
        device->launch(kernel, {a, b, d}, launch);
      },
      options);
  EXPECT_EQ(report.verdict, check::Verdict::clean) << check::to_text(report);
  ASSERT_TRUE(report.exploration.has_value());
  EXPECT_TRUE(report.exploration->complete()) << check::to_text(report);
  std::printf("%s on %s: %llu orders in %llu runs\n", GetParam().kernel.c_str(), GetParam().device.c_str(),
              static_cast<unsigned long long>(report.exploration->orders),
              static_cast<unsigned long long>(report.exploration->runs));
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* step :
       {"gemm.step4", "gemm.step5", "gemm.step6", "gemm.step7", "gemm.step8", "gemm.step9"})
    for (const char* device : {"sim:b200", "sim:h200"}) out.push_back({step, device});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ladder, Explored, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name = tested.param.kernel + "_" + tested.param.device.substr(4);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace tw
