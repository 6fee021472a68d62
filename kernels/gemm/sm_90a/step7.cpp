// Step 7: roles. One warp loads, a warpgroup multiplies and writes back; barriers hand the stages over. The
// loading warpgroup gives most of its registers to the other.
#include "kernels/gemm/ladder.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_90a {
using namespace dsl;

Kernel gemm_step7(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 128, BK = 64, STAGES = 4;
  KernelBuilder k("gemm.step7", arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s);
  PersistentTiles tiles({ceil_div(M, BM), ceil_div(s.n, int64_t{BN}), 8}, sms(s, arch), cta_id.x);
  k.launch({.grid = {tiles.workers()}, .threads = 256});
  const int64_t chunks = ceil_div(s.k, int64_t{BK});

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {STAGES, BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {STAGES, BN, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {BM, BN}, swizzle_128B, "Ds");
  auto acc = k.wgmma_accumulator(f32, BM, BN, "acc");
  auto out = k.wgmma_accumulator(s.dtype, BM, BN, "out");
  TmaBarrier loaded(k, STAGES, "loaded");  // load -> mma
  Barrier freed(k, STAGES, 4, "freed");    // mma -> load, one arrival a warp

  k.role("load", warpgroup(1), 40, [&] {
    if_(warp_id == 4, [&] {
      elected([&] {
        Ring ring(STAGES, Ring::producer);
        tiles.for_each([&](TileCoordinate t) {
          for_range(chunks, [&](Expr i) {
            freed.wait(ring);
            thread.copy_async(As[ring.stage], A.tile(t.m * BM, i * BK), {.signal = loaded[ring]});
            thread.copy_async(Bs[ring.stage], B.tile(t.n * BN, i * BK), {.signal = loaded[ring]});
            loaded.arrive(ring);
            ring.advance();
          });
        });
      });
    });
  });

  k.role("mma", warpgroup(0), 232, [&] {
    Ring ring(STAGES, Ring::consumer), done(STAGES, Ring::consumer);
    auto give_back = [&] {
      elected([&] { freed.arrive(done); });
      done.advance();
    };
    tiles.for_each([&](TileCoordinate t) {
      for_range(chunks, [&](Expr i) {
        loaded.wait(ring);
        warpgroup.gemm_async(acc, As[ring.stage], Bs[ring.stage], {.accumulate = i != 0});
        ptx::wgmma_commit_group();
        if_(i != 0, [&] {
          ptx::wgmma_wait_group(1);  // one product stays in flight; the one before is through with its stage
          give_back();
        });
        ring.advance();
      });
      ptx::wgmma_wait_group(0);
      give_back();
      warpgroup.cast(out, acc);
      if_(warp_id == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
      warpgroup.sync();  // the previous tile has left Ds
      warpgroup.copy(Ds, out);
      ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
      warpgroup.sync();
      if (!aligned_rows(s)) return warpgroup.copy(D.tile(t.m * BM, t.n * BN), Ds);
      if_(warp_id == 0, [&] {
        elected([&] {
          thread.copy_async(D.tile(t.m * BM, t.n * BN), Ds);
          ptx::bulk_commit_group();
        });
      });
    });
    if_(warp_id == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
  });
  return k.finish();
}

}  // namespace tw::kernels::sm_90a
