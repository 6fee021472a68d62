#pragma once
#include <cstdint>
#include <string>

// The host's own single-precision GEMM, the yardstick of the simulator's arithmetic.
namespace tw::bench {

// OpenBLAS picks its kernels before main: from OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE, else from the CPU's
// model number, and for models newer than itself it falls back to its oldest ones. An honest yardstick runs
// the fastest kernels that the CPU's instruction sets allow: unless the environment says so already, this
// starts the program again with one that does, whatever the caller had set.
void run_blas_at_its_best(char** argv);

std::string blas_description();  // "OpenBLAS 0.3.21, SkylakeX kernels"

// C[m,n] = sum_k A[m,k] * B[n,k], row-major.
void sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int threads);

}  // namespace tw::bench
