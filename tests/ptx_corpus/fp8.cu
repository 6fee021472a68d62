// Narrow floating-point formats.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
__global__ void fp8(const float4* x, __nv_fp8x4_e4m3* y, __nv_fp8_e5m2* z, half2* h) {
  const int i = threadIdx.x;
  y[i] = __nv_fp8x4_e4m3(x[i]);
  z[i] = __nv_fp8_e5m2(x[i].x);
  h[i] = (half2)__nv_fp8x2_e5m2(make_float2(x[i].x, x[i].y));
}
__global__ void narrower(const float2* x, __nv_fp4x2_e2m1* a, __nv_fp6x2_e2m3* b, __nv_fp6x2_e3m2* c, __nv_fp8_e8m0* d, float2* o) {
  const int i = threadIdx.x;
  a[i] = __nv_fp4x2_e2m1(x[i]);
  b[i] = __nv_fp6x2_e2m3(x[i]);
  c[i] = __nv_fp6x2_e3m2(x[i]);
  d[i] = __nv_fp8_e8m0(x[i].x);
  o[i] = (float2)a[i + 1];
  o[i + 64] = (float2)b[i + 1];
}
