// half, half2, bfloat16 and their comparisons, min/max with NaN, fused and saturated forms.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__global__ void halves(half* a, half2* b, float* f) {
  const int i = threadIdx.x;
  half x = a[i], y = a[i + 1];
  half2 u = b[i], v = b[i + 1];
  x = __hfma(x, y, hexp(x)) + hrcp(y) - hlog2(x) * htanh(y);
  u = __hfma2_relu(u, v, __hadd2_sat(u, v));
  u = __hmax2_nan(u, __habs2(v));
  if (__hbgt2(u, v)) u = h2exp2(u);
  if (__hlt(x, y) || __hisnan(x)) x = hsqrt(x);
  u = __hmul2(u, __hge2(u, v));
  a[i] = x;
  b[i] = u;
  f[i] = __half2float(x) + __low2float(u) + (float)__half2int_rn(y) + __half2ull_rz(x);
  atomicAdd(b, u);
}
__global__ void bfloats(__nv_bfloat16* a, __nv_bfloat162* b, float* f) {
  const int i = threadIdx.x;
  __nv_bfloat16 x = a[i], y = a[i + 1];
  __nv_bfloat162 u = b[i], v = b[i + 1];
  x = __hfma(x, y, x) + y * x - hexp2(x);
  u = __hfma2_relu(u, v, u) + __hmin2(u, v) - __hneg2(v);
  if (__hbne2(u, v)) u = v;
  f[i] = __bfloat162float(x) + __high2float(u);
  a[i] = __float2bfloat16_rz(f[i]);
  b[i] = __floats2bfloat162_rn(f[i], f[i + 1]);
  atomicAdd(a, x);
}
