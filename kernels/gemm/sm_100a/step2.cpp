// Step 2: K in chunks of 64. One pair of shared tiles and one accumulator serve all of them; the barrier's
// phase flips with every chunk.
#include "kernels/gemm/ladder.h"

namespace tw::kernels::sm_100a {
using namespace dsl;

Kernel gemm_step2(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 128, BK = 64;
  KernelBuilder k("gemm.step2", arch);
  k.require(s.m == BM && s.n == BN, "step 2 computes one tile: M = 128, N = 128");
  k.require(s.k > 0 && s.k % BK == 0, "K is a multiple of 64");
  k.launch({.grid = {1}, .threads = 128});

  auto A = k.global(s.dtype, {s.m, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {s.m, s.n}, "D");
  auto As = k.shared(s.dtype, {BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {BN, BK}, swizzle_128B, "Bs");
  auto acc = k.tensor_memory(f32, {BM, BN}, "acc");
  MmaBarrier done(k, 1, "done");

  for_range(s.k / BK, [&](Expr i) {
    cta.copy(As, A.tile(0, i * BK));
    cta.copy(Bs, B.tile(0, i * BK));
    ptx::fence_proxy_async();  // the tensor core reads what the threads wrote
    cta.sync();

    if_(warp_id == 0, [&] {
      elected([&] {
        thread.gemm_async(acc, As, Bs, {.accumulate = i != 0});
        done.commit(0);
      });
    });
    done.wait(0, i % 2);  // the tiles may be overwritten
    // By threads, and what the tensor core reads through the async proxy comes back to them by a fence only.
    ptx::fence_proxy_async();
  });
  ptx::tcgen05_fence_after_thread_sync();

  auto row = k.registers(f32, {BM, BN}, row_per_thread_layout(BN), "row");
  auto out = k.registers(s.dtype, {BM, BN}, row_per_thread_layout(BN), "out");
  warpgroup.copy(row, acc);
  warpgroup.cast(out, row);
  warpgroup.copy(D, out);
  return k.finish();
}

}  // namespace tw::kernels::sm_100a
