#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tilewright/runtime/testing.h"

namespace tw {
namespace {

using testing::HostDevice;
using testing::message_of;

std::shared_ptr<HostDevice> host() { return std::make_shared<HostDevice>(); }

TEST(Tensor, DescribesItself) {
  auto device = host();
  Tensor t = device->tensor(DType::bf16, {3, 5}, "x");
  EXPECT_EQ(t.elements(), 15);
  EXPECT_EQ(t.bytes(), 30u);
  EXPECT_EQ(t.name(), "x");
  EXPECT_EQ(&t.device(), device.get());
  EXPECT_EQ(device->tensor(DType::e2m1, {5}, "y").bytes(), 3u);    // 20 bits
  EXPECT_EQ(device->tensor(DType::e3m2, {32}, "z").bytes(), 24u);  // 6 bits each
}

TEST(Tensor, KeepsItsDeviceAlive) {
  auto device = host();
  std::weak_ptr<HostDevice> watch = device;
  auto tensor = std::make_unique<Tensor>(device->tensor(DType::f32, {1}, "x"));
  device.reset();
  EXPECT_FALSE(watch.expired());
  tensor.reset();
  EXPECT_TRUE(watch.expired());
}

// Values every format here holds exactly come back as they went in.
TEST(Tensor, ConvertsToAndFromStorage) {
  const std::vector<float> values{0, 0.5f, 1, 1.5f, -2, 3, 4, -6};
  for (DType dtype : {DType::f16, DType::bf16, DType::tf32, DType::f32, DType::f64, DType::e4m3, DType::e5m2,
                      DType::e2m3, DType::e3m2, DType::e2m1}) {
    Tensor t = host()->tensor(dtype, {2, 4}, "x");
    t.upload(values);
    EXPECT_EQ(t.download_f32(), values) << name(dtype);
  }
  Tensor integers = host()->tensor(DType::i8, {4}, "x");
  integers.upload(std::vector<float>{-128, 0.5f, 1.5f, 300});
  EXPECT_EQ(integers.download_f32(), (std::vector<float>{-128, 0, 2, 127}));  // ties to even, saturating
}

TEST(Tensor, RoundsToNearestEven) {
  Tensor t = host()->tensor(DType::f16, {3}, "x");
  t.upload(std::vector<float>{2049, 2051, 65520});  // halfway, halfway, halfway to 65536
  EXPECT_EQ(t.download_f32(), (std::vector<float>{2048, 2052, std::numeric_limits<float>::infinity()}));
}

TEST(Tensor, PoisonIsNoNumber) {
  for (DType dtype :
       {DType::f16, DType::bf16, DType::tf32, DType::f32, DType::f64, DType::e4m3, DType::e5m2}) {
    Tensor t = host()->tensor(dtype, {7}, "x");
    EXPECT_EQ(t.unwritten(), t.bytes()) << name(dtype);
    EXPECT_EQ(t.first_unwritten(), 0u) << name(dtype);
    for (float value : t.download_f32()) EXPECT_TRUE(std::isnan(value)) << name(dtype);
    t.upload(std::vector<float>(7, std::numeric_limits<float>::quiet_NaN()));
    EXPECT_EQ(t.unwritten(), 0u) << name(dtype);  // a computed NaN counts as written
  }
}

TEST(Tensor, WithoutElements) {
  Tensor t = host()->tensor(DType::f16, {0, 3}, "x");
  EXPECT_EQ(t.bytes(), 0u);
  t.upload(std::vector<float>{});
  t.poison();
  EXPECT_EQ(t.unwritten(), 0u);
  EXPECT_TRUE(t.download_f32().empty());
}

TEST(Tensor, BadInputNamesTheTensor) {
  auto device = host();
  Tensor t = device->tensor(DType::f16, {2, 3}, "x");
  EXPECT_EQ(message_of([&] { t.upload(std::vector<float>(5)); }),
            "error: upload to tensor 'x': f16 [2, 3] takes 6 values, given 5");
  EXPECT_EQ(message_of([&] { t.upload(std::vector<std::byte>(6)); }),
            "error: upload to tensor 'x': f16 [2, 3] takes 12 bytes, given 6");
  EXPECT_EQ(message_of([&] {
              device->tensor(DType::f16, {2, -1}, "y");
            }),
            "error: tensor 'y': extents must not be negative, given [2, -1]");
  EXPECT_EQ(message_of([&] { device->tensor(DType::f16, {}, "y"); }),
            "error: tensor 'y': the shape has no extents");
  EXPECT_EQ(message_of([&] {
              device->tensor(DType::f16, {int64_t{1} << 40, int64_t{1} << 40}, "y");
            }),
            "error: tensor 'y': f16 [1099511627776, 1099511627776] is more than can be addressed");
  Tensor i = device->tensor(DType::i64, {2}, "i");
  EXPECT_EQ(message_of([&] { i.download_f32(); }),
            "error: tensor 'i': i64 has no conversion to and from f32; move its bytes instead");
}

}  // namespace
}  // namespace tw
