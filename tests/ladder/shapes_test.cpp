// From step 4 on a kernel serves every M and N: sizes known at launch only, edges that no tile and no 16
// bytes divide, problems with nothing in them.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/registry.h"
#include "tests/error/message.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"
#include "tilewright/runtime/reference.h"

namespace tw {
namespace {

using kernels::GemmKernel;
using kernels::GemmShape;

struct Case {
  std::string kernel, device;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " on " << c.device; }

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const GemmKernel& k : kernels::gemm_kernels()) {
    if (k.name < "gemm.step4" && k.name != "gemm") continue;
    for (const std::string& arch : k.archs)
      if (arch != "sm_103a") out.push_back({k.name, arch == "sm_90a" ? "sim:h200" : "sim:b200"});
  }
  return out;
}

class AnyShape : public ::testing::TestWithParam<Case> {
 protected:
  Compiled compiled(const GemmShape& s) {
    return lower(kernels::gemm_kernel(GetParam().kernel).build(s, device->target()));
  }
  // The kernel's D for m rows of random operands, which must be their product.
  std::vector<float> product(const Compiled& kernel, const GemmShape& s, int64_t m) {
    Tensor a = device->tensor(s.dtype, {m, s.k}, "A"), b = device->tensor(s.dtype, {s.n, s.k}, "B");
    Tensor d = device->tensor(s.dtype, {m, s.n}, "D");
    fill_normal(a, 1);
    fill_normal(b, 2);
    d.poison();
    device->launch(kernel, {a, b, d});
    EXPECT_EQ(d.unwritten(), 0u);
    Comparison result = compare(d, reference_gemm(a, b));
    EXPECT_TRUE(result.good(2e-3)) << format("{} x {} x {}: ", m, s.n, s.k) << to_string(result);
    return d.download_f32();
  }

  std::shared_ptr<Device> device = Device::open(GetParam().device);
};

TEST_P(AnyShape, RowsKnownAtLaunchOnly) {
  GemmShape s{0, 200, 136};
  s.runtime_m = true;
  const Compiled kernel = compiled(s);
  for (int64_t m : {0, 1, 127, 300}) {
    GemmShape fixed{m, s.n, s.k};
    EXPECT_EQ(product(kernel, s, m), product(compiled(fixed), fixed, m)) << m;
  }
}

// A sum of nothing is zero; of no rows or no columns there is nothing to write.
TEST_P(AnyShape, EmptyProblems) {
  for (GemmShape s : {GemmShape{130, 1200, 0}, {0, 72, 64}, {72, 0, 64}, {0, 0, 0}, {5, 3, 0, DType::bf16}})
    for (float x : product(compiled(s), s, s.m)) ASSERT_EQ(x, 0.0f);
  GemmShape s{0, 72, 0};
  s.runtime_m = true;
  const Compiled kernel = compiled(s);
  for (int64_t m : {0, 3})
    for (float x : product(kernel, s, m)) ASSERT_EQ(x, 0.0f);
}

// Rows of D that begin at multiples of 16, 8, 4 and 2 bytes.
TEST_P(AnyShape, EdgesThatNothingDivides) {
  for (GemmShape s : {GemmShape{131, 136, 8}, {65, 140, 24}, {1, 2, 72}, {129, 201, 200, DType::bf16}})
    product(compiled(s), s, s.m);
}

INSTANTIATE_TEST_SUITE_P(Ladder, AnyShape, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name = tested.param.kernel + "_" + tested.param.device.substr(4);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST(LadderShape, StepsOneToThreeHaveFixedRows) {
  EXPECT_EQ(testing::message_of(0,
                                [] {
                                  GemmShape s{128, 128, 64};
                                  s.runtime_m = true;
                                  kernels::gemm_kernel("gemm.step3").build(s, "sm_90a");
                                }),
            " gemm.step3: M may be a run-time size from gemm.step4 on");
}

}  // namespace
}  // namespace tw
