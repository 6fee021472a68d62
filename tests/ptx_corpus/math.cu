// Math functions, fast and exact, single and double.
__global__ void single(float* x, int* e) {
  const float a = x[0], b = x[1];
  x[2] = sinf(a) + cosf(b) + tanf(a) + expf(b) + logf(a) + powf(a, b) + erff(a) + tgammaf(b);
  x[3] = __sinf(a) + __expf(b) + __logf(a) + __fdividef(a, b) + rsqrtf(a) + sqrtf(b) + cbrtf(a) + tanhf(a);
  x[4] = fmodf(a, b) + remainderf(a, b) + fmaf(a, b, a) + __fmaf_rz(a, b, a) + __fadd_ru(a, b) + __fmul_rd(a, b) + __frcp_rn(a);
  x[5] = floorf(a) + ceilf(b) + truncf(a) + rintf(b) + roundf(a) + copysignf(a, b) + fminf(a, b) + fmaxf(a, b) + fabsf(a) + __saturatef(a);
  e[0] = isnan(a) + isinf(b) + isfinite(a) + signbit(b) + __float_as_int(a) + (int)a + (unsigned)b + __float2int_rd(a) + ilogbf(b);
  x[6] = (float)e[1] + (float)(unsigned)e[2] + (float)(long long)e[3] + __int_as_float(e[4]) + __uint2float_rz(e[5]);
  float s, c;
  sincosf(a, &s, &c);
  x[7] = s * c + frexpf(a, e + 6) + ldexpf(b, e[7]) + j0f(a) + normcdff(b);
}
__global__ void twice(double* x, long long* e) {
  const double a = x[0], b = x[1];
  x[2] = sin(a) + exp(b) + log(a) + pow(a, b) + sqrt(a) + rsqrt(b) + a / b + fma(a, b, a) + __dadd_rz(a, b) + floor(a) + lgamma(b);
  e[0] = (long long)a + (unsigned long long)b + __double_as_longlong(a) + __double2hiint(b) + llrint(a);
  x[3] = (double)e[1] + __hiloint2double((int)e[2], (int)e[3]) + (float)a;
}
