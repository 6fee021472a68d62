// Moving sums with cp.async double buffering: while a tile is summed, the next one is on its way.
#include <cstdint>
#include "device.cuh"

constexpr int kTile = 256;

__device__ void load(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(to + 4 * threadIdx.x)),
               "l"(from + 4 * threadIdx.x)
               : "memory");
}

// One CTA of 64 threads: out[t] = sum of the four neighbours of each of `tiles` tiles, four apart.
extern "C" __global__ void __launch_bounds__(64) double_buffer(const float* in, float* out, int tiles) {
  __shared__ __align__(16) float buffer[2][kTile];
  load(buffer[0], in);
  asm volatile("cp.async.commit_group;" ::: "memory");
  float sum = 0;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) load(buffer[(t + 1) % 2], in + (t + 1) * kTile);
    asm volatile("cp.async.commit_group;" ::: "memory");
#ifdef FAULT  // race: two groups may be in flight, so the tile that is read may not have arrived
    asm volatile("cp.async.wait_group 2;" ::: "memory");
#else
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
    __syncthreads();
    for (int i = 0; i < 4; ++i) sum += buffer[t % 2][threadIdx.x + 64 * i];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
