// What is wrong between a kernel and what it is launched with. Nothing runs; every message names the kernel,
// the parameter with its line, what it takes and what it was given.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/error/message.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/testing.h"

namespace {

using namespace tw::dsl;
using tw::Argument;
using tw::Compiled;
using tw::Device;
using tw::Tensor;
using tw::testing::message_of;
using tw::testing::text_of;

constexpr int base = __LINE__;
// D = alpha * A, 128 rows a CTA.
Compiled scale(Arch arch = Arch::sm_100a) {
  KernelBuilder k("scale", arch);
  auto M = k.size("M");
  auto alpha = k.scalar(f32, "alpha");
  k.require(M % 128 == 0, "M is a multiple of 128");
  k.launch({.grid = {M / 128}, .threads = 128});
  auto A = k.global(f32, {M, 32}, "A");
  auto D = k.global(f32, {M, 32}, "D");
  auto row = k.registers(f32, {128, 32}, tw::row_per_thread_layout(32), "row");
  warpgroup.copy(row, A.tile(cta_id.x * 128, 0));
  warpgroup.compute(row, row * alpha);
  warpgroup.copy(D.tile(cta_id.x * 128, 0), row);
  return tw::lower(k.finish());
}

class LaunchError : public ::testing::Test {
 protected:
  std::string launch(const std::vector<Argument>& arguments) {
    return message_of(base, [&] { device->launch(kernel, arguments); });
  }
  Tensor tensor(std::string_view name, tw::DType type, std::vector<int64_t> shape) {
    Tensor t = device->tensor(type, std::move(shape), name);
    t.upload(std::vector<float>(static_cast<size_t>(t.elements()), 1));
    return t;
  }

  std::shared_ptr<Device> device = Device::open("sim:b200");
  Compiled kernel = scale();
  Tensor a = tensor("a", f32, {256, 32}), d = tensor("d", f32, {256, 32});
};

TEST_F(LaunchError, NoneWhenAllFits) {
  EXPECT_EQ(launch({a, d, 0.5}), "no error");
  EXPECT_EQ(d.download_f32(), std::vector<float>(size_t{256} * 32, 0.5f));
}

TEST_F(LaunchError, WrongNumber) {
  EXPECT_EQ(launch({a, d}), " scale takes 3 arguments (A: f32 [M, 32], D: f32 [M, 32], alpha: f32), given 2");
}

// A store writes whole 16 bytes; a load of the same boxes through the same map needs nothing.
TEST_F(LaunchError, StoreThatWouldWriteBeyondItsTensor) {
  auto copy = [](bool stores) {
    KernelBuilder k("copy", Arch::sm_90a);
    auto n = k.size("n");
    k.launch({.grid = {ceil_div(n, int64_t{64})}, .threads = 128});
    auto v = k.global(f16, {n}, "v");
    auto tile = k.shared(f16, {64}, tw::TileLayout::row_major({64}), "tile");
    TmaBarrier loaded(k, 1, "loaded");
    if_(warp_id == 0, [&] {
      elected([&] {
        thread.copy_async(tile, v.tile({cta_id.x * 64}, {64}), {.signal = loaded[0]});
        loaded.arrive(0);
      });
      loaded.wait(0, 0);
      if (stores) elected([&] { thread.copy_async(v.tile({cta_id.x * 64}, {64}), tile); });
    });
    return tw::lower(k.finish());
  };
  auto hopper = Device::open("sim:h200");
  auto launch_with = [&](bool stores, int64_t n) {
    Tensor v = hopper->tensor(f16, {n}, "v");
    v.upload(std::vector<float>(static_cast<size_t>(n), 1));
    return message_of(base, [&] { hopper->launch(copy(stores), {v}); });
  };
  EXPECT_EQ(launch_with(true, 200), "no error");
  EXPECT_EQ(launch_with(false, 203), "no error");
  EXPECT_TRUE(
      launch_with(true, 203).ends_with("copy requires: n is a multiple of 8: TMA stores whole 16 bytes, also "
                                       "at the end of a row; given n = 203"))
      << launch_with(true, 203);
}

TEST_F(LaunchError, DependentOnMemoryOfAnotherDevice) {
  const Tensor elsewhere = Device::open("sim:h200")->tensor(f32, {64}, "elsewhere");
  for (const tw::DependentLaunch& dependent :
       {tw::DependentLaunch{{elsewhere}, {}}, tw::DependentLaunch{{a}, {elsewhere}}})
    EXPECT_EQ(message_of(base,
                         [&] {
                           device->launch(kernel, {a, d, 0.5}, {.sim = {}, .dependent = dependent});
                         }),
              " dependent launch: tensor 'elsewhere' is on sim:h200, the kernel runs on sim:b200");
}

TEST_F(LaunchError, WrongKind) {
  EXPECT_EQ(launch({a, 7, 0.5}), "+9 scale: parameter 'D' takes a tensor, f32 [M, 32], given the number 7");
  EXPECT_EQ(launch({a, d, a}),
            "+5 scale: parameter 'alpha' takes a number of type f32, given tensor 'a', f32 [256, 32]");
}

TEST_F(LaunchError, WrongElementType) {
  EXPECT_EQ(launch({tensor("a", bf16, {256, 32}), d, 0.5}),
            "+8 scale: parameter 'A' takes f32 [M, 32], given tensor 'a', bf16 [256, 32]: the element "
            "types differ");
}

TEST_F(LaunchError, WrongShape) {
  EXPECT_EQ(
      launch({tensor("a", f32, {256, 64}), d, 0.5}),
      "+8 scale: parameter 'A' takes f32 [M, 32], given tensor 'a', f32 [256, 64]: extent 1 must be 32");
  EXPECT_EQ(launch({tensor("a", f32, {256 * 32}), d, 0.5}),
            "+8 scale: parameter 'A' takes f32 [M, 32], given tensor 'a', f32 [8192]: the numbers of "
            "dimensions differ");
}

TEST_F(LaunchError, SizesThatDisagree) {
  EXPECT_EQ(launch({a, tensor("d", f32, {128, 32}), 0.5}),
            "+9 scale: parameter 'D' takes f32 [M, 32], given tensor 'd', f32 [128, 32]: this makes M = "
            "128, but 'A' made it 256\n+8 'A' is f32 [M, 32]");
}

TEST_F(LaunchError, NumberThatTheTypeCannotHold) {
  const int here = __LINE__;
  KernelBuilder k("count", Arch::sm_100a);
  auto D = k.global(i32, {1}, "D");
  auto n = k.scalar(i32, "n");
  D.store({0}, n);
  kernel = tw::lower(k.finish());
  Tensor out = tensor("out", i32, {1});
  auto count = [&](const Argument& argument) {
    return message_of(here, [&] { device->launch(kernel, {out, argument}); });
  };
  EXPECT_EQ(count(int64_t{1} << 40), "+3 count: parameter 'n' takes i32, which cannot hold 1099511627776");
  EXPECT_EQ(count(1.5),
            "+3 count: parameter 'n' takes an integer of type i32, given 1.5, a floating-point number");
}

TEST_F(LaunchError, RequirementOnARunTimeSize) {
  EXPECT_EQ(launch({tensor("a", f32, {200, 32}), tensor("d", f32, {200, 32}), 0.5}),
            "+6 scale requires: M is a multiple of 128; given M = 200");
}

// Tensors of a device are aligned to 256 bytes; a pointer of someone else's need not be.
TEST_F(LaunchError, UnalignedTensor) {
  auto host = std::make_shared<tw::testing::HostDevice>();
  host->next_address = 0x50008;
  Tensor unaligned = host->tensor(f32, {256, 32}, "a");
  host->next_address = 0x80000;
  std::vector<Argument> arguments{unaligned, host->tensor(f32, {256, 32}, "d"), 0.5};
  EXPECT_EQ(
      message_of(base, [&] { tw::bind_arguments(kernel, arguments, *host); }),
      "+8 scale: parameter 'A' needs an address that is a multiple of 16 bytes, tensor 'a' is at 0x50008");
}

TEST_F(LaunchError, TensorOfAnotherDevice) {
  Tensor far = Device::open("sim:h200")->tensor(f32, {256, 32}, "far");
  EXPECT_EQ(launch({far, d, 0.5}),
            "+8 scale: parameter 'A': tensor 'far' lives on sim:h200, the launch is on sim:b200");
}

TEST_F(LaunchError, KernelOfAnotherArchitecture) {
  kernel = scale(Arch::sm_90a);
  EXPECT_EQ(launch({a, d, 0.5}),
            " scale cannot run on sim:b200: sm_90a is architecture-specific: it runs on that architecture "
            "alone, not on sm_100a; compile it for sm_100a");
}

TEST_F(LaunchError, GridThatIsTooLarge) {
  KernelBuilder k("wide", Arch::sm_100a);
  k.launch({.grid = {1, 65536}, .threads = 32});
  warp.sync();
  kernel = tw::lower(k.finish());
  EXPECT_EQ(launch({}), " wide: grid [1, 65536, 1]: extent y must be from 1 to 65535 on sim:b200");
}

// A launch of foreign PTX brings its own parameter block.
TEST_F(LaunchError, ForeignPtx) {
  auto module = tw::ptx::parse(R"(.version 8.7
.target sm_100a
.address_size 64
.visible .entry touch(.param .u64 p)
{
  .reg .b64 %rd<1>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd0, [p];
  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%rd0];
  ret;
}
)",
                               "touch.ptx");
  auto launch = [&](const char* entry, uint64_t address, size_t bytes) {
    tw::sim::Launch raw;
    raw.block = {32, 1, 1};
    raw.params.resize(bytes);
    std::memcpy(raw.params.data(), &address, bytes);
    return text_of([&] { device->launch_ptx(module, entry, raw); });
  };
  EXPECT_EQ(launch("touch", a.address(), 8), "no error");
  EXPECT_EQ(launch("grab", a.address(), 8),
            "error: module touch.ptx has no entry 'grab'; its entries: touch");
  EXPECT_EQ(launch("touch", a.address(), 4),
            "error: launch of touch: the parameter block has 4 bytes, the entry takes 8\n"
            "note: in touch, grid [1, 1, 1], block [32, 1, 1], cluster [1, 1, 1], 0 bytes of dynamic shared "
            "memory");
  const std::string unaligned = launch("touch", a.address() + 2, 8);
  EXPECT_EQ(unaligned,
            tw::format("touch.ptx:9:3: fault: address {:#x} is not aligned to the 16 bytes of the access\n"
                       "  at ld.global.v4.b32 (line 9 of the PTX)\n"
                       "  in CTA (0, 0, 0), warp 0\n"
                       "note: in touch, grid [1, 1, 1], block [32, 1, 1], cluster [1, 1, 1], 0 bytes of "
                       "dynamic shared memory",
                       a.address() + 2));
}

}  // namespace
