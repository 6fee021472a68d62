// Atomics of every width, scope and order.
#include <cuda/atomic>
#include <cuda_fp16.h>
__global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d, unsigned short* h, half2* h2, float4* v, __int128* w) {
  __shared__ int s;
  atomicAdd(&s, 1); atomicSub(i, 3); atomicExch(u, 4u); atomicMin(i, 5); atomicMax(u, 6u); atomicInc(u, 7u); atomicDec(u, 8u);
  atomicCAS(l, 1ull, 2ull); atomicAnd(l, 3ull); atomicOr(i, 4); atomicXor(u, 5u); atomicAdd_block(f, 1.f); atomicAdd_system(d, 2.0);
  i[1] = atomicAdd(i, 1); u[2] = atomicCAS(h, (unsigned short)1, (unsigned short)2); atomicAdd(h2, __float2half2_rn(1.f)); atomicAdd(v, make_float4(1, 2, 3, 4));
  l[1] = atomicMax(l, 77ull); f[1] = atomicExch(f, 2.f);
}
__global__ void ordered(cuda::atomic<int>* a, cuda::atomic<unsigned long long, cuda::thread_scope_block>* b, cuda::atomic<float, cuda::thread_scope_device>* c, int* out) {
  out[0] = a->load(cuda::memory_order_acquire) + a->fetch_add(1, cuda::memory_order_acq_rel);
  b->store(5, cuda::memory_order_release);
  out[1] = (int)b->fetch_max(9, cuda::memory_order_relaxed) + (int)c->fetch_add(1.0f);
  int e = 3;
  out[2] = a->compare_exchange_strong(e, 4);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  __threadfence(); __threadfence_block(); __threadfence_system();
  volatile int* x = out;
  x[3] = x[4];
}
