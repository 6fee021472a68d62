#include "tilewright/runtime/launch.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/runtime/testing.h"

namespace tw {
namespace {

using testing::HostDevice;
using testing::message_of;

Size fixed(int64_t value) { return {.value = value, .symbol = ""}; }
Size symbol(const char* name) { return {.value = 0, .symbol = name}; }

Param tensor_param(const char* name, DType dtype, std::vector<Size> shape, uint32_t line) {
  return {.kind = Param::Kind::tensor,
          .name = name,
          .dtype = dtype,
          .shape = std::move(shape),
          .align = 16,
          .loc = {"step2.cpp", line, 5}};
}
Param scalar_param(const char* name, DType dtype, uint32_t line) {
  return {.kind = Param::Kind::scalar,
          .name = name,
          .dtype = dtype,
          .shape = {},
          .align = 16,
          .loc = {"step2.cpp", line, 5}};
}
Param size_param(const char* name) {
  return {.kind = Param::Kind::size, .name = name, .dtype = DType::u32, .shape = {}, .align = 16, .loc = {}};
}

// A: f16 [M, K], B: f16 [N, K], D: f16 [M, N], alpha: f32; M and K are passed as well.
Compiled gemm() {
  Compiled k;
  k.name = "gemm.step2";
  k.entry = "gemm_step2";
  k.params = {tensor_param("A", DType::f16, {symbol("M"), symbol("K")}, 10),
              tensor_param("B", DType::f16, {symbol("N"), symbol("K")}, 11),
              scalar_param("alpha", DType::f32, 12),
              size_param("M"),
              tensor_param("D", DType::f16, {symbol("M"), symbol("N")}, 13),
              size_param("K")};
  k.requirements = {
      {[](const auto& size) { return size("K") % 64 == 0; }, "K is a multiple of 64", {"step2.cpp", 20, 3}}};
  k.grid[0] = [](const auto& size) { return size("M") / 128; };
  k.grid[1] = [](const auto& size) { return size("N") / 128; };
  k.block[0] = 128;
  k.dynamic_shared = 32768;
  return k;
}

class Launching : public ::testing::Test {
 protected:
  std::string error_of(const Compiled& kernel, std::vector<Argument> arguments) {
    return message_of([&] { bind_arguments(kernel, arguments, *device); });
  }
  Tensor tensor(DType dtype, std::vector<int64_t> shape, std::string_view name) {
    return device->tensor(dtype, std::move(shape), name);
  }

  std::shared_ptr<HostDevice> device = std::make_shared<HostDevice>();
  Tensor a = tensor(DType::f16, {256, 64}, "a");
  Tensor b = tensor(DType::f16, {384, 64}, "b");
  Tensor d = tensor(DType::f16, {256, 384}, "d");
};

TEST_F(Launching, PacksTheParameterBlockAndEvaluatesTheGrid) {
  Binding binding = bind_arguments(gemm(), std::vector<Argument>{a, b, 0.5, d}, *device);
  EXPECT_EQ(binding.launch.grid, (sim::Dim3{2, 3, 1}));
  EXPECT_EQ(binding.launch.block, (sim::Dim3{128, 1, 1}));
  EXPECT_EQ(binding.launch.dynamic_shared, 32768u);
  ASSERT_EQ(binding.launch.params.size(), 36u);  // u64 A, u64 B, f32 alpha, u32 M, u64 D, u32 K
  auto at = [&](size_t offset, auto value) {
    std::memcpy(&value, &binding.launch.params[offset], sizeof value);
    return value;
  };
  EXPECT_EQ(at(0, uint64_t{}), a.address());
  EXPECT_EQ(at(8, uint64_t{}), b.address());
  EXPECT_EQ(at(16, float{}), 0.5f);
  EXPECT_EQ(at(20, uint32_t{}), 256u);
  EXPECT_EQ(at(24, uint64_t{}), d.address());
  EXPECT_EQ(at(32, uint32_t{}), 64u);
  using Sizes = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(binding.sizes, (Sizes{{"M", 256}, {"K", 64}, {"N", 384}}));
  EXPECT_EQ(describe_launch(gemm(), std::vector<Argument>{a, b, 0.5, d}, binding),
            "gemm.step2(A = f16 [256, 64] at 0x10000, B = f16 [384, 64] at 0x20000, alpha = 0.5, "
            "D = f16 [256, 384] at 0x30000, M = 256, K = 64, N = 384), grid [2, 3, 1], block [128, 1, 1], "
            "cluster [1, 1, 1], 32768 bytes of dynamic shared memory");
}

TEST_F(Launching, ScalarsTakeTheirNaturalAlignment) {
  Compiled k;
  k.name = "k";
  k.params = {scalar_param("u", DType::u8, 1), scalar_param("h", DType::f16, 2),
              scalar_param("i", DType::i16, 3), scalar_param("d", DType::f64, 4)};
  std::vector<std::byte> block =
      bind_arguments(k, std::vector<Argument>{200, 1.5, -2, 3}, *device).launch.params;
  const uint8_t expected[] = {200, 0, 0x00, 0x3e, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x40};
  ASSERT_EQ(block.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(block.data(), expected, sizeof expected), 0);
}

TEST_F(Launching, CountOfArguments) {
  EXPECT_EQ(error_of(gemm(), {a, b}),
            "error: gemm.step2 takes 4 arguments (A: f16 [M, K], B: f16 [N, K], alpha: f32, D: f16 [M, N]), "
            "given 2");
}

TEST_F(Launching, KindOfArgument) {
  EXPECT_EQ(
      error_of(gemm(), {a, 7, 1.0, d}),
      "step2.cpp:11:5: error: gemm.step2: parameter 'B' takes a tensor, f16 [N, K], given the number 7");
  EXPECT_EQ(
      error_of(gemm(), {a, b, b, d}),
      "step2.cpp:12:5: error: gemm.step2: parameter 'alpha' takes a number of type f32, given tensor 'b', "
      "f16 [384, 64]");
}

TEST_F(Launching, ElementType) {
  EXPECT_EQ(error_of(gemm(), {a, tensor(DType::bf16, {384, 64}, "b"), 1.0, d}),
            "step2.cpp:11:5: error: gemm.step2: parameter 'B' takes f16 [N, K], given tensor 'b', bf16 [384, "
            "64]: the "
            "element types differ");
}

TEST_F(Launching, Shape) {
  EXPECT_EQ(
      error_of(gemm(), {a, tensor(DType::f16, {384 * 64}, "b"), 1.0, d}),
      "step2.cpp:11:5: error: gemm.step2: parameter 'B' takes f16 [N, K], given tensor 'b', f16 [24576]: the "
      "numbers of dimensions differ");
  Compiled k = gemm();
  k.params[1].shape[0] = fixed(128);
  EXPECT_EQ(
      error_of(k, {a, b, 1.0, d}),
      "step2.cpp:11:5: error: gemm.step2: parameter 'B' takes f16 [128, K], given tensor 'b', f16 [384, 64]: "
      "extent 0 must be 128");
}

TEST_F(Launching, SizesThatDisagreeNameBothParameters) {
  EXPECT_EQ(error_of(gemm(), {a, tensor(DType::f16, {384, 96}, "b"), 1.0, d}),
            "step2.cpp:11:5: error: gemm.step2: parameter 'B' takes f16 [N, K], given tensor 'b', f16 [384, "
            "96]: this "
            "makes K = 96, but 'A' made it 64\n"
            "step2.cpp:10:5: note: 'A' is f16 [M, K]");
}

TEST_F(Launching, Requirements) {
  EXPECT_EQ(
      error_of(gemm(), {tensor(DType::f16, {256, 100}, "a"), tensor(DType::f16, {384, 100}, "b"), 1.0, d}),
      "step2.cpp:20:3: error: gemm.step2 requires: K is a multiple of 64; given M = 256, K = 100, N = 384");
}

TEST_F(Launching, Alignment) {
  device->next_address = 0x50008;
  Tensor unaligned = tensor(DType::f16, {384, 64}, "b");
  EXPECT_EQ(error_of(gemm(), {a, unaligned, 1.0, d}),
            "step2.cpp:11:5: error: gemm.step2: parameter 'B' needs an address that is a multiple of 16 "
            "bytes, tensor "
            "'b' is at 0x50008");
}

TEST_F(Launching, Device) {
  auto other = std::make_shared<HostDevice>("host:1");
  EXPECT_EQ(error_of(gemm(), {a, other->tensor(DType::f16, {384, 64}, "b"), 1.0, d}),
            "step2.cpp:11:5: error: gemm.step2: parameter 'B': tensor 'b' lives on host:1, the launch is on "
            "host:0");
  auto twin = std::make_shared<HostDevice>("host:0");
  EXPECT_EQ(
      error_of(gemm(), {a, twin->tensor(DType::f16, {384, 64}, "b"), 1.0, d}),
      "step2.cpp:11:5: error: gemm.step2: parameter 'B': tensor 'b' lives on another host:0 than the launch");
}

TEST_F(Launching, Scalars) {
  auto with = [&](DType dtype, Argument value) {
    Compiled k;
    k.name = "k";
    k.params = {scalar_param("s", dtype, 3)};
    return error_of(k, {value});
  };
  EXPECT_EQ(with(DType::i32, 1.5),
            "step2.cpp:3:5: error: k: parameter 's' takes an integer of type i32, given 1.5, a "
            "floating-point number");
  EXPECT_EQ(with(DType::i8, int64_t{128}),
            "step2.cpp:3:5: error: k: parameter 's' takes i8, which cannot hold 128");
  EXPECT_EQ(with(DType::i8, int64_t{-128}), "no error");
  EXPECT_EQ(with(DType::u32, int64_t{-1}),
            "step2.cpp:3:5: error: k: parameter 's' takes u32, which cannot hold -1");
  EXPECT_EQ(with(DType::u32, int64_t{0xffffffff}), "no error");
  EXPECT_EQ(with(DType::u64, int64_t{-1}),
            "step2.cpp:3:5: error: k: parameter 's' takes u64, which cannot hold -1");
  EXPECT_EQ(with(DType::f16, 70000.0),
            "step2.cpp:3:5: error: k: parameter 's' takes f16, which cannot hold 70000");
  EXPECT_EQ(with(DType::e2m1, 1.0),
            "step2.cpp:3:5: error: k: parameter 's': a scalar cannot be of type e2m1, PTX has no parameter "
            "of 4 bits");
}

TEST_F(Launching, ASizeNobodyGives) {
  Compiled k = gemm();
  k.params.push_back(size_param("G"));
  EXPECT_EQ(error_of(k, {a, b, 1.0, d}),
            "error: gemm.step2: the size G is in no tensor parameter's shape, so no argument can give it");
}

// gemm() with a tensor map of A [M, K], in boxes of 64 x 128, behind the first parameter.
Compiled with_map() {
  Compiled k = gemm();
  TensorMap map;
  map.dims = {[](const auto& size) { return size("K"); }, [](const auto& size) { return size("M"); }};
  map.strides = {[](const auto& size) { return 2 * size("K"); }};
  map.box = {64, 128};
  map.swizzle = TensorMap::Swizzle::b128;
  k.maps = {map};
  Param p;
  p.kind = Param::Kind::tensor_map;
  p.name = "A.map";
  p.loc = {"step2.cpp", 14, 5};
  k.params.insert(k.params.begin() + 1, p);
  k.requirements.clear();
  return k;
}

TEST_F(Launching, TensorMapsAreEncodedFromTheTensorTheyDescribe) {
  Binding binding = bind_arguments(with_map(), std::vector<Argument>{a, b, 0.5, d}, *device);
  // u64 A; the map at the next multiple of 64; u64 B.
  ASSERT_EQ(binding.launch.params.size(), 64u + 128 + 8 + 4 + 4 + 8 + 4);
  sim::TensorMapObject object;
  std::memcpy(object.data(), &binding.launch.params[64], object.size());
  const auto spec = sim::decode(std::span<const std::byte, sim::kTensorMapBytes>(object));
  ASSERT_TRUE(spec.has_value());
  sim::TensorMapSpec want;
  want.type = sim::TensorMapSpec::Type::f16;
  want.rank = 2;
  want.address = a.address();
  want.dims = {64, 256};
  want.strides = {2, 128};
  want.box = {64, 128};
  want.swizzle = sim::TensorMapSpec::Swizzle::b128;
  want.l2 = sim::TensorMapSpec::L2Promotion::b128;
  EXPECT_EQ(*spec, want);
  uint64_t address = 0;
  std::memcpy(&address, &binding.launch.params[192], sizeof address);
  EXPECT_EQ(address, b.address());
}

TEST_F(Launching, TensorMapErrorsNameKernelParameterAndRule) {
  Tensor odd_a = tensor(DType::f16, {256, 36}, "a"), odd_b = tensor(DType::f16, {384, 36}, "b");
  EXPECT_EQ(
      error_of(with_map(), {odd_a, odd_b, 1.0, d}),
      "step2.cpp:14:5: error: gemm.step2: parameter 'A.map' describes tensor 'a', f16 [256, 36] for boxes of "
      "tensor copies: the stride of dimension 1 is 72 bytes; strides must be multiples of 16");
  Compiled wide = with_map();
  wide.maps[0].box = {128, 128};
  EXPECT_EQ(
      error_of(wide, {a, b, 1.0, d}),
      "step2.cpp:14:5: error: gemm.step2: parameter 'A.map' describes tensor 'a', f16 [256, 64] for boxes of "
      "tensor copies: the box has 256 bytes along dimension 0; swizzle 128B takes at most 128");
  Compiled beyond = with_map();
  beyond.maps[0].dims[1] = [](const auto& size) { return size("M") + 1; };
  EXPECT_EQ(
      error_of(beyond, {a, b, 1.0, d}),
      "step2.cpp:14:5: error: gemm.step2: parameter 'A.map' describes tensor 'a', f16 [256, 64] for boxes of "
      "tensor copies: its dimensions and strides reach over 32896 bytes, the tensor has 32768");
  Compiled narrow = with_map();
  narrow.maps[0].dtype = DType::e2m1;
  EXPECT_EQ(error_of(narrow, {a, b, 1.0, d}),
            "step2.cpp:14:5: not modelled: gemm.step2: parameter 'A.map': tensor maps of type e2m1");
}

TEST_F(Launching, GridExtents) {
  Compiled k = gemm();
  k.grid[0] = [](const auto& size) { return size("M") - 257; };
  EXPECT_EQ(error_of(k, {a, b, 1.0, d}),
            "error: gemm.step2: grid extent x is -1 for M = 256, K = 64, N = 384; it must be from 0 to "
            "2147483647");
}

// What is not launched needs no tensor maps, which cannot describe a tensor without elements.
TEST_F(Launching, AnEmptyGridPacksNothing) {
  Compiled k = with_map();
  Tensor none = tensor(DType::f16, {0, 64}, "a");
  Binding binding =
      bind_arguments(k, std::vector<Argument>{none, b, 0.5, tensor(DType::f16, {0, 384}, "d")}, *device);
  EXPECT_TRUE(binding.empty());
  EXPECT_TRUE(binding.launch.params.empty());
  EXPECT_FALSE(bind_arguments(gemm(), std::vector<Argument>{a, b, 0.5, d}, *device).empty());
}

const LaunchLimits kH200{.device = "sim:h200", .arch = "sm_90a", .shared_per_cta = 232448, .max_cluster = 16};

std::string extents_error(sim::Dim3 grid, sim::Dim3 block, sim::Dim3 cluster = {}) {
  sim::Launch launch{.grid = grid, .block = block, .cluster = cluster, .dynamic_shared = 0, .params = {}};
  return message_of([&] { check_extents("k", launch, kH200); });
}

// CUDA Programming Guide, "Compute Capabilities": grid 2^31-1 x 65535 x 65535, block 1024 x 1024 x 64 and
// 1024 threads.
TEST(Limits, Extents) {
  EXPECT_EQ(extents_error({2147483647, 65535, 65535}, {1024, 1, 1}), "no error");
  EXPECT_EQ(extents_error({1, 1, 1}, {1, 1024, 1}), "no error");
  EXPECT_EQ(extents_error({1, 65536, 1}, {1, 1, 1}),
            "error: k: grid [1, 65536, 1]: extent y must be from 1 to 65535 on sim:h200");
  EXPECT_EQ(extents_error({1, 1, 1}, {1, 1, 65}),
            "error: k: block [1, 1, 65]: extent z must be from 1 to 64 on sim:h200");
  EXPECT_EQ(extents_error({1, 1, 1}, {0, 1, 1}),
            "error: k: block [0, 1, 1]: extent x must be from 1 to 1024 on sim:h200");
  EXPECT_EQ(extents_error({1, 1, 1}, {512, 4, 1}),
            "error: k: block [512, 4, 1] has 2048 threads, sim:h200 allows 1024");
  EXPECT_EQ(extents_error({32, 4, 1}, {1, 1, 1}, {8, 4, 1}),
            "error: k: cluster [8, 4, 1] has 32 CTAs, sim:h200 allows 16");
  EXPECT_EQ(extents_error({3, 4, 1}, {1, 1, 1}, {2, 1, 1}),
            "error: k: grid [3, 4, 1] is no multiple of the cluster [2, 1, 1]");
}

TEST(Limits, SharedMemory) {
  EXPECT_EQ(message_of([] { check_shared("k", 1024, 232448 - 1024, kH200); }), "no error");
  EXPECT_EQ(message_of([] { check_shared("k", 1024, 232448, kH200); }),
            "error: k: a CTA needs 233472 bytes of shared memory (1024 static, 232448 dynamic), sim:h200 "
            "allows 232448");
}

TEST(Limits, Architecture) {
  EXPECT_EQ(message_of([] { check_target("gemm.step4", "sm_90a", kH200); }), "no error");
  EXPECT_EQ(message_of([] { check_target("gemm.step4", "sm_100a", kH200); }),
            "error: gemm.step4 cannot run on sim:h200: sm_100a is architecture-specific: it runs on that "
            "architecture "
            "alone, not on sm_90a; compile it for sm_90a");
}

}  // namespace
}  // namespace tw
