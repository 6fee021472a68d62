#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/support/assemble.h"
#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"

// CUDA kernels compiled by nvcc, when there is one, and run from their PTX against a reference on the host.
namespace tw::sim::testing {
namespace {

constexpr const char* kSource = R"(
#include <cuda_fp16.h>
extern "C" __global__ void reduce(const float* in, float* out, int n) {
  __shared__ float part[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}
extern "C" __global__ void transpose(const int* in, int* out, int rows, int cols) {
  __shared__ int tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) if (x < cols && y + k < rows) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) if (x < rows && y + k < cols) out[(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) if (bins[i]) atomicAdd(&out[i], bins[i]);
}
extern "C" __global__ void softmax(const __half* in, float* out, int n) {
  __shared__ float red[128];
  const __half* row = in + blockIdx.x * n;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 128) m = fmaxf(m, __half2float(row[i]));
  red[threadIdx.x] = m; __syncthreads();
  for (int d = 64; d > 0; d /= 2) { if (threadIdx.x < d) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + d]); __syncthreads(); }
  m = red[0]; __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 128) s += __expf(__half2float(row[i]) - m);
  red[threadIdx.x] = s; __syncthreads();
  for (int d = 64; d > 0; d /= 2) { if (threadIdx.x < d) red[threadIdx.x] += red[threadIdx.x + d]; __syncthreads(); }
  for (int i = threadIdx.x; i < n; i += 128) out[blockIdx.x * n + i] = __expf(__half2float(row[i]) - m) / red[0];
}
extern "C" __global__ void collatz(const unsigned long long* in, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = in[i]; unsigned steps = 0;
  while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; ++steps; }
  out[i] = steps;
}
__noinline__ __device__ int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = ackermann(threadIdx.x % 3, threadIdx.x / 8); }
)";

std::shared_ptr<const ptx::Module> compiled() {
  static const std::shared_ptr<const ptx::Module> module = []() -> std::shared_ptr<const ptx::Module> {
    const std::string nvcc = tw::testing::find_cuda_tool("nvcc");
    if (nvcc.empty()) return nullptr;
    const auto folder = std::filesystem::path(::testing::TempDir()) / "tilewright_nvcc";
    std::filesystem::create_directories(folder);
    const auto source = folder / "kernels.cu", text = folder / "kernels.ptx";
    std::ofstream(source) << kSource;
    const std::string command = nvcc + " -arch=sm_90a -ptx -o " + text.string() + " " + source.string();
    if (std::system(command.c_str()) != 0) return nullptr;
    std::stringstream content;
    content << std::ifstream(text).rdbuf();
    return std::make_shared<const ptx::Module>(ptx::parse(content.str(), "kernels.ptx"));
  }();
  return module;
}

class Nvcc : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!compiled()) GTEST_SKIP() << "no nvcc";
  }
  RunStats run(std::string_view entry, Dim3 grid, Dim3 block, const Params& params) {
    const Launch launch{grid, block, {}, 0, params.bytes()};
    return Program(compiled(), entry, small_machine("sm_90a", 16)).run(launch, memory, {});
  }
  GlobalMemory memory;
};

TEST_F(Nvcc, Reduce) {
  std::vector<float> in(50000);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(static_cast<int>(i * 7919 % 1000) - 500) / 64;
  Buffer<float> a(memory, in, "in"), out(memory, std::vector<float>{0}, "out");
  run("reduce", {20, 1, 1}, {256, 1, 1},
      Params().add(a.address).add(out.address).add(static_cast<int>(in.size())));
  EXPECT_NEAR(out.get()[0], std::accumulate(in.begin(), in.end(), 0.0), 0.05);
}

TEST_F(Nvcc, Transpose) {
  const int rows = 100, cols = 75;
  std::vector<int> in(rows * cols);
  std::iota(in.begin(), in.end(), 0);
  Buffer<int> a(memory, in, "in"), out(memory, in.size(), "out");
  run("transpose", {3, 4, 1}, {32, 8, 1}, Params().add(a.address).add(out.address).add(rows).add(cols));
  const auto got = out.get();
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) ASSERT_EQ(got[static_cast<size_t>(c * rows + r)], r * cols + c);
  }
  EXPECT_EQ(memory.unwritten(out.address, out.size * 4), 0u);
}

TEST_F(Nvcc, Histogram) {
  std::vector<unsigned char> in(20000);
  std::vector<unsigned> want(256, 0);
  for (size_t i = 0; i < in.size(); ++i) ++want[in[i] = static_cast<unsigned char>(i * i % 251)];
  Buffer<unsigned char> a(memory, in, "in");
  Buffer<unsigned> out(memory, std::vector<unsigned>(256, 0), "out");
  run("histogram", {6, 1, 1}, {192, 1, 1},
      Params().add(a.address).add(out.address).add(static_cast<int>(in.size())));
  EXPECT_EQ(out.get(), want);
}

TEST_F(Nvcc, Softmax) {
  const int rows = 7, n = 300;
  std::vector<uint16_t> in(rows * n);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float_to_f16(static_cast<float>(i * 37 % 101) / 10 - 5);
  Buffer<uint16_t> a(memory, in, "in");
  Buffer<float> out(memory, in.size(), "out");
  run("softmax", {rows, 1, 1}, {128, 1, 1}, Params().add(a.address).add(out.address).add(n));
  const auto got = out.get();
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::exp(double{f16_to_float(in[static_cast<size_t>(r * n + i)])});
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(r * n + i);
      ASSERT_NEAR(got[at], std::exp(double{f16_to_float(in[at])}) / sum, 1e-6);
    }
  }
}

TEST_F(Nvcc, DivergentLoops) {
  std::vector<uint64_t> in(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = i + 1;
  Buffer<uint64_t> a(memory, in, "in");
  Buffer<unsigned> out(memory, in.size(), "out");
  run("collatz", {4, 1, 1}, {256, 1, 1},
      Params().add(a.address).add(out.address).add(static_cast<int>(in.size())));
  const auto got = out.get();
  for (size_t i = 0; i < in.size(); ++i) {
    unsigned steps = 0;
    for (uint64_t v = in[i]; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) ++steps;
    ASSERT_EQ(got[i], steps) << in[i];
  }
}

TEST_F(Nvcc, Recursion) {
  Buffer<int> out(memory, 32, "out");
  run("recursion", {1, 1, 1}, {32, 1, 1}, Params().add(out.address));
  const auto got = out.get();
  for (int t = 0; t < 32; ++t) {
    const int m = t % 3, n = t / 8;
    EXPECT_EQ(got[static_cast<size_t>(t)], m == 0 ? n + 1 : m == 1 ? n + 2 : 2 * n + 3);
  }
}

}  // namespace
}  // namespace tw::sim::testing
