// Switch tables, calls that are not inlined, indirect calls, recursion, virtual functions, loops with breaks.
#include <new>
__noinline__ __device__ int twice(int x) { return 2 * x; }
__noinline__ __device__ int square(int x) { return x * x; }
__device__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
typedef int (*Function)(int);
__device__ Function table[2] = {twice, square};
struct Shape { __device__ virtual float area() const = 0; };
struct Square : Shape { float a; __device__ float area() const override { return a * a; } };
struct Circle : Shape { float r; __device__ float area() const override { return 3.14f * r * r; } };
struct Big { int a[12]; };
__noinline__ __device__ Big make(int x) { Big b; for (int i = 0; i < 12; ++i) b.a[i] = x + i; return b; }
// Dense cases with calls.
__global__ void table_jump(int* p, int which) {
  switch (which) {
    case 0: p[1] = twice(p[2]); break;
    case 1: asm volatile("membar.gl;"); p[3] = 1; break;
    case 2: p[4] = square(p[5]); break;
    case 3: asm volatile("bar.sync 0;"); break;
    case 4: p[6] = twice(p[7]) + 1; break;
    case 5: asm volatile("nanosleep.u32 5;"); break;
    case 6: p[8] = square(p[9]) + 2; break;
    case 7: asm volatile("membar.sys;"); break;
    case 8: p[10] = twice(p[11]) + 3; break;
    case 9: p[12] = 7; break;
  }
}
__global__ void control(int* p, int n, int which) {
  switch (which) {
    case 0: p[0] = twice(n); break;
    case 1: p[1] = square(n) + p[7]; break;
    case 2: p[2] = p[3] / n; break;
    case 3: p[4] = __popc(n); break;
    case 4: p[5] = n % 7; break;
    case 5: p[6] = p[0] * p[1]; break;
    case 6: p[8] ^= n; break;
    case 9: p[9] -= 1; break;
    default: p[10] = 0;
  }
  p[11] = table[which & 1](n) + factorial(n);
  alignas(16) char memory[sizeof(Circle)];
  Shape* s = which ? (Shape*)new (memory) Square : (Shape*)new (memory) Circle;
  p[12] = (int)s->area();
  p[13] = make(n).a[which];
  for (int i = 0; i < n; ++i) {
    if (p[i] == 3) continue;
    if (p[i] == 4) break;
    p[i] = i;
  }
}
