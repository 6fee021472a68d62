// Step 9: a second MMA consumer shares the staged tile of B. A cluster computes 512 x 256; the two
// accumulators fill tensor memory, and the threads write them back in chunks of 64 columns. Which cluster
// computes which tile is the scheduler's: dealt out in advance, or by cluster launch control.
#include "kernels/gemm/ladder.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_100a {
using namespace dsl;

namespace {

Kernel gemm(std::string_view name, const GemmShape& s, Arch arch, Schedule schedule) {
  constexpr int BM = 128, BN = 256, BK = 64, STAGES = 4, CTAS = 2, CONSUMERS = 2, CHUNK = 64;
  constexpr uint32_t BOTH = 0b11;
  KernelBuilder k(name, arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s), rank = cluster_rank;
  // Of each CTA one warp loads and eight store; of CTA 0 two multiply.
  TileScheduler tiles(k, {ceil_div(M, CONSUMERS * CTAS * BM), ceil_div(s.n, int64_t{BN}), 8},
                      {.schedule = schedule,
                       .ctas = CTAS,
                       .pool = sms(s, arch) / CTAS,
                       .readers = CTAS * (1 + 4 * CONSUMERS) + CONSUMERS});
  k.launch({.grid = {tiles.ctas()}, .threads = 384, .cluster = {CTAS}});
  const int64_t chunks = ceil_div(s.k, int64_t{BK});

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {STAGES, CONSUMERS, BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {STAGES, BN / CTAS, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {CONSUMERS, BM, CHUNK}, swizzle_128B, "Ds");
  auto acc = k.tensor_memory(f32, {BM, CONSUMERS * BN}, "acc", cta_pair);
  auto row = k.registers(f32, {BM, CHUNK}, row_per_thread_layout(CHUNK), "row");
  auto out = k.registers(s.dtype, {BM, CHUNK}, row_per_thread_layout(CHUNK), "out");
  TmaBarrier loaded(k, STAGES, "loaded", cta_pair);              // load of both -> mma
  MmaBarrier freed(k, STAGES, "freed", CONSUMERS);               // mma -> load of both
  MmaBarrier ready(k, CONSUMERS, "ready");                       // mma -> store of both
  Barrier drained(k, CONSUMERS, CTAS * 4, "drained", cta_pair);  // store of both -> mma
  // The first of a CTA's rows that belong to a consumer.
  auto row_of = [&](const TileCoordinate& t, int consumer) {
    return ((t.m * CONSUMERS + consumer) * CTAS + rank) * BM;
  };

  k.role("load", warp(11), [&] {
    elected([&] {
      Ring ring(STAGES, Ring::producer);
      tiles.lead([&](TileCoordinate t) {
        for_range(chunks, [&](Expr i) {
          freed.wait(ring);
          for (int c = 0; c < CONSUMERS; ++c)
            thread.copy_async(As[ring.stage][c], A.tile(row_of(t, c), i * BK), {.signal = loaded[ring]});
          thread.copy_async(Bs[ring.stage], B.tile(t.n * BN + rank * (BN / CTAS), i * BK),
                            {.signal = loaded[ring]});
          loaded.arrive(ring);  // CTA 0, for the bytes of both
          ring.advance();
        });
      });
      freed.wait_all(ring);  // no CTA leaves before the last signal from its peer
    });
  });

  for (int c = 0; c < CONSUMERS; ++c) {
    k.role(c == 0 ? "mma0" : "mma1", warp(8 + c), [&] {
      if_(rank == 0, [&] {
        elected([&] {
          Ring ring(STAGES, Ring::consumer), accumulator(1, Ring::producer);
          tiles.follow([&](TileCoordinate) {
            drained.wait(c, accumulator.phase);
            ptx::tcgen05_fence_after_thread_sync();
            for_range(chunks, [&](Expr i) {
              loaded.wait(ring);
              cta_pair.gemm_async(acc.tile({0, c * BN}, {BM, BN}), As[ring.stage][c], Bs[ring.stage],
                                  {.accumulate = i != 0});
              freed.commit(ring, {.multicast = BOTH});
              ring.advance();
            });
            ready.commit(c, {.multicast = BOTH});
            accumulator.advance();
          });
        });
      });
    });

    k.role(c == 0 ? "store0" : "store1", warpgroup(c), [&] {
      auto chosen = [&](const std::function<void()>& body) { if_(warp_id == 4 * c, [&] { elected(body); }); };
      Ring accumulator(1, Ring::consumer);
      tiles.follow([&](TileCoordinate t) {
        ready.wait(c, accumulator.phase);
        ptx::tcgen05_fence_after_thread_sync();
        for (int n = 0; n < BN; n += CHUNK) {
          warpgroup.copy(row, acc.tile(0, c * BN + n));
          if (n + CHUNK == BN) {
            ptx::tcgen05_fence_before_thread_sync();
            drained.arrive(warp, c);  // each warp has read its rows
          }
          warpgroup.cast(out, row);
          chosen([&] { ptx::bulk_wait_group_read(0); });
          warpgroup.sync();  // the previous chunk has left Ds
          warpgroup.copy(Ds[c], out);
          ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
          warpgroup.sync();
          auto to = D.tile(row_of(t, c), t.n * BN + n);
          if (aligned_rows(s)) {
            chosen([&] {
              thread.copy_async(to, Ds[c]);
              ptx::bulk_commit_group();
            });
          } else {
            warpgroup.copy(to, Ds[c]);
          }
        }
        accumulator.advance();
      });
      chosen([&] { ptx::bulk_wait_group_read(0); });
    });
  }
  return k.finish();
}

}  // namespace

Kernel gemm_step9(const GemmShape& s, Arch arch) { return gemm("gemm.step9", s, arch, Schedule::persistent); }

Kernel gemm_step9_clc(const GemmShape& s, Arch arch) {
  return gemm("gemm.step9_clc", s, arch, Schedule::launch_control);
}

}  // namespace tw::kernels::sm_100a
