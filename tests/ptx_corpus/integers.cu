// Division, wide products, 128-bit integers, bit fields, packed bytes, carries.
typedef unsigned long long u64;
typedef unsigned __int128 u128;
__global__ void integers(long long* p, u64* u, u128* w, int* i, unsigned* v, short* s, signed char* c) {
  p[0] = p[1] / p[2] + p[3] % p[4];
  u[0] = u[1] / u[2] + __umul64hi(u[3], u[4]) + u[5] % 10;
  w[0] = w[1] * w[2] + w[3] / w[4] - (w[5] >> 37) + (w[6] << (int)u[6]);
  i[0] = i[1] / 7 + i[2] % i[3] + __mulhi(i[4], i[5]) + __mul24(i[6], i[7]) + __sad(i[8], i[9], 3) + abs(i[10]) + min(i[11], i[12]);
  v[0] = __brev(v[1]) + __funnelshift_l(v[2], v[3], v[4]) + __funnelshift_rc(v[5], v[6], v[7]) + __byte_perm(v[8], v[9], v[10]) + __dp4a((int)v[11], (int)v[12], 5) + __vadd4(v[13], v[14]) + __vmaxs2(v[15], v[16]) + __viaddmax_s32(i[0], i[1], i[2]) + __vibmax_s32(i[3], i[4], (bool*)c);
  v[1] = ((v[2] & v[3]) | (~v[4] ^ v[5])) + (v[6] >> 5 & 63) + __fns(v[7], 3, 1) + __rhadd(i[1], i[2]);
  s[0] = (short)(s[1] * s[2] + (s[3] << 2) - s[4] / 3);
  c[0] = (signed char)(c[1] * c[2] + c[3]);
  p[5] = __ffsll(p[6]) + __clzll(p[7]) + __popcll(u[7]) + (p[8] >> i[1]) + ((long long)i[2] * i[3]);
}
