// Every step of the ladder gives the product, on both simulated machines and on a GPU, for shapes that are
// not squares, in both types, on every schedule.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/registry.h"
#include "tests/ladder/sizes.h"
#include "tilewright/base/error.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"
#include "tilewright/runtime/reference.h"

namespace tw {
namespace {

using kernels::GemmShape;

constexpr const char* kSchedules[] = {"eager", "late", "random:1", "random:2", "random:3"};

class Ladder : public ::testing::TestWithParam<std::tuple<LadderSize, const char*, DType>> {};

TEST_P(Ladder, GivesTheProductOnEverySchedule) {
  const auto& [c, device_name, dtype] = GetParam();
  std::shared_ptr<Device> device;
  try {
    device = Device::open(device_name);
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const auto& archs = kernels::gemm_kernel(c.kernel).archs;
  if (std::find(archs.begin(), archs.end(), device->target()) == archs.end())
    GTEST_SKIP() << c.kernel << " is not written for " << device->target();
  GemmShape shape{c.m, c.n, c.k, dtype};
  Compiled kernel = lower(kernels::gemm_kernel(c.kernel).build(shape, device->target()));
  Tensor a = device->tensor(dtype, {c.m, c.k}, "A"), b = device->tensor(dtype, {c.n, c.k}, "B");
  fill_normal(a, 1);
  fill_normal(b, 2);
  std::vector<double> reference = reference_gemm(a, b);
  std::vector<float> first;
  for (const char* schedule : kSchedules) {
    Tensor d = device->tensor(dtype, {c.m, c.n}, "D");
    d.poison();
    LaunchOptions options;
    options.sim.schedule = sim::parse_schedule(schedule);
    device->launch(kernel, {a, b, d}, options);
    Comparison result = compare(d, reference);
    EXPECT_TRUE(result.good(2e-3)) << schedule << ": " << to_string(result);
    // The order of asynchronous work must not show in the result at all.
    if (first.empty()) first = d.download_f32();
    EXPECT_EQ(d.download_f32(), first) << schedule;
  }
}

std::string case_name(const ::testing::TestParamInfo<Ladder::ParamType>& tested) {
  const auto& [c, device, dtype] = tested.param;
  std::string step = c.kernel, machine = device;
  std::replace(machine.begin(), machine.end(), ':', '_');
  std::replace(step.begin(), step.end(), '.', '_');
  return format("{}_{}x{}x{}_{}_{}", step, c.m, c.n, c.k, machine, name(dtype));
}

INSTANTIATE_TEST_SUITE_P(AllSteps, Ladder,
                         ::testing::Combine(::testing::ValuesIn(kLadderSizes),
                                            ::testing::Values("sim:h200", "sim:b200", "cuda:0"),
                                            ::testing::Values(DType::f16, DType::bf16)),
                         case_name);

}  // namespace
}  // namespace tw
