// printf, assert, malloc, clock, device-side traps.
#include <cassert>
#include <cstdio>
__global__ void printing(int n, const char* s, double d) {
  printf("thread %d of %d: %s %f\n", threadIdx.x, n, s, d);
  assert(n > 3);
  char* p = (char*)malloc(n);
  if (!p) __trap();
  p[0] = (char)clock();
  p[1] = (char)clock64();
  free(p);
  __nanosleep(100);
  if (n == 77) __brkpt();
}
