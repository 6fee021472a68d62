// Launch bounds, clusters, grid constants, special registers, named barriers.
#include <cstdint>
__global__ void __launch_bounds__(256, 2) __cluster_dims__(2, 2, 1) bounded(const __grid_constant__ int n, int* p) { p[n] = __clusterDim().x; }
__global__ void __launch_bounds__(1024, 1, 8) spread(int* p) { p[blockIdx.z] = blockDim.y * gridDim.z; }
__global__ void __maxnreg__(64) few(int* p) {
  uint32_t a, b, c, d;
  asm volatile("mov.u32 %0, %%laneid;\nmov.u32 %1, %%smid;\nmov.u32 %2, %%lanemask_lt;\nmov.u32 %3, %%cluster_ctarank;" : "=r"(a), "=r"(b), "=r"(c), "=r"(d));
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  asm volatile("bar.sync 1, 128;\nbar.arrive 2, 256;\nbarrier.sync.aligned 3, 64;" ::: "memory");
  p[0] = a + b + c + d + (int)t;
}
