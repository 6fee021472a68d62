// What is right is not reported: every kernel of the registry, on shapes with tails and from one chunk of K
// to more than there are stages, on many schedules.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/registry.h"
#include "tilewright/base/format.h"
#include "tilewright/check/check.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"

namespace tw {
namespace {

using kernels::GemmKernel;
using kernels::GemmShape;

struct Case {
  std::string kernel, device;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " on " << c.device; }

class Clean : public ::testing::TestWithParam<Case> {
 protected:
  void expect_clean(GemmShape s, const std::vector<std::string>& schedules) {
    s.sms = 2;
    const auto device = Device::open(GetParam().device);
    const Compiled kernel = lower(kernels::gemm_kernel(GetParam().kernel).build(s, device->target()));
    Tensor a = device->tensor(s.dtype, {s.m, s.k}, "A"), b = device->tensor(s.dtype, {s.n, s.k}, "B");
    Tensor d = device->tensor(s.dtype, {s.m, s.n}, "D");
    fill_normal(a, 1);
    fill_normal(b, 2);
    const auto run = [&](const sim::RunOptions& sim) {
      d.poison();
      LaunchOptions launch;
      launch.sim = sim;
      device->launch(kernel, {a, b, d}, launch);
    };
    check::CheckOptions options;
    options.schedules = schedules;
    const check::CheckReport report = check::check(run, options);
    EXPECT_EQ(report.verdict, check::Verdict::clean)
        << format("{} x {} x {}\n", s.m, s.n, s.k) << check::to_text(report);
  }
};

TEST_P(Clean, OnTwentyRandomSchedules) {
  std::vector<std::string> schedules;
  for (int seed = 1; seed <= 20; ++seed) schedules.push_back(format("random:{}", seed));
  const GemmShape demo = kernels::gemm_kernel(GetParam().kernel).demo;
  expect_clean(demo.m > 1000 ? GemmShape{600, 264, 200} : demo, schedules);
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

INSTANTIATE_TEST_SUITE_P(Kernels, Clean, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name = tested.param.kernel + "_" + tested.param.device.substr(4);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace tw
