#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/dtype.h"

// NVIDIA's cuBLAS (version 12 or 13), found at run time: the yardstick of our kernels on a GPU. Declared here
// so that building needs no toolkit; names, values and signatures are those of the cuBLAS Library manual.
namespace tw::cuda {

using CublasStatus = int;  // cublasStatus_t; 0: success
using CublasHandle = struct CublasContext*;

// cublasOperation_t
enum class CublasOperation : int { none = 0, transpose = 1 };
// cudaDataType_t
enum class CublasType : int { f32 = 0, f16 = 2, bf16 = 14 };
constexpr int kCublasCompute32f = 68;           // CUBLAS_COMPUTE_32F
constexpr int kCublasGemmDefault = -1;          // CUBLAS_GEMM_DEFAULT: cuBLAS chooses
constexpr size_t kCublasWorkspace = 32u << 20;  // the size that the manual asks for on Hopper; PyTorch's too

struct CublasApi {
  CublasStatus (*cublasCreate)(CublasHandle* handle);
  CublasStatus (*cublasDestroy)(CublasHandle handle);
  CublasStatus (*cublasGetVersion)(CublasHandle handle, int* version);
  CublasStatus (*cublasSetWorkspace)(CublasHandle handle, void* workspace, size_t bytes);
  const char* (*cublasGetStatusString)(CublasStatus status);
  // Column-major: C[m,n] = alpha op(A) op(B) + beta C.
  CublasStatus (*cublasGemmEx)(CublasHandle handle, CublasOperation op_a, CublasOperation op_b, int m, int n,
                               int k, const void* alpha, const void* a, CublasType a_type, int lda,
                               const void* b, CublasType b_type, int ldb, const void* beta, void* c,
                               CublasType c_type, int ldc, int compute, int algorithm);
};

struct LoadedCublas {
  CublasApi api;
  std::string library;  // what was opened
};
// Opens `where`, a library or a folder that holds one; if empty, $TW_CUBLAS; if that is empty too, the
// library search path, the packages of the Python on PATH and the usual places of the CUDA toolkit. User
// errors list what was tried, or name the symbol that is missing. The process keeps the library.
LoadedCublas load_cublas(const std::string& where);
// The files that load_cublas tries, in order.
std::vector<std::string> cublas_candidates(const std::string& where);

// Matrix products on the null stream of the context that was current at construction. Driver errors name the
// call and cuBLAS' status.
class Cublas {
 public:
  // `workspace`: a device address of kCublasWorkspace bytes that outlives this.
  Cublas(const CublasApi& api, uint64_t workspace);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // D[m,n] = sum_k A[m,k] B[n,k], all row-major at device addresses, of f16 or bf16, sums in f32. Does not
  // wait.
  void gemm(uint64_t a, uint64_t b, uint64_t d, int64_t m, int64_t n, int64_t k, DType dtype);
  std::string version() const;  // "13.1.0"

 private:
  void check(CublasStatus status, std::string_view call) const;

  CublasApi api_;
  CublasHandle handle_ = nullptr;
};

}  // namespace tw::cuda
