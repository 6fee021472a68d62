// Column sums of a matrix through a ring of three stages that TMA fills: one thread produces, one warp consumes.
#include <cuda.h>
#include "device.cuh"

constexpr int kStages = 3, kRows = 8, kColumns = 32, kBytes = kRows * kColumns * 4;

extern "C" __global__ void __launch_bounds__(64)
    tma_pipeline(const __grid_constant__ CUtensorMap matrix, float* sums, int tiles) {
  __shared__ __align__(128) float stage[kStages][kRows][kColumns];
  __shared__ uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) init_barrier(&full[s], 1), init_barrier(&empty[s], 32);
    fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int t = 0; t < tiles; ++t) {
      const int s = t % kStages;
      if (t >= kStages) wait(&empty[s], (t / kStages - 1) % 2);
#ifdef FAULT  // bytes armed (512) are not the bytes delivered (1024)
      arrive_expect(&full[s], kBytes / 2);
#else
      arrive_expect(&full[s], kBytes);
#endif
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
              "r"(shared_address(stage[s])),
          "l"(&matrix), "r"(0), "r"((int)(blockIdx.x * tiles + t) * kRows), "r"(shared_address(&full[s]))
          : "memory");
    }
  } else if (threadIdx.x < 32) {
    float sum = 0;
    for (int t = 0; t < tiles; ++t) {
      const int s = t % kStages;
      wait(&full[s], t / kStages % 2);
      for (int r = 0; r < kRows; ++r) sum += stage[s][r][threadIdx.x];
      fence_async_proxy();  // the next copy into the stage comes through the async proxy
      arrive(&empty[s]);
    }
    sums[blockIdx.x * kColumns + threadIdx.x] = sum;
  }
}
