// The language's constructs one by one: small kernels whose result plain C++ computes too. They run on both
// simulated machines, and on a GPU where there is one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tilewright/base/error.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"

namespace {

using namespace tw::dsl;
using tw::Compiled;
using tw::Device;
using tw::lower;
using tw::Tensor;

class SmallKernel : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      device_ = Device::open(GetParam());
    } catch (const tw::Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  Arch arch() const { return tw::ir::arch_from_name(device_->target()); }

  Tensor tensor(tw::DType t, std::vector<int64_t> shape, uint64_t seed) {
    Tensor x = device_->tensor(t, std::move(shape));
    if (seed) fill_normal(x, seed);
    else x.poison();
    return x;
  }

  std::shared_ptr<Device> device_;
};

// A tail in both dimensions and a run-time number of rows: what lies outside is neither read nor written.
TEST_P(SmallKernel, CopyThroughSharedMemoryWithTails) {
  constexpr int BM = 64, BN = 64;
  KernelBuilder k("copy_tails", arch());
  Expr rows = k.size("rows");
  int64_t columns = 200;
  k.launch({.grid = {ceil_div(rows, BM), ceil_div(columns, int64_t{BN})}, .threads = 128});
  auto A = k.global(f16, {rows, columns}, "A"), D = k.global(f16, {rows, columns}, "D");
  auto tile = k.shared(f16, {BM, BN}, swizzle_128B, "tile");
  cta.copy(tile, A.tile(cta_id.x * BM, cta_id.y * BN));
  cta.sync();
  cta.copy(D.tile(cta_id.x * BM, cta_id.y * BN), tile);
  Compiled kernel = lower(k.finish());
  for (int64_t r : {1, 63, 64, 65, 300}) {
    Tensor a = tensor(f16, {r, columns}, 7), d = tensor(f16, {r, columns}, 0);
    device_->launch(kernel, {a, d});
    EXPECT_EQ(d.unwritten(), 0u) << r;
    EXPECT_EQ(d.download(), a.download()) << r;
  }
}

TEST_P(SmallKernel, ElementWiseExpressionsWithMasks) {
  KernelBuilder k("elementwise", arch());
  k.launch({.threads = 128});
  auto A = k.global(f32, {128, 32}, "A"), B = k.global(f32, {128, 32}, "B"),
       D = k.global(bf16, {128, 32}, "D");
  auto layout = tw::row_per_thread_layout(32);
  auto a = k.registers(f32, {128, 32}, layout, "a"), b = k.registers(f32, {128, 32}, layout, "b");
  auto c = k.registers(f32, {128, 32}, layout, "c");
  auto d = k.registers(bf16, {128, 32}, layout, "d");
  warpgroup.copy(a, A);
  warpgroup.copy(b, B);
  warpgroup.compute(c, select(coordinate(1) < coordinate(0), max(a * 2.0 + b, 0.0), exp2(a - b)));
  warpgroup.cast(d, c);
  warpgroup.copy(D, d);
  Compiled kernel = lower(k.finish());
  Tensor x = tensor(f32, {128, 32}, 1), y = tensor(f32, {128, 32}, 2), out = tensor(bf16, {128, 32}, 0);
  device_->launch(kernel, {x, y, out});
  std::vector<float> xs = x.download_f32(), ys = y.download_f32(), got = out.download_f32();
  for (int r = 0; r < 128; ++r) {
    for (int j = 0; j < 32; ++j) {
      size_t i = static_cast<size_t>(r * 32 + j);
      double want = j < r ? std::max(xs[i] * 2.0 + ys[i], 0.0) : std::exp2(double{xs[i]} - ys[i]);
      EXPECT_NEAR(got[i], want, std::abs(want) * 0x1p-8 + 1e-6) << r << " " << j;
    }
  }
}

// Variables, loops with run-time trip counts, branches with two sides, loads and stores of single elements:
// the number of steps of the Collatz sequence of each thread's index, and a sum over a triangular loop.
TEST_P(SmallKernel, ControlFlowDivergesAndMeetsAgain) {
  KernelBuilder k("control", arch());
  Expr n = k.size("n");
  k.launch({.threads = 64});
  auto Steps = k.global(i32, {n}, "Steps"), Sums = k.global(i32, {n}, "Sums"), In = k.global(i32, {n}, "In");
  if_(thread_id < n, [&] {
    Var x("x", In.load({thread_id})), steps("steps", 0);
    while_(Expr(x) > 1, [&] {
      if_(
          Expr(x) % 2 == 0, [&] { x = Expr(x) / 2; }, [&] { x = Expr(x) * 3 + 1; });
      steps += 1;
    });
    Steps.store({thread_id}, steps);
    Var sum("sum", 0);
    for_range(thread_id, [&](Expr i) { for_range(i, [&](Expr j) { sum += i * 10 + j; }); });
    Sums.store({thread_id}, sum);
  });
  Compiled kernel = lower(k.finish());
  const int64_t count = 50;
  Tensor steps = tensor(i32, {count}, 0), sums = tensor(i32, {count}, 0), in = tensor(i32, {count}, 0);
  std::vector<int32_t> start(count);
  for (int i = 0; i < count; ++i) start[static_cast<size_t>(i)] = i * 3 + 1;
  in.upload(std::as_bytes(std::span(start)));
  device_->launch(kernel, {steps, sums, in});
  auto read = [](const Tensor& t) {
    auto raw = t.download();
    std::vector<int32_t> v(raw.size() / 4);
    std::memcpy(v.data(), raw.data(), raw.size());
    return v;
  };
  auto got_steps = read(steps), got_sums = read(sums);
  for (int t = 0; t < count; ++t) {
    int want_steps = 0, want_sum = 0;
    for (int x = start[static_cast<size_t>(t)]; x > 1; x = x % 2 ? x * 3 + 1 : x / 2) ++want_steps;
    for (int i = 0; i < t; ++i)
      for (int j = 0; j < i; ++j) want_sum += i * 10 + j;
    EXPECT_EQ(got_steps[static_cast<size_t>(t)], want_steps) << t;
    EXPECT_EQ(got_sums[static_cast<size_t>(t)], want_sum) << t;
  }
}

// A fragment written through its layout to swizzled shared memory and read back by rows: layouts, not code,
// say where elements are.
TEST_P(SmallKernel, FragmentThroughSharedMemoryToRows) {
  KernelBuilder k("fragment", arch());
  k.launch({.threads = 128});
  auto A = k.global(f16, {128, 64}, "A"), D = k.global(f16, {128, 64}, "D");
  auto fragment = k.wgmma_accumulator(f16, 128, 64, "fragment");
  auto tile = k.shared(f16, {128, 64}, swizzle_128B, "tile");
  auto rows = k.registers(f16, {128, 64}, tw::row_per_thread_layout(64), "rows");
  warpgroup.copy(fragment, A);
  warpgroup.copy(tile, fragment);
  cta.sync();
  warpgroup.copy(rows, tile);
  warpgroup.copy(D, rows);
  Compiled kernel = lower(k.finish());
  Tensor a = tensor(f16, {128, 64}, 3), d = tensor(f16, {128, 64}, 0);
  device_->launch(kernel, {a, d});
  EXPECT_EQ(d.unwritten(), 0u);
  EXPECT_EQ(d.download(), a.download());
}

// Roles run different code on different warps; a shared word carries a value across a CTA barrier.
TEST_P(SmallKernel, RolesAndElectedThreads) {
  KernelBuilder k("roles", arch());
  k.launch({.threads = 96});
  auto D = k.global(i32, {96}, "D");
  auto word = k.shared(i32, {2}, tw::TileLayout::row_major({2}), "word");
  k.role("first", warp(0), [&] { elected([&] { word.store({0}, 40); }); });
  k.role("last", warp(2), [&] { elected([&] { word.store({1}, 2); }); });
  cta.sync();
  D.store({thread_id}, word.load({0}) + word.load({1}) + warp_id * 100);
  Compiled kernel = lower(k.finish());
  Tensor d = tensor(i32, {96}, 0);
  device_->launch(kernel, {d});
  auto raw = d.download();
  for (int t = 0; t < 96; ++t) {
    int32_t v;
    std::memcpy(&v, raw.data() + t * 4, 4);
    EXPECT_EQ(v, 42 + t / 32 * 100) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SmallKernel, ::testing::Values("sim:h200", "sim:b200", "cuda:0"),
                         [](const auto& test) {
                           std::string s = test.param;
                           std::replace(s.begin(), s.end(), ':', '_');
                           return s;
                         });

}  // namespace
