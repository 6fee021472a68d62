// Cache operators, vector accesses, constant and local memory, address spaces, initialised globals.
#include <cstdint>
__constant__ float weights[64] = {1.5f, 2.5f};
__device__ int counter = 3;
__device__ const char text[] = "a text with \"quotes\"";
__device__ float matrix[2][3] = {{1, 2}, {4, 5, 6}};
__device__ int* pointer = &counter;
struct Pair { const char* name; int value; };
__device__ Pair pairs[2] = {{text, 1}, {text + 2, 2}};
__managed__ double shared_with_host = 0.25;
struct alignas(32) Wide { double a, b, c, d; };
__global__ void memory(const float4* __restrict__ x, float4* y, int* p, const double2* d, Pair by_value, Wide* w) {
  y[threadIdx.x] = __ldg(x + threadIdx.x);
  y[1] = __ldcg(x + 1); y[2] = __ldcs(x + 2); y[3] = __ldlu(x + 3); y[4] = __ldcv(x + 4);
  __stcg(y + 5, y[6]); __stcs(y + 7, y[8]); __stwt(y + 9, y[10]); __stwb(y + 11, y[12]);
  int local[32];
  for (int i = 0; i < 32; ++i) local[i] = p[i];
  p[0] = local[p[1] & 31] + counter + *pointer + text[p[2]] + pairs[p[3] & 1].value + by_value.value;
  p[1] = (int)(weights[p[4]] + matrix[p[5] & 1][p[6]] + shared_with_host + d[threadIdx.x].x);
  p[2] = __isGlobal(p) + __isShared(y) + __isLocal(local) + __isConstant(weights);
  w[threadIdx.x] = w[threadIdx.x + 1];
  asm volatile("prefetch.global.L2 [%0];\ndiscard.global.L2 [%0], 128;\napplypriority.global.L2::evict_normal [%0], 128;" ::"l"(p));
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(p[8]), "=r"(p[9]), "=r"(p[10]), "=r"(p[11]) : "l"(x));
  asm volatile("st.global.L1::no_allocate.v2.s32 [%0], {%1, %2};" ::"l"(p), "r"(1), "r"(2));
}
