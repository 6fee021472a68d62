// The wmma API of CUDA: D[32, 16] = A[32, 48] B[16, 48]^T / 2, one warp for each 16 rows, A through shared memory.
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(64) wmma_tile(const half* a, const half* b, float* d) {
  __shared__ __align__(32) half tile[32 * 48];
  for (int i = threadIdx.x; i < 32 * 48; i += 64) tile[i] = a[i];
#ifndef FAULT  // race: a warp loads fragments of rows that the other warp writes
  __syncthreads();
#endif
  const int row = threadIdx.x / 32 * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < 48; k += 16) {
    wmma::load_matrix_sync(fa, tile + row * 48 + k, 48);
    wmma::load_matrix_sync(fb, b + k, 48);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 0.5f;
  wmma::store_matrix_sync(d + row * 16, sum, 16, wmma::mem_row_major);
}
