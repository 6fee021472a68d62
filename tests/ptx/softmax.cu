// Softmax of rows in f16, one CTA a row: maximum and sum as trees in one array of shared memory.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(128) softmax(const __half* in, float* out, int n) {
  __shared__ float tree[128];
  const __half* row = in + blockIdx.x * n;
  const int t = threadIdx.x;
  float largest = -INFINITY;
  for (int i = t; i < n; i += 128) largest = fmaxf(largest, __half2float(row[i]));
  tree[t] = largest;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) tree[t] = fmaxf(tree[t], tree[t + d]);
    __syncthreads();
  }
  largest = tree[0];
#ifndef FAULT  // race: tree[0] is overwritten with a partial sum while others still read the maximum
  __syncthreads();
#endif
  float sum = 0;
  for (int i = t; i < n; i += 128) sum += __expf(__half2float(row[i]) - largest);
  tree[t] = sum;
  __syncthreads();
  for (int d = 64; d > 0; d /= 2) {
    if (t < d) tree[t] += tree[t + d];
    __syncthreads();
  }
  for (int i = t; i < n; i += 128) out[blockIdx.x * n + i] = __expf(__half2float(row[i]) - largest) / tree[0];
}
