// Step 3: a grid of CTAs, one for each 128 x 128 tile of D.
#include "kernels/gemm/ladder.h"

namespace tw::kernels::sm_100a {
using namespace dsl;

Kernel gemm_step3(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 128, BK = 64;
  KernelBuilder k("gemm.step3", arch);
  k.require(s.m > 0 && s.m % BM == 0, "M is a multiple of 128");
  k.require(s.n > 0 && s.n % BN == 0, "N is a multiple of 128");
  k.require(s.k > 0 && s.k % BK == 0, "K is a multiple of 64");
  k.launch({.grid = {s.m / BM, s.n / BN}, .threads = 128});
  const Expr m = cta_id.x * BM, n = cta_id.y * BN;

  auto A = k.global(s.dtype, {s.m, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {s.m, s.n}, "D");
  auto As = k.shared(s.dtype, {BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {BN, BK}, swizzle_128B, "Bs");
  auto acc = k.tensor_memory(f32, {BM, BN}, "acc");
  MmaBarrier done(k, 1, "done");

  for_range(s.k / BK, [&](Expr i) {
    cta.copy(As, A.tile(m, i * BK));
    cta.copy(Bs, B.tile(n, i * BK));
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
  warpgroup.copy(D.tile(m, n), out);
  return k.finish();
}

}  // namespace tw::kernels::sm_100a
