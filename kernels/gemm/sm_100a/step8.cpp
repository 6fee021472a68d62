// Step 8: a cluster of two CTAs works as one. Each loads half the rows of A and half the rows of B; one MMA
// of 256 x 256, issued by CTA 0, reads both halves from both shared memories and leaves half the rows of D in
// each tensor memory.
#include "kernels/gemm/ladder.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_100a {
using namespace dsl;

Kernel gemm_step8(const GemmShape& s, Arch arch) {
  constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, CTAS = 2, CHUNK = 128;
  constexpr uint32_t BOTH = 0b11;
  KernelBuilder k("gemm.step8", arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s), rank = cluster_rank;
  PersistentTiles tiles({ceil_div(M, CTAS * BM), ceil_div(s.n, int64_t{BN}), 8}, sms(s, arch) / CTAS,
                        cta_id.x / CTAS);
  k.launch({.grid = {CTAS * tiles.workers()}, .threads = 256, .cluster = {CTAS}});
  const int64_t chunks = ceil_div(s.k, int64_t{BK});

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {STAGES, BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {STAGES, BN / CTAS, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {BM, CHUNK}, swizzle_128B, "Ds");
  auto acc = k.tensor_memory(f32, {BM, BN}, "acc", cta_pair);
  auto row = k.registers(f32, {BM, CHUNK}, row_per_thread_layout(CHUNK), "row");
  auto out = k.registers(s.dtype, {BM, CHUNK}, row_per_thread_layout(CHUNK), "out");
  TmaBarrier loaded(k, STAGES, "loaded", cta_pair);      // load of both -> mma
  MmaBarrier freed(k, STAGES, "freed");                  // mma -> load of both
  MmaBarrier ready(k, 1, "ready");                       // mma -> store of both
  Barrier drained(k, 1, CTAS * 4, "drained", cta_pair);  // store of both -> mma

  k.role("load", warp(7), [&] {
    elected([&] {
      Ring ring(STAGES, Ring::producer);
      tiles.for_each([&](TileCoordinate t) {
        for_range(chunks, [&](Expr i) {
          freed.wait(ring);
          thread.copy_async(As[ring.stage], A.tile((t.m * CTAS + rank) * BM, i * BK),
                            {.signal = loaded[ring]});
          thread.copy_async(Bs[ring.stage], B.tile(t.n * BN + rank * (BN / CTAS), i * BK),
                            {.signal = loaded[ring]});
          loaded.arrive(ring);  // CTA 0, for the bytes of both
          ring.advance();
        });
      });
      freed.wait_all(ring);  // no CTA leaves before the last signal from its peer
    });
  });

  k.role("mma", warp(4), [&] {
    if_(rank == 0, [&] {
      elected([&] {
        Ring ring(STAGES, Ring::consumer), accumulator(1, Ring::producer);
        tiles.for_each([&](TileCoordinate) {
          drained.wait(accumulator);
          ptx::tcgen05_fence_after_thread_sync();
          for_range(chunks, [&](Expr i) {
            loaded.wait(ring);
            cta_pair.gemm_async(acc, As[ring.stage], Bs[ring.stage], {.accumulate = i != 0});
            freed.commit(ring, {.multicast = BOTH});
            ring.advance();
          });
          ready.commit(0, {.multicast = BOTH});
          accumulator.advance();
        });
      });
    });
  });

  k.role("store", warpgroup(0), [&] {
    Ring accumulator(1, Ring::consumer);
    tiles.for_each([&](TileCoordinate t) {
      ready.wait(accumulator);
      ptx::tcgen05_fence_after_thread_sync();
      for (int n = 0; n < BN; n += CHUNK) {
        warpgroup.copy(row, acc.tile(0, n));
        if (n + CHUNK == BN) {
          ptx::tcgen05_fence_before_thread_sync();
          drained.arrive(warp, 0);  // each warp has read its rows
        }
        warpgroup.cast(out, row);
        if_(warp_id == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
        warpgroup.sync();  // the previous chunk has left Ds
        warpgroup.copy(Ds, out);
        ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
        warpgroup.sync();
        auto to = D.tile((t.m * CTAS + rank) * BM, t.n * BN + n);
        if (aligned_rows(s)) {
          if_(warp_id == 0, [&] {
            elected([&] {
              thread.copy_async(to, Ds);
              ptx::bulk_commit_group();
            });
          });
        } else {
          warpgroup.copy(to, Ds);
        }
      }
      accumulator.advance();
    });
    if_(warp_id == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
  });
  return k.finish();
}

}  // namespace tw::kernels::sm_100a
