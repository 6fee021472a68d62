// Inclusive prefix sum of one CTA's 512 integers: within warps by shuffles, across warps through shared memory.
extern "C" __global__ void __launch_bounds__(512) scan(const int* in, int* out, int n) {
  __shared__ int totals[16];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, at = blockIdx.x * 512 + threadIdx.x;
  int sum = at < n ? in[at] : 0;
  for (int d = 1; d < 32; d *= 2) {
    const int left = __shfl_up_sync(0xffffffff, sum, d);
    if (lane >= d) sum += left;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int total = lane < 16 ? totals[lane] : 0;
    for (int d = 1; d < 16; d *= 2) {
      const int left = __shfl_up_sync(0xffffffff, total, d);
      if (lane >= d) total += left;
    }
    if (lane < 16) totals[lane] = total;
  }
#ifndef FAULT  // race: other warps read `totals` before warp 0 has summed them
  __syncthreads();
#endif
  if (warp > 0) sum += totals[warp - 1];
  if (at < n) out[at] = sum;
}
