// The wmma API in several shapes and types.
#include <mma.h>
using namespace nvcuda;
template <class T, class Acc, int M, int N, int K, class LA, class LB>
__device__ void product(const T* a, const T* b, Acc* c) {
  __shared__ T tile[M * K];
  for (int i = threadIdx.x; i < M * K; i += 32) tile[i] = a[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
  wmma::fill_fragment(fc, Acc(0));
  wmma::load_matrix_sync(fa, tile, K);
  wmma::load_matrix_sync(fb, b, K);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
}
__global__ void f16f32(const half* a, const half* b, float* c) { product<half, float, 16, 16, 16, wmma::row_major, wmma::col_major>(a, b, c); }
__global__ void f16f16(const half* a, const half* b, half* c) { product<half, half, 32, 8, 16, wmma::col_major, wmma::col_major>(a, b, c); }
__global__ void s8(const signed char* a, const signed char* b, int* c) { product<signed char, int, 8, 32, 16, wmma::row_major, wmma::row_major>(a, b, c); }
__global__ void bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) { product<__nv_bfloat16, float, 16, 16, 16, wmma::row_major, wmma::col_major>(a, b, c); }
__global__ void f64(const double* a, const double* b, double* c) { product<double, double, 8, 8, 4, wmma::row_major, wmma::col_major>(a, b, c); }
