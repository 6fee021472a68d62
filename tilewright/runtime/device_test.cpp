#include "tilewright/runtime/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "tilewright/runtime/reference.h"
#include "tilewright/runtime/testing.h"

// Small kernels in PTX of the baseline sm_90, which every device runs, the simulated ones and the GPU: the
// same tests for all. Those of the GPU are named Cuda/*, and skip where there is none.
namespace tw {
namespace {

using testing::message_of;

Compiled kernel_from(std::string text, std::string entry) {
  Compiled k;
  k.name = "test." + entry;
  k.entry = std::move(entry);
  k.module = std::make_shared<ptx::Module>(ptx::parse(text, "device_test.ptx"));
  k.text = std::make_shared<const std::string>(std::move(text));
  return k;
}

Param tensor_param(const char* name, DType dtype, std::vector<Size> shape) {
  return {.kind = Param::Kind::tensor,
          .name = name,
          .dtype = dtype,
          .shape = std::move(shape),
          .align = 4,
          .loc = {}};
}
Param number_param(Param::Kind kind, const char* name, DType dtype) {
  return {.kind = kind, .name = name, .dtype = dtype, .shape = {}, .align = 4, .loc = {}};
}

const Size kN{.value = 0, .symbol = "N"};

// D[i] = scale * A[i] + B[i] for i < N
Compiled axpy() {
  Compiled k = kernel_from(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry axpy(.param .u64 A, .param .u64 B, .param .f32 scale, .param .u32 N, .param .u64 D)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [N];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [A];
  ld.param.u64 %rd2, [B];
  ld.param.u64 %rd3, [D];
  ld.param.f32 %f1, [scale];
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f2, [%rd5];
  ld.global.f32 %f3, [%rd6];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%rd7], %f4;
DONE:
  ret;
}
)",
                           "axpy");
  k.params = {tensor_param("A", DType::f32, {kN}), tensor_param("B", DType::f32, {kN}),
              number_param(Param::Kind::scalar, "scale", DType::f32),
              number_param(Param::Kind::size, "N", DType::u32), tensor_param("D", DType::f32, {kN})};
  k.grid[0] = [](const auto& size) { return (size("N") + 127) / 128; };
  k.block[0] = 128;
  return k;
}

// Every thread adds its rank in the cluster plus one to a counter.
Compiled count(uint32_t ctas, uint32_t cluster) {
  Compiled k = kernel_from(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry count(.param .u64 counter)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [counter];
  mov.u32 %r1, %cluster_ctarank;
  add.s32 %r2, %r1, 1;
  red.global.add.u32 [%rd1], %r2;
  ret;
}
)",
                           "count");
  k.params = {tensor_param("counter", DType::u32, {{.value = 1, .symbol = ""}})};
  k.grid[0] = [ctas](const auto&) { return ctas; };
  k.block[0] = 96;
  k.cluster[0] = cluster;
  return k;
}

// Reverses 256 numbers through the last kilobyte of its dynamic shared memory.
Compiled reverse(uint32_t shared_bytes) {
  Compiled k = kernel_from(R"(.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 pool[];
.visible .entry reverse(.param .u64 X, .param .u32 last)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [X];
  ld.param.u32 %r1, [last];
  mov.u32 %r2, pool;
  add.s32 %r2, %r2, %r1;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r4, [%rd3];
  shl.b32 %r5, %r3, 2;
  sub.s32 %r6, %r2, %r5;
  st.shared.u32 [%r6], %r4;
  bar.sync 0;
  sub.s32 %r6, %r2, 1020;
  add.s32 %r6, %r6, %r5;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd3], %r7;
  ret;
}
)",
                           "reverse");
  k.params = {tensor_param("X", DType::u32, {{.value = 256, .symbol = ""}}),
              number_param(Param::Kind::scalar, "last", DType::u32)};
  k.block[0] = 256;
  k.dynamic_shared = shared_bytes;
  return k;
}

std::vector<float> ramp(size_t n, float step) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = step * static_cast<float>(i);
  return values;
}

bool has_gpu() {
  try {
    Device::open("cuda:0");
    return true;
  } catch (const Error&) {
    return false;
  }
}

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string_view(GetParam()).starts_with("cuda") && !has_gpu()) GTEST_SKIP() << "no GPU here";
    device = Device::open(GetParam());
  }
  std::shared_ptr<Device> device;
};

TEST_P(OnDevice, DescribesItself) {
  EXPECT_EQ(device->name(), GetParam());
  EXPECT_GE(device->sm_count(), 100u);
  EXPECT_EQ(device->simulated(), std::string_view(GetParam()).starts_with("sim"));
  EXPECT_TRUE(device->target().ends_with("a")) << device->target();
}

TEST_P(OnDevice, TensorsKeepWhatTheyAreGiven) {
  Tensor t = device->tensor(DType::bf16, {3, 100}, "t");
  EXPECT_EQ(t.address() % 256, 0u);
  EXPECT_EQ(t.unwritten(), 600u);
  t.upload(ramp(300, 0.5f));
  EXPECT_EQ(t.unwritten(), 0u);
  EXPECT_EQ(t.download_f32()[255], 127.5f);
  t.poison();
  EXPECT_EQ(t.unwritten(), 600u);
}

// A tail: 1000 is no multiple of 128.
TEST_P(OnDevice, Axpy) {
  size_t n = 1000;
  Tensor a = device->tensor(DType::f32, {1000}, "a"), b = device->tensor(DType::f32, {1000}, "b");
  Tensor d = device->tensor(DType::f32, {1000}, "d");
  a.upload(ramp(n, 1));
  b.upload(ramp(n, 0.25f));
  device->launch(axpy(), {a, b, 2.0, d});
  device->synchronize();
  EXPECT_EQ(d.unwritten(), 0u);
  EXPECT_EQ(d.download_f32(), ramp(n, 2.25f));
}

TEST_P(OnDevice, AnEmptyProblemIsALaunchThatDoesNothing) {
  Tensor a = device->tensor(DType::f32, {0}, "a"), b = device->tensor(DType::f32, {0}, "b");
  Compiled k = axpy();
  for (Param& p : k.params)
    if (p.kind == Param::Kind::tensor) p.shape = {{.value = 0, .symbol = "N"}};
  device->launch(k, {a, b, 2.0, device->tensor(DType::f32, {0}, "d")});
  device->synchronize();
  Tensor x = device->tensor(DType::u32, {1}, "x");
  x.upload(std::vector<float>{7});
  device->launch(count(0, 1), {x});
  EXPECT_EQ(x.download_f32()[0], 7.0f);
}

TEST_P(OnDevice, AtomicsAndClusters) {
  Tensor counter = device->tensor(DType::u32, {1}, "counter");
  for (auto [ctas, cluster, expected] :
       {std::array<uint32_t, 3>{50, 1, 50 * 96}, {10, 2, 5 * 96 * 3}, {32, 16, 2 * 96 * 136}}) {
    counter.upload(std::vector<float>{0});
    device->launch(count(ctas, cluster), {counter});
    EXPECT_EQ(counter.download_f32()[0], static_cast<float>(expected)) << cluster;
  }
}

TEST_P(OnDevice, AllTheSharedMemoryOfACta) {
  for (uint32_t bytes : {1024u, 49152u, 232448u}) {
    Tensor x = device->tensor(DType::u32, {256}, "x");
    x.upload(ramp(256, 1));
    device->launch(reverse(bytes), {x, bytes - 4});
    std::vector<float> expected = ramp(256, 1);
    EXPECT_EQ(x.download_f32(), std::vector<float>(expected.rbegin(), expected.rend())) << bytes;
  }
  Tensor x = device->tensor(DType::u32, {256}, "x");
  std::string message = message_of([&] { device->launch(reverse(232449), {x, 0}); });
  EXPECT_TRUE(
      message.starts_with("error: test.reverse: a CTA needs 232449 bytes of shared memory (0 static, 232449 "
                          "dynamic), ") &&
      message.ends_with(" allows 232448"))
      << message;
}

TEST_P(OnDevice, ForeignPtx) {
  ptx::Module module = *axpy().module;
  Tensor a = device->tensor(DType::f32, {64}, "a"), d = device->tensor(DType::f32, {64}, "d");
  a.upload(ramp(64, 1));
  sim::Launch launch;
  launch.grid = {1, 1, 1};
  launch.block = {64, 1, 1};
  launch.params.resize(32);
  auto put = [&](size_t offset, auto value) { std::memcpy(&launch.params[offset], &value, sizeof value); };
  put(0, a.address());
  put(8, a.address());
  put(16, 3.0f);
  put(20, uint32_t{64});
  put(24, d.address());
  device->launch_ptx(module, "axpy", launch);
  EXPECT_EQ(d.download_f32(), ramp(64, 4));
}

TEST_P(OnDevice, OutputNobodyWroteIsCounted) {
  Tensor a = device->tensor(DType::f32, {256}, "a"), b = device->tensor(DType::f32, {256}, "b");
  Tensor d = device->tensor(DType::f32, {256}, "d");
  a.upload(ramp(256, 1));
  b.upload(ramp(256, 1));
  Compiled k = axpy();
  k.grid[0] = [](const auto&) { return 1; };  // half of what is needed
  device->launch(k, {a, b, 1.0, d});
  EXPECT_EQ(d.unwritten(), 128u * 4);
  std::vector<double> reference(256);
  for (size_t i = 0; i < 256; ++i) reference[i] = 2.0 * static_cast<double>(i);
  EXPECT_FALSE(compare(d, reference).good(1e-6));
}

TEST_P(OnDevice, TimesALaunch) {
  Tensor x = device->tensor(DType::u32, {256}, "x");
  x.upload(ramp(256, 1));
  EXPECT_GT(device->launch(reverse(1024), {x, 1020}, {.sim = {}, .timed = true}).seconds, 0);
}

std::string device_name(const ::testing::TestParamInfo<const char*>& tested) {  // "sim:b200" as "sim_b200"
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Sim, OnDevice, ::testing::Values("sim:h100", "sim:h200", "sim:b200", "sim:b300"),
                         device_name);
INSTANTIATE_TEST_SUITE_P(Cuda, OnDevice, ::testing::Values("cuda:0"), device_name);

TEST(CudaGpu, CompilerErrorsShowTheLogAndTheKernel) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  auto device = Device::open("cuda:0");
  Compiled k = axpy();
  std::string text = *k.text;
  text.replace(text.find("mul.wide.u32"), 12, "mul.wise.u32");
  k.text = std::make_shared<const std::string>(text);
  Tensor t = device->tensor(DType::f32, {8}, "t");
  std::string message = message_of([&] { device->launch(k, {t, t, 1.0, t}); });
  EXPECT_TRUE(
      message.starts_with("driver error: test.axpy: the driver's compiler refuses the PTX: CUDA_ERROR_"))
      << message;
  EXPECT_NE(message.find("line 21"), std::string::npos) << message;
}

TEST(CudaGpu, OpensOnce) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  EXPECT_EQ(Device::open("cuda:0"), Device::open("cuda:0"));
}

// Loses the context of its process, so CudaGpu.AFaultNamesTheLaunch runs it in another one.
TEST(CudaGpu, DISABLED_ReadsOutOfBounds) {
  auto device = Device::open("cuda:0");
  ptx::Module module = *count(1, 1).module;
  sim::Launch launch;
  launch.block = {32, 1, 1};
  launch.params.resize(8);  // a null pointer
  device->launch_ptx(module, "count", launch);
  std::puts(message_of([&] { device->synchronize(); }).c_str());
}

TEST(CudaGpu, AFaultNamesTheLaunch) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  FILE* child = popen(
      "/proc/$PPID/exe --gtest_also_run_disabled_tests --gtest_filter=CudaGpu.DISABLED_ReadsOutOfBounds 2>&1",
      "r");
  ASSERT_NE(child, nullptr);
  std::string output;
  for (char line[512]; std::fgets(line, sizeof line, child);) output += line;
  pclose(child);
  EXPECT_NE(output.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << output;
  EXPECT_NE(output.find("note: the last launch was count, grid [1, 1, 1], block [32, 1, 1]"),
            std::string::npos)
      << output;
  EXPECT_NE(output.find("note: the driver will refuse all further work of this process"), std::string::npos)
      << output;
}

}  // namespace
}  // namespace tw
