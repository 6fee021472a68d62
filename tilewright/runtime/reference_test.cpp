#include "tilewright/runtime/reference.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "tilewright/runtime/random.h"
#include "tilewright/runtime/testing.h"

namespace tw {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Small integers: sums are exact in fp64, so any order of summation must give the very same value.
TEST(ReferenceGemm, EqualsTheDefinition) {
  EXPECT_TRUE(rc::check("D[i,j] = sum_k A[i,k] B[j,k]", [] {
    int64_t m = *rc::gen::inRange(1, 140), n = *rc::gen::inRange(1, 40), k = *rc::gen::inRange(1, 1100);
    auto values = [&](int64_t count) {
      std::vector<float> v = random_normal(static_cast<size_t>(count), *rc::gen::arbitrary<uint64_t>(), 8);
      for (float& x : v) x = std::nearbyint(x);
      return v;
    };
    std::vector<float> a = values(m * k), b = values(n * k);
    std::vector<double> d = reference_gemm(a, b, m, n, k);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += double{a[static_cast<size_t>(i * k + x)]} * b[static_cast<size_t>(j * k + x)];
        RC_ASSERT(d[static_cast<size_t>(i * n + j)] == sum);
      }
  }));
}

TEST(ReferenceGemm, ReadsWhatTheTensorsStore) {
  auto device = std::make_shared<testing::HostDevice>();
  Tensor a = device->tensor(DType::f16, {1, 2}, "a"), b = device->tensor(DType::f16, {1, 2}, "b");
  a.upload(std::vector<float>{2049, 1});  // stored as 2048
  b.upload(std::vector<float>{1, 1});
  EXPECT_EQ(reference_gemm(a, b), std::vector<double>{2049});
  Tensor c = device->tensor(DType::f16, {1, 3}, "c");
  EXPECT_EQ(testing::message_of([&] { reference_gemm(a, c); }),
            "error: a product D = A B^T takes A [m, k] and B [n, k], given [1, 2] and [1, 3]");
}

TEST(Compare, FrobeniusBeforeAndAfterRounding) {
  // |(3,4) - (3,4.5)| / |(3,4)| = 0.1
  Comparison c = compare(std::vector<float>{3, 4.5f}, DType::f32, std::vector<double>{3, 4});
  EXPECT_DOUBLE_EQ(c.error, 0.1);
  EXPECT_EQ(c.worst, 1);
  // 2049 is stored as 2048 in f16: off by half a unit before rounding, exact after.
  c = compare(std::vector<float>{2048}, DType::f16, std::vector<double>{2049});
  EXPECT_DOUBLE_EQ(c.error, 1.0 / 2049);
  EXPECT_EQ(c.error_rounded, 0);
  EXPECT_TRUE(c.good(2e-3));
  EXPECT_FALSE(compare(std::vector<float>{2056}, DType::f16, std::vector<double>{2049}).good(2e-3));
}

TEST(Compare, NonFiniteElementsAreNeverGood) {
  for (float bad : {kNan, kInfinity, -kInfinity}) {
    Comparison c = compare(std::vector<float>{1, bad, 3}, DType::f16, std::vector<double>{1, 2, 3});
    EXPECT_EQ(c.non_finite, 1);
    EXPECT_EQ(c.worst, 1);
    EXPECT_TRUE(std::isinf(c.error));
    EXPECT_TRUE(std::isinf(c.error_rounded));
    EXPECT_FALSE(c.good(1e9));
  }
  // But the type may hold nothing better: f16 ends at 65504.
  Comparison overflow = compare(std::vector<float>{1, kInfinity}, DType::f16, std::vector<double>{1, 70000});
  EXPECT_EQ(overflow.non_finite, 0);
  EXPECT_EQ(overflow.error, 0);
  EXPECT_FALSE(
      compare(std::vector<float>{1, -kInfinity}, DType::f16, std::vector<double>{1, 70000}).good(2e-3));
  EXPECT_FALSE(compare(std::vector<float>{1, 65504}, DType::f16, std::vector<double>{1, 70000}).good(2e-3));
}

TEST(Compare, AZeroReferenceAllowsOnlyZero) {
  EXPECT_TRUE(compare(std::vector<float>{0}, DType::f32, std::vector<double>{0}).good(1e-9));
  EXPECT_FALSE(compare(std::vector<float>{1e-30f}, DType::f32, std::vector<double>{0}).good(1e9));
}

TEST(Compare, UnwrittenBytesAreNeverGood) {
  auto device = std::make_shared<testing::HostDevice>();
  Tensor t = device->tensor(DType::f16, {4}, "t");
  t.upload(std::vector<float>{1, 2, 3, 4});
  EXPECT_TRUE(compare(t, std::vector<double>{1, 2, 3, 4}).good(1e-9));
  t.poison();
  Comparison c = compare(t, std::vector<double>{1, 2, 3, 4});
  EXPECT_EQ(c.unwritten, 8u);
  EXPECT_EQ(to_string(c),
            "error inf, rounded inf, 4 elements are not finite, 8 bytes were never written, worst at 0: "
            "nan for 1");
}

TEST(Random, IsAFunctionOfSeedAndIndex) {
  std::vector<float> long_run = random_normal(300001, 7), short_run = random_normal(1000, 7);
  EXPECT_TRUE(std::equal(short_run.begin(), short_run.end(), long_run.begin()));
  EXPECT_NE(random_normal(8, 7), random_normal(8, 8));
}

// Moments of the standard normal distribution are 0, 1, 0, 3; each within five standard errors of a sample of
// n.
TEST(Random, IsStandardNormal) {
  size_t n = 1 << 20;
  double moments[5] = {};
  for (float x : random_normal(n, 42))
    for (int p = 1; p <= 4; ++p) moments[p] += std::pow(double{x}, p) / static_cast<double>(n);
  double error = 1 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(moments[1], 0, 5 * error);
  EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2.0) * error);
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15.0) * error);
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96.0) * error);
}

TEST(Random, NeighboursAreUncorrelated) {
  std::vector<float> x = random_normal(1 << 18, 3), y = random_normal(1 << 18, 4);
  double lag = 0, seeds = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    lag += double{x[i]} * x[i + 1];
    seeds += double{x[i]} * y[i];
  }
  double bound = 5 * std::sqrt(static_cast<double>(x.size()));
  EXPECT_LT(std::abs(lag), bound);
  EXPECT_LT(std::abs(seeds), bound);
}

}  // namespace
}  // namespace tw
