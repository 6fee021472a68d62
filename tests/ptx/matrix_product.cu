// Tensor cores as every GPU since Ampere has them: D[32, 16] = A[32, 32] B[16, 32]^T by ldmatrix and mma.sync.
#include <cuda_fp16.h>
#include "device.cuh"

constexpr int kPitch = 40;  // halves; 80 bytes a row: no bank conflicts

extern "C" __global__ void __launch_bounds__(64) matrix_product(const __half* a, const __half* b, float* d) {
  __shared__ __align__(16) __half tile_a[32 * kPitch], tile_b[16 * kPitch];
  for (int i = threadIdx.x; i < 32 * 32; i += 64) tile_a[i / 32 * kPitch + i % 32] = a[i];
  for (int i = threadIdx.x; i < 16 * 32; i += 64) tile_b[i / 32 * kPitch + i % 32] = b[i];
#ifndef FAULT  // race: a warp loads fragments of rows that the other warp writes
  __syncthreads();
#endif
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float c[2][4] = {};
  for (int k = 0; k < 32; k += 16) {
    uint32_t fa[4], fb[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(shared_address(&tile_a[(warp * 16 + lane % 16) * kPitch + k + lane / 16 * 8]))
                 : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                 : "r"(shared_address(&tile_b[(lane / 16 * 8 + lane % 8) * kPitch + k + lane / 8 % 2 * 8]))
                 : "memory");
    for (int n = 0; n < 2; ++n)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
          "%3};"
          : "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
          : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * n]), "r"(fb[2 * n + 1]));
  }
  const int row = warp * 16 + lane / 4, column = lane % 4 * 2;
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 16 + n * 8 + column + i % 2] = c[n][i];
}
