// Step 7: roles. One warp loads, one warp multiplies, a warpgroup writes back; four barriers hand the stages
// and the accumulator over.
#include "kernels/gemm/ladder.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_100a {
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
  auto acc = k.tensor_memory(f32, {BM, BN}, "acc");
  auto row = k.registers(f32, {BM, BN}, row_per_thread_layout(BN), "row");
  auto out = k.registers(s.dtype, {BM, BN}, row_per_thread_layout(BN), "out");
  TmaBarrier loaded(k, STAGES, "loaded");  // load  -> mma
  MmaBarrier freed(k, STAGES, "freed");    // mma   -> load
  MmaBarrier ready(k, 1, "ready");         // mma   -> store
  Barrier drained(k, 1, 128, "drained");   // store -> mma

  k.role("load", warp(7), [&] {
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

  k.role("mma", warp(4), [&] {
    elected([&] {
      Ring ring(STAGES, Ring::consumer), accumulator(1, Ring::producer);
      tiles.for_each([&](TileCoordinate) {
        drained.wait(accumulator);
        ptx::tcgen05_fence_after_thread_sync();
        for_range(chunks, [&](Expr i) {
          loaded.wait(ring);
          thread.gemm_async(acc, As[ring.stage], Bs[ring.stage], {.accumulate = i != 0});
          freed.commit(ring);
          ring.advance();
        });
        ready.commit(0);
        accumulator.advance();
      });
    });
  });

  k.role("store", warpgroup(0), [&] {
    Ring accumulator(1, Ring::consumer);
    tiles.for_each([&](TileCoordinate t) {
      ready.wait(accumulator);
      ptx::tcgen05_fence_after_thread_sync();
      warpgroup.copy(row, acc);
      ptx::tcgen05_fence_before_thread_sync();
      drained.arrive(0);  // each of 128 threads has read its row
      accumulator.advance();
      warpgroup.cast(out, row);
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

}  // namespace tw::kernels::sm_100a
