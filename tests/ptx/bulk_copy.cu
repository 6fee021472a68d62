// y = a x + b through bulk copies: in by mbarrier, out by bulk group, one buffer for both.
#include "device.cuh"

constexpr int kTile = 512;

struct Line {
  float slope, offset;
};

extern "C" __global__ void __launch_bounds__(128) bulk_copy(const float* x, float* y, Line line, int tiles) {
  __shared__ __align__(128) float tile[kTile];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) init_barrier(&full, 1), fence_barrier_init();
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    const int at = (blockIdx.x * tiles + t) * kTile;
    if (threadIdx.x == 0) {
      arrive_expect(&full, sizeof tile);
      asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_address(tile)),
                   "l"(x + at), "r"((int)sizeof tile), "r"(shared_address(&full))
                   : "memory");
    }
    wait(&full, t % 2);
    for (int i = threadIdx.x; i < kTile; i += 128) tile[i] = line.slope * tile[i] + line.offset;
    fence_async_proxy();
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + at),
                   "r"(shared_address(tile)), "r"((int)sizeof tile)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#ifndef FAULT  // race: the next tile arrives in the buffer that the store may still be reading
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
    __syncthreads();
  }
}
