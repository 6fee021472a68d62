// One Hopper tile: D[64, 16] = A[64, 64] B[16, 64]^T in f16 with f32 sums; operands in 128-byte swizzled shared
// memory, written by ordinary stores.
#include <cuda_fp16.h>
#include "device.cuh"

// Rows of 64 halves; the eight 16-byte pieces of a row change places with the row ("128B swizzle").
__device__ void load(uint8_t* to, const __half* from, int rows) {
  for (int i = threadIdx.x; i < rows * 8; i += blockDim.x) {
    const int row = i / 8, piece = i % 8;
    *(uint4*)(to + row * 128 + (piece ^ row % 8) * 16) = *(const uint4*)(from + row * 64 + piece * 8);
  }
}
__device__ uint64_t descriptor(const void* tile) {  // 8 rows are 1024 bytes apart
  return (uint64_t)(shared_address(tile) >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

extern "C" __global__ void __launch_bounds__(128) wgmma_tile(const __half* a, const __half* b, float* d) {
  __shared__ __align__(1024) uint8_t tile_a[64 * 128], tile_b[16 * 128];
  load(tile_a, a, 64);
  load(tile_b, b, 16);
#ifndef FAULT  // missing proxy fence: wgmma reads through the async proxy what ordinary stores wrote
  fence_async_proxy();
#endif
  __syncthreads();
  float c[8] = {};
  const uint64_t from_a = descriptor(tile_a), from_b = descriptor(tile_b);
  // One statement: between the fence and the products nothing may touch the registers of the sums.
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %12, 1, 1, 1, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %9, %13, 1, 1, 1, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %10, %14, 1, 1, 1, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %11, %15, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
      : "l"(from_a), "l"(from_a + 2), "l"(from_a + 4), "l"(from_a + 6),  // 16 halves are 32 bytes
        "l"(from_b), "l"(from_b + 2), "l"(from_b + 4), "l"(from_b + 6)
      : "memory");
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, column = lane % 4 * 2;
  for (int i = 0; i < 8; ++i) d[(row + i / 2 % 2 * 8) * 16 + i / 4 * 8 + column + i % 2] = c[i];
}
