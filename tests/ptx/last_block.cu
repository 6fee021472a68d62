// Sum of squares without a second launch: the CTA that draws the last ticket adds up what all CTAs left.
__device__ unsigned tickets;

extern "C" __global__ void last_block(const float* in, volatile float* part, float* out, int n) {
  __shared__ float sums[4];
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) sum += in[i] * in[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    part[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
#ifndef FAULT  // race in global memory: the ticket does not release the partial sum
    __threadfence();
#endif
    last = atomicAdd(&tickets, 1u) == gridDim.x - 1;
#ifndef FAULT
    __threadfence();
#endif
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += part[i];
  *out = total;
}
