// Step 6: a fixed pool of CTAs takes tile after tile in an order that keeps operands in L2. The stages run on
// from one tile to the next. Two CTAs share an SM: one multiplies while the other writes back.
#include "kernels/gemm/ladder.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_90a {
using namespace dsl;

Kernel gemm_step6(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 128, BK = 64, STAGES = 2, CTAS_PER_SM = 2;
  KernelBuilder k("gemm.step6", arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s);
  PersistentTiles tiles({ceil_div(M, BM), ceil_div(s.n, int64_t{BN}), 8}, CTAS_PER_SM * sms(s, arch),
                        cta_id.x);
  k.launch({.grid = {tiles.workers()}, .threads = 128});
  const int64_t chunks = ceil_div(s.k, int64_t{BK});

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {STAGES, BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {STAGES, BN, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {BM, BN}, swizzle_128B, "Ds");
  auto acc = k.wgmma_accumulator(f32, BM, BN, "acc");
  TmaBarrier loaded(k, STAGES, "loaded");
  auto out = k.wgmma_accumulator(s.dtype, BM, BN, "out");

  auto load = [&](TileCoordinate t, const Expr& stage, const Expr& i) {
    if_(warp_id == 0, [&] {
      elected([&] {
        thread.copy_async(As[stage], A.tile(t.m * BM, i * BK), {.signal = loaded[stage]});
        thread.copy_async(Bs[stage], B.tile(t.n * BN, i * BK), {.signal = loaded[stage]});
        loaded.arrive(stage);
      });
    });
  };

  Ring ring(STAGES, Ring::consumer);
  tiles.for_each([&](TileCoordinate t) {
    for (int i = 0; i < STAGES && i < chunks; ++i) load(t, (Expr(ring.stage) + i) % STAGES, i);
    for_range(chunks, [&](Expr i) {
      loaded.wait(ring);
      warpgroup.gemm_async(acc, As[ring.stage], Bs[ring.stage], {.accumulate = i != 0});
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group(0);
      cta.sync();  // all warps are through with the stage: it may be overwritten
      if_(i + STAGES < chunks, [&] { load(t, ring.stage, i + STAGES); });
      ring.advance();
    });

    warpgroup.cast(out, acc);
    if_(warp_id == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
    cta.sync();  // the previous tile has left Ds
    warpgroup.copy(Ds, out);
    ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
    cta.sync();
    if (aligned_rows(s)) {
      if_(warp_id == 0, [&] {
        elected([&] {
          thread.copy_async(D.tile(t.m * BM, t.n * BN), Ds);
          ptx::bulk_commit_group();
        });
      });
    } else {
      warpgroup.copy(D.tile(t.m * BM, t.n * BN), Ds);
    }
  });
  if_(warp_id == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
  return k.finish();
}

}  // namespace tw::kernels::sm_90a
