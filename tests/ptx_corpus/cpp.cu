// Library-like C++: templates, lambdas, cuda::std, barriers and pipelines.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/tuple>
#include <cuda/std/complex>
template <class F>
__global__ void apply(F f, float* p) { p[threadIdx.x] = f(p[threadIdx.x]); }
void launch(float* p, float k) { apply<<<1, 32>>>([=] __device__(float x) { return k * x + 1; }, p); }
__global__ void barriers(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int buffer[256];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(buffer + threadIdx.x, in + threadIdx.x, sizeof(int), bar);
  auto token = bar.arrive();
  bar.wait(std::move(token));
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(buffer + threadIdx.x, in + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  pipe.consumer_release();
  cuda::std::complex<float> z(buffer[0], buffer[1]);
  cuda::std::array<int, 4> a{1, 2, 3, 4};
  out[threadIdx.x] = buffer[threadIdx.x ^ 1] + (int)abs(z * z) + a[threadIdx.x & 3] + cuda::std::get<1>(cuda::std::make_tuple(1, 2));
}
