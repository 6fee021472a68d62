// Shared-memory and shuffle reductions, tails, dynamic shared memory.
extern __shared__ float dynamic[];
__global__ void block_sum(const float* __restrict__ x, float* y, int n) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  dynamic[threadIdx.x] = s;
  __syncthreads();
  for (int d = blockDim.x / 2; d >= 32; d /= 2) {
    if (threadIdx.x < d) dynamic[threadIdx.x] += dynamic[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    s = dynamic[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) atomicAdd(y, s);
  }
}
__global__ void warp_tricks(int* p) {
  const int v = p[threadIdx.x];
  const unsigned m = __ballot_sync(~0u, v > 0);
  const unsigned same = __match_any_sync(~0u, v);
  int all;
  const unsigned every = __match_all_sync(~0u, v, &all);
  p[threadIdx.x] = __popc(m) + __clz(same) + __ffs(every) + all + __reduce_add_sync(~0u, v) +
                   (int)__reduce_xor_sync(~0u, (unsigned)v) + __any_sync(~0u, v) + __all_sync(~0u, v) +
                   __shfl_xor_sync(~0u, v, 3) + __shfl_up_sync(~0u, v, 1, 16) + (int)__activemask() +
                   __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
  __syncwarp();
}
