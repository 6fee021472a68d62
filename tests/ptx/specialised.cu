// Warp specialisation with mbarriers: one warp loads and scales, three warps each own a third of a tile.
#include "device.cuh"

constexpr int kStages = 2, kTile = 96;

extern "C" __global__ void __launch_bounds__(128) specialised(const float* in, float* out, int tiles, float scale) {
  __shared__ float stage[kStages][kTile];
  __shared__ uint64_t full[kStages], empty[kStages];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) init_barrier(&full[s], 32), init_barrier(&empty[s], 96);
    fence_barrier_init();
  }
  __syncthreads();
  if (warp == 3) {
    for (int t = 0; t < tiles; ++t) {
      const int s = t % kStages;
#ifndef FAULT  // race: a stage is written again while the consumers may still read it
      if (t >= kStages) wait(&empty[s], (t / kStages - 1) % 2);
#endif
      for (int i = lane; i < kTile; i += 32) stage[s][i] = scale * in[t * kTile + i];
      arrive(&full[s]);
    }
  } else {
    float sum = 0;
    for (int t = 0; t < tiles; ++t) {
      const int s = t % kStages;
      wait(&full[s], t / kStages % 2);
      sum += stage[s][threadIdx.x];
      arrive(&empty[s]);
    }
    out[threadIdx.x] = sum;
  }
}
