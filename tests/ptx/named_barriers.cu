// Two pairs of warps hand values over at named barriers: bar.arrive by the writer, bar.sync by the reader.
extern "C" __global__ void __launch_bounds__(128) named_barriers(const int* in, int* out, int rounds) {
  __shared__ int box[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pair = warp / 2, filled = 1 + pair, drained = 3 + pair;
#ifdef FAULT  // deadlock: the readers wait for 96 threads at a barrier that 64 ever reach
  const int readers = 96;
#else
  const int readers = 64;
#endif
  int sum = 0;
  for (int r = 0; r < rounds; ++r) {
    if (warp % 2 == 0) {
      if (r > 0) asm volatile("bar.sync %0, 64;" ::"r"(drained) : "memory");
      box[pair][lane] = in[(r * 2 + pair) * 32 + lane];
      asm volatile("bar.arrive %0, %1;" ::"r"(filled), "r"(readers) : "memory");
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(filled), "r"(readers) : "memory");
      sum += (r + 1) * box[pair][31 - lane];
      if (r + 1 < rounds) asm volatile("bar.arrive %0, 64;" ::"r"(drained) : "memory");
    }
  }
  if (warp % 2) out[pair * 32 + lane] = sum;
}
