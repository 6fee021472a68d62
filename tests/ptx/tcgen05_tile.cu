// One Blackwell tile: D[128, 16] = A[128, 64] B[16, 64]^T in f16 with f32 sums in tensor memory.
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
  return (uint64_t)(shared_address(tile) >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 46 | 2ull << 61;
}

extern "C" __global__ void __launch_bounds__(128) tcgen05_tile(const __half* a, const __half* b, float* d) {
#if __CUDA_ARCH_FEAT_SM100_ALL
  __shared__ __align__(1024) uint8_t tile_a[128 * 128], tile_b[16 * 128];
  __shared__ uint64_t done;
  __shared__ uint32_t columns;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) init_barrier(&done, 1), fence_barrier_init();
  if (warp == 0)
    asm volatile(
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;\n"
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::"r"(shared_address(&columns))
        : "memory");
  load(tile_a, a, 128);
  load(tile_b, b, 16);
  fence_async_proxy();
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  const uint32_t t = columns;
  if (threadIdx.x == 0) {
    const uint32_t shape = 1u << 4 | 16u / 8 << 17 | 128u / 16 << 24;  // f32 sums of f16 products, N and M
    for (int k = 0; k < 4; ++k)
      asm volatile(
          "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(t),
          "l"(descriptor(tile_a) + 2 * k), "l"(descriptor(tile_b) + 2 * k), "r"(shape), "r"(k)
          : "memory");
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                     shared_address(&done))
                 : "memory");
  }
#ifndef FAULT  // race: tensor memory is read while the product may still be writing it
  wait(&done, 0);
#endif
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  uint32_t r[16];
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "[%16];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]),
        "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
      : "r"(t + (warp * 32u << 16))
      : "memory");
  for (int i = 0; i < 16; ++i) d[threadIdx.x * 16 + i] = __uint_as_float(r[i]);
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(t) : "memory");
#endif
}
