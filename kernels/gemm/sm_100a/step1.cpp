// Step 1: one CTA, one 128 x 128 tile, K = 64.
// Global -> shared -> tensor core -> tensor memory -> registers -> global; threads do the copying.
#include "kernels/gemm/ladder.h"

namespace tw::kernels::sm_100a {
using namespace dsl;

Kernel gemm_step1(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 128, BK = 64;
  KernelBuilder k("gemm.step1", arch);
  k.require(s.m == BM && s.n == BN && s.k == BK, "step 1 computes one tile: M = 128, N = 128, K = 64");
  k.launch({.grid = {1}, .threads = 128});

  auto A = k.global(s.dtype, {s.m, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {s.m, s.n}, "D");
  auto As = k.shared(s.dtype, {BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {BN, BK}, swizzle_128B, "Bs");
  auto acc = k.tensor_memory(f32, {BM, BN}, "acc");
  MmaBarrier done(k, 1, "done");

  cta.copy(As, A);
  cta.copy(Bs, B);
  ptx::fence_proxy_async();  // the tensor core reads what the threads wrote
  cta.sync();

  if_(warp_id == 0, [&] {
    elected([&] {
      thread.gemm_async(acc, As, Bs, {.accumulate = false});
      done.commit(0);
    });
  });
  done.wait(0, 0);
  ptx::tcgen05_fence_after_thread_sync();

  auto row = k.registers(f32, {BM, BN}, row_per_thread_layout(BN), "row");
  auto out = k.registers(s.dtype, {BM, BN}, row_per_thread_layout(BN), "out");
  warpgroup.copy(row, acc);
  warpgroup.cast(out, row);
  warpgroup.copy(D, out);
  return k.finish();
}

}  // namespace tw::kernels::sm_100a
