// Step 4: TMA moves the tiles; a barrier counts the bytes that arrive. The output goes through shared memory
// and a TMA store. Tails are the copy engine's: it fills what lies outside with zeros, and does not write
// there.
#include "kernels/gemm/ladder.h"

namespace tw::kernels::sm_90a {
using namespace dsl;

Kernel gemm_step4(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 128, BK = 64;
  KernelBuilder k("gemm.step4", arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s);
  k.launch({.grid = {ceil_div(M, BM), ceil_div(s.n, int64_t{BN})}, .threads = 128});
  const Expr m = cta_id.x * BM, n = cta_id.y * BN;

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {BN, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {BM, BN}, swizzle_128B, "Ds");
  auto acc = k.wgmma_accumulator(f32, BM, BN, "acc");
  TmaBarrier loaded(k, 1, "loaded");

  for_range(ceil_div(s.k, int64_t{BK}), [&](Expr i) {
    if_(warp_id == 0, [&] {
      elected([&] {
        thread.copy_async(As, A.tile(m, i * BK), {.signal = loaded[0]});
        thread.copy_async(Bs, B.tile(n, i * BK), {.signal = loaded[0]});
        loaded.arrive(0);
      });
    });
    loaded.wait(0, i % 2);
    warpgroup.gemm_async(acc, As, Bs, {.accumulate = i != 0});
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group(0);
    cta.sync();  // all warps are through with the tiles: they may be overwritten
  });

  auto out = k.wgmma_accumulator(s.dtype, BM, BN, "out");
  warpgroup.cast(out, acc);
  warpgroup.copy(Ds, out);
  ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
  cta.sync();
  if (!aligned_rows(s)) {  // the threads write what the copy engine cannot
    warpgroup.copy(D.tile(m, n), Ds);
    return k.finish();
  }
  if_(warp_id == 0, [&] {
    elected([&] {
      thread.copy_async(D.tile(m, n), Ds);
      ptx::bulk_commit_group();
      ptx::bulk_wait_group_read(0);  // shared memory lives until it has been read
    });
  });
  return k.finish();
}

}  // namespace tw::kernels::sm_90a
