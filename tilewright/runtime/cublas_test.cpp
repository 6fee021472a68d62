#include "tilewright/runtime/cublas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tilewright/base/formats.h"
#include "tilewright/runtime/random.h"
#include "tilewright/runtime/reference.h"
#include "tilewright/runtime/testing.h"

// cuBLAS' conventions against a library that computes on host memory, and the search for the real one.
namespace tw {
namespace {

using testing::message_of;

struct Record {
  int alive = 0;
  size_t workspace_bytes = 0;
  int status = 0;  // of products
};
Record* record;

// What the manual says of cublasGemmEx: column-major, op() transposes, leading dimensions in elements.
cuda::CublasStatus gemm_ex(cuda::CublasHandle, cuda::CublasOperation op_a, cuda::CublasOperation op_b, int m,
                           int n, int k, const void* alpha, const void* a, cuda::CublasType type, int lda,
                           const void* b, cuda::CublasType, int ldb, const void* beta, void* c,
                           cuda::CublasType, int ldc, int compute, int) {
  EXPECT_EQ(*static_cast<const float*>(alpha), 1);
  EXPECT_EQ(*static_cast<const float*>(beta), 0);
  EXPECT_EQ(compute, 68);  // CUBLAS_COMPUTE_32F
  const DType dtype = type == cuda::CublasType::f16 ? DType::f16 : DType::bf16;
  auto at = [&](const void* matrix, cuda::CublasOperation op, int row, int column, int ld) {
    if (op == cuda::CublasOperation::transpose) std::swap(row, column);
    return to_float(dtype, static_cast<const uint16_t*>(matrix)[row + int64_t{column} * ld]);
  };
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += at(a, op_a, i, l, lda) * at(b, op_b, l, j, ldb);
      static_cast<uint16_t*>(c)[i + int64_t{j} * ldc] = static_cast<uint16_t>(from_float(dtype, sum));
    }
  return record->status;
}

cuda::CublasApi host_library() {
  cuda::CublasApi api{};
  api.cublasCreate = [](cuda::CublasHandle* handle) {
    *handle = reinterpret_cast<cuda::CublasHandle>(uintptr_t{1});
    return ++record->alive, 0;
  };
  api.cublasDestroy = [](cuda::CublasHandle) { return --record->alive, 0; };
  api.cublasGetVersion = [](cuda::CublasHandle, int* version) { return *version = 130102, 0; };
  api.cublasSetWorkspace = [](cuda::CublasHandle, void*, size_t bytes) {
    return record->workspace_bytes = bytes, 0;
  };
  api.cublasGetStatusString = [](cuda::CublasStatus) { return "CUBLAS_STATUS_NOT_SUPPORTED"; };
  api.cublasGemmEx = gemm_ex;
  return api;
}

class Cublas : public ::testing::Test {
 protected:
  void SetUp() override { record = &record_; }
  Record record_;
};

TEST_F(Cublas, MultipliesRowMajorTensors) {
  constexpr int64_t m = 5, n = 7, k = 24;
  cuda::Cublas cublas(host_library(), 0x1000);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<float> a = random_normal(m * k, 1), b = random_normal(n * k, 2);
    std::vector<uint16_t> codes_a(a.size()), codes_b(b.size()), codes_d(m * n);
    from_float(dtype, a.data(), codes_a.data(), a.size());
    from_float(dtype, b.data(), codes_b.data(), b.size());
    to_float(dtype, codes_a.data(), a.data(), a.size());
    to_float(dtype, codes_b.data(), b.data(), b.size());
    auto address = [](const auto& codes) { return reinterpret_cast<uint64_t>(codes.data()); };
    cublas.gemm(address(codes_a), address(codes_b), address(codes_d), m, n, k, dtype);
    std::vector<float> d(m * n);
    to_float(dtype, codes_d.data(), d.data(), d.size());
    const Comparison c = compare(d, dtype, reference_gemm(a, b, m, n, k));
    EXPECT_TRUE(c.good(4e-3)) << to_string(c);
  }
}

TEST_F(Cublas, GivesItsHandleBack) {
  {
    cuda::Cublas cublas(host_library(), 0x1000);
    EXPECT_EQ(record_.alive, 1);
    EXPECT_EQ(record_.workspace_bytes, size_t{32} << 20);
    EXPECT_EQ(cublas.version(), "13.1.2");
  }
  EXPECT_EQ(record_.alive, 0);
}

TEST_F(Cublas, ErrorsNameTheCall) {
  cuda::Cublas cublas(host_library(), 0x1000);
  std::vector<uint16_t> one(1);
  const auto address = reinterpret_cast<uint64_t>(one.data());
  record_.status = 15;
  EXPECT_EQ(message_of([&] { cublas.gemm(address, address, address, 1, 1, 1, DType::f16); }),
            "driver error: cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(message_of([&] { cublas.gemm(address, address, address, 1, 1, 1, DType::f32); }),
            "error: cuBLAS products are taken of f16 and bf16, not of f32");
  EXPECT_EQ(message_of([&] { cublas.gemm(address, address, address, 1, 0, 1, DType::f16); }),
            "error: cuBLAS takes extents from 1 to 2147483647, got 1 x 0 x 1");
}

class CublasSearch : public ::testing::Test {
 protected:
  CublasSearch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cublas_test.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~CublasSearch() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(const std::string& name) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "no library";
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(CublasSearch, AFolderMustHoldIt) {
  const std::string message = message_of([&] { cuda::cublas_candidates(folder_); });
  EXPECT_NE(message.find("it holds neither libcublas.so.13 nor libcublas.so.12"), std::string::npos)
      << message;
  const auto library = file("libcublas.so.12");
  EXPECT_EQ(cuda::cublas_candidates(folder_), std::vector<std::string>{library});
}

// The layouts of NVIDIA's wheels: nvidia-cublas of CUDA 13, nvidia-cublas-cu12; the python3 on PATH links
// into a virtual environment.
TEST_F(CublasSearch, FindsThePackagesOfPython) {
  const auto thirteen = file("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13");
  const auto twelve = file("venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12");
  file("venv/bin/python3");
  std::filesystem::create_directories(folder_ / "bin");
  std::filesystem::create_symlink("../venv/bin/python3", folder_ / "bin/python3");
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder_ / "bin").c_str(), 1);
  unsetenv("TW_CUBLAS");
  const auto files = cuda::cublas_candidates("");
  setenv("PATH", path.c_str(), 1);
  const auto at = [&](const std::string& f) {
    return std::find(files.begin(), files.end(), f) - files.begin();
  };
  EXPECT_EQ(files.front(), "libcublas.so.13");
  EXPECT_LT(at(thirteen), at("libcublas.so.12"));
  EXPECT_LT(at("libcublas.so.12"), at(twelve));
  EXPECT_LT(at(twelve), std::ssize(files));
}

TEST_F(CublasSearch, ErrorsSayWhatWasTried) {
  const auto library = file("libcublas.so.13");
  const std::string message = message_of([&] { cuda::load_cublas(library); });
  EXPECT_NE(message.find("error: no cuBLAS: " + library.string()), std::string::npos) << message;
  EXPECT_NE(message.find("--cublas or TW_CUBLAS"), std::string::npos) << message;
}

}  // namespace
}  // namespace tw
