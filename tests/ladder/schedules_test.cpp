// No order of asynchronous work shows in a result: not that of the engines, not when any one role is held
// back. On a small machine, so that small problems have several tiles for each CTA.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/registry.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/backends.h"
#include "tilewright/runtime/random.h"
#include "tilewright/runtime/reference.h"

namespace tw {
namespace {

using kernels::GemmKernel;
using kernels::GemmShape;

// An H200 or a B200 with four SMs.
std::shared_ptr<Device> small_device(std::string_view arch) {
  static const std::vector<machine::Gpu> kSmall = [] {
    std::vector<machine::Gpu> gpus{machine::gpu("h200"), machine::gpu("b200")};
    for (machine::Gpu& g : gpus) g.sms = 4;
    return gpus;
  }();
  return open_sim(kSmall[arch == "sm_90a" ? 0 : 1]);
}

std::vector<std::string> schedules(const Compiled& kernel) {
  std::vector<std::string> all{"eager", "late", "random:1", "random:2"};
  for (const std::string& role : kernel.names->roles) all.push_back("starve:" + role);
  return all;
}

struct Case {
  std::string kernel, arch;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " for " << c.arch; }

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const GemmKernel& k : kernels::gemm_kernels()) {
    if (k.name < "gemm.step4" && k.name != "gemm") continue;
    for (const std::string& arch : k.archs)
      if (arch != "sm_103a") out.push_back({k.name, arch});
  }
  return out;
}

// The kernel's D is the product, the same under each schedule.
void expect_product(const Case& c, GemmShape s) {
  s.sms = 2;
  SCOPED_TRACE(format("{} x {} x {}", s.m, s.n, s.k));
  std::shared_ptr<Device> device = small_device(c.arch);
  Compiled kernel = lower(kernels::gemm_kernel(c.kernel).build(s, c.arch));
  Tensor a = device->tensor(s.dtype, {s.m, s.k}, "A"), b = device->tensor(s.dtype, {s.n, s.k}, "B");
  fill_normal(a, 1);
  fill_normal(b, 2);
  std::vector<double> reference = reference_gemm(a, b);
  std::vector<float> first;
  for (const std::string& schedule : schedules(kernel)) {
    Tensor d = device->tensor(s.dtype, {s.m, s.n}, "D");
    d.poison();
    LaunchOptions options;
    options.sim.schedule = sim::parse_schedule(schedule);
    device->launch(kernel, {a, b, d}, options);
    Comparison result = compare(d, reference);
    EXPECT_TRUE(result.good(2e-3)) << schedule << ": " << to_string(result);
    if (first.empty()) first = d.download_f32();
    EXPECT_EQ(d.download_f32(), first) << schedule;
  }
}

class Schedules : public ::testing::TestWithParam<Case> {};

// One tile; fewer chunks of K than stages, as many, and more. The last chunk is not full.
TEST_P(Schedules, ChunksAroundTheNumberOfStages) {
  for (int64_t chunks = 1; chunks <= 6; ++chunks) expect_product(GetParam(), {40, 24, 64 * chunks - 56});
}

TEST_P(Schedules, SeveralTilesForEachWorker) {
  expect_product(GetParam(), {1030, 264, 72});
  expect_product(GetParam(), {270, 529, 200, DType::bf16});
}

TEST_P(Schedules, ThinProblems) {
  expect_product(GetParam(), {1, 600, 200});
  expect_product(GetParam(), {600, 1, 72});
}

INSTANTIATE_TEST_SUITE_P(Ladder, Schedules, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name = tested.param.kernel + "_" + tested.param.arch;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

// Those that `gemm` chooses from.
TEST(GemmTiles, EachGivesTheProduct) {
  const std::pair<const char*, std::vector<std::pair<int, int>>> kTiles[] = {
      {"sm_90a",
       {{128, 256},
        {256, 128},
        {128, 192},
        {128, 128},
        {64, 256},
        {64, 192},
        {64, 128},
        {128, 64},
        {64, 64}}},
      {"sm_100a",
       {{256, 256}, {256, 192}, {256, 128}, {256, 64}, {128, 256}, {128, 192}, {128, 128}, {128, 64}}}};
  for (const auto& [arch, tiles] : kTiles) {
    for (auto [tile_m, tile_n] : tiles) {
      SCOPED_TRACE(format("{} {}x{}", arch, tile_m, tile_n));
      GemmShape s{300, 520, 200};
      s.tile_m = tile_m;
      s.tile_n = tile_n;
      expect_product({"gemm", arch}, s);
    }
  }
}

}  // namespace
}  // namespace tw
