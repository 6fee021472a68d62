// The GEMM to call on Blackwell: step 8 with two accumulators, so that one tile is written back while the
// next is multiplied, in the tile that serves the shape best: 256 rows of a pair of CTAs or 128 rows of one.
#include "kernels/gemm/ladder.h"
#include "kernels/gemm/plan.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_100a {
using namespace dsl;

// Cycles of a B200, from docs/hardware.md: the longer of four products (SemiAnalysis) and of loading a CTA's
// part of A and B at 80.8 bytes a cycle.
std::span<const GemmPlan> gemm_plans() {
  static constexpr GemmPlan kPlans[] = {
      {.tile_m = 256, .tile_n = 256, .consumers = 1, .stages = 6, .cycles = 515, .ctas = 2},
      {.tile_m = 256, .tile_n = 192, .consumers = 1, .stages = 6, .cycles = 386, .ctas = 2},
      {.tile_m = 256, .tile_n = 128, .consumers = 1, .stages = 8, .cycles = 304, .ctas = 2},
      {.tile_m = 256, .tile_n = 64, .consumers = 1, .stages = 9, .cycles = 253, .ctas = 2},
      {.tile_m = 128, .tile_n = 256, .consumers = 1, .stages = 4, .cycles = 608, .ctas = 1},
      {.tile_m = 128, .tile_n = 192, .consumers = 1, .stages = 4, .cycles = 507, .ctas = 1},
      {.tile_m = 128, .tile_n = 128, .consumers = 1, .stages = 6, .cycles = 405, .ctas = 1},
      {.tile_m = 128, .tile_n = 64, .consumers = 1, .stages = 8, .cycles = 304, .ctas = 1}};
  return kPlans;
}

// Memory gives 7.2 TB/s at a clock of 1.965 GHz; the next tile hides what writing one back takes.
GemmMachine gemm_machine(const GemmShape& s, Arch arch) {
  return {.sms = sms(s, arch), .bytes_per_cycle = 3660, .launch_cycles = 4500, .store_cycles = 0};
}

Kernel gemm(const GemmShape& s, Arch arch) {
  const GemmPlan plan = choose(s, gemm_plans(), gemm_machine(s, arch));
  constexpr int BM = 128, BK = 64, CHUNK = 64, ACCUMULATORS = 2, BUFFERS = 2;
  const int BN = plan.tile_n, CTAS = plan.ctas, STAGES = plan.stages;
  const ScopeOps &owner = CTAS == 2 ? cta_pair : cta, &issuer = CTAS == 2 ? cta_pair : thread;
  const CommitOptions to_all{.multicast = CTAS == 2 ? 0b11u : 0};
  KernelBuilder k("gemm", arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s), rank = CTAS == 2 ? cluster_rank : Expr(0);
  const int group = std::max(1, 1024 / plan.tile_m);  // tile rows: 1024 rows of A stay in L2
  PersistentTiles tiles({ceil_div(M, plan.tile_m), ceil_div(s.n, int64_t{BN}), group}, sms(s, arch) / CTAS,
                        cta_id.x / CTAS);
  k.launch({.grid = {tiles.workers() * CTAS}, .threads = 192, .cluster = {CTAS}});
  const int64_t chunks = ceil_div(s.k, int64_t{BK});

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {STAGES, BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {STAGES, BN / CTAS, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {BUFFERS, BM, CHUNK}, swizzle_128B, "Ds");
  auto acc = k.tensor_memory(f32, {BM, ACCUMULATORS * BN}, "acc", owner);
  auto row = k.registers(f32, {BM, CHUNK}, row_per_thread_layout(CHUNK), "row");
  auto out = k.registers(s.dtype, {BM, CHUNK}, row_per_thread_layout(CHUNK), "out");
  TmaBarrier loaded(k, STAGES, "loaded", owner);                 // load -> mma
  MmaBarrier freed(k, STAGES, "freed");                          // mma -> load
  MmaBarrier ready(k, ACCUMULATORS, "ready");                    // mma -> store
  Barrier drained(k, ACCUMULATORS, 4 * CTAS, "drained", owner);  // store -> mma
  auto row_of = [&](const TileCoordinate& t) { return (t.m * CTAS + rank) * BM; };

  k.role("load", warp(5), [&] {
    elected([&] {
      Ring ring(STAGES, Ring::producer);
      tiles.for_each([&](TileCoordinate t) {
        for_range(chunks, [&](Expr i) {
          freed.wait(ring);
          thread.copy_async(As[ring.stage], A.tile(row_of(t), i * BK), {.signal = loaded[ring]});
          thread.copy_async(Bs[ring.stage], B.tile(t.n * BN + rank * (BN / CTAS), i * BK),
                            {.signal = loaded[ring]});
          loaded.arrive(ring);
          ring.advance();
        });
      });
      freed.wait_all(ring);  // no CTA leaves before the last signal from its peer
    });
  });

  k.role("mma", warp(4), [&] {
    if_(rank == 0, [&] {
      elected([&] {
        Ring ring(STAGES, Ring::consumer), accumulator(ACCUMULATORS, Ring::producer);
        tiles.for_each([&](TileCoordinate) {
          drained.wait(accumulator);
          ptx::tcgen05_fence_after_thread_sync();
          for_range(chunks, [&](Expr i) {
            loaded.wait(ring);
            issuer.gemm_async(acc.tile({0, Expr(accumulator.stage) * BN}, {BM, BN}), As[ring.stage],
                              Bs[ring.stage], {.accumulate = i != 0});
            freed.commit(ring, to_all);
            ring.advance();
          });
          ready.commit(accumulator, to_all);
          accumulator.advance();
        });
      });
    });
  });

  k.role("store", warpgroup(0), [&] {
    auto chosen = [&](const std::function<void()>& body) { if_(warp_id == 0, [&] { elected(body); }); };
    Ring accumulator(ACCUMULATORS, Ring::consumer);
    tiles.for_each([&](TileCoordinate t) {
      ready.wait(accumulator);
      ptx::tcgen05_fence_after_thread_sync();
      const int parts = BN / CHUNK;
      for (int p = 0; p < parts; ++p) {
        const int buffer = p % BUFFERS;
        warpgroup.copy(row, acc.tile(0, Expr(accumulator.stage) * BN + p * CHUNK));
        if (p + 1 == parts) {
          ptx::tcgen05_fence_before_thread_sync();
          drained.arrive(warp, accumulator.stage);  // each warp has read its rows
        }
        warpgroup.cast(out, row);
        // The store before the last has left this buffer; with an odd number of parts, a tile begins with the
        // buffer that the last store reads.
        chosen([&] { ptx::bulk_wait_group_read(p == 0 && parts % BUFFERS != 0 ? 0 : BUFFERS - 1); });
        warpgroup.sync();
        warpgroup.copy(Ds[buffer], out);
        ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
        warpgroup.sync();
        auto to = D.tile(row_of(t), t.n * BN + p * CHUNK);
        if (aligned_rows(s)) {
          chosen([&] {
            thread.copy_async(to, Ds[buffer]);
            ptx::bulk_commit_group();
          });
        } else {
          warpgroup.copy(to, Ds[buffer]);
        }
      }
      accumulator.advance();
    });
    chosen([&] { ptx::bulk_wait_group_read(0); });
  });
  return k.finish();
}

}  // namespace tw::kernels::sm_100a
