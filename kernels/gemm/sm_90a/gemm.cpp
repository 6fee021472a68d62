// The GEMM to call on Hopper: step 9 without its cluster, whose multicast gains nothing where the L2 cache
// keeps up, in the tile that serves the shape best.
#include "kernels/gemm/ladder.h"
#include "kernels/gemm/plan.h"
#include "tilewright/dsl/schedule.h"

namespace tw::kernels::sm_90a {
using namespace dsl;

// Cycles of 1.755 GHz at full load, from one sweep of all tiles over the shapes of `tw bench gemm --shapes
// all` on an H200; `tw bench gemm --kernel gemm --tile MxN` at 4096 x 4096 x 4096, over waves and chunks,
// gave them within a tenth. A 64 x 256 x 64 product takes the tensor core 512; the power limit stretches
// that, and small tiles wait for their operands.
std::span<const GemmPlan> gemm_plans() {
  static constexpr GemmPlan kPlans[] = {
      {128, 256, 2, 3, 1310}, {256, 128, 2, 3, 1330}, {128, 192, 2, 4, 1000},
      {128, 128, 2, 5, 662},  {64, 256, 1, 4, 715},   {64, 192, 1, 5, 530},
      {64, 128, 1, 7, 357},   {128, 64, 2, 8, 560},   {64, 64, 1, 10, 300}};
  return kPlans;
}

// Memory gives 4.0 TB/s at a clock of 1.755 GHz.
GemmMachine gemm_machine(const GemmShape& s, Arch arch) {
  return {.sms = sms(s, arch), .bytes_per_cycle = 2280, .launch_cycles = 1500, .store_cycles = 0.018};
}

Kernel gemm(const GemmShape& s, Arch arch) {
  const GemmPlan plan = choose(s, gemm_plans(), gemm_machine(s, arch));
  constexpr int BK = 64;
  const int BM = plan.tile_m, BN = plan.tile_n, STAGES = plan.stages, ROWS = BM / plan.consumers;
  KernelBuilder k("gemm", arch);
  require_aligned_operands(k, s);
  const Expr M = rows(k, s);
  const int group = std::max(1, 1024 / BM);  // tile rows: 1024 rows of A stay in L2
  PersistentTiles tiles({ceil_div(M, BM), ceil_div(s.n, int64_t{BN}), group}, sms(s, arch), cta_id.x);
  k.launch({.grid = {tiles.workers()}, .threads = 128 * (plan.consumers + 1)});
  const int64_t chunks = ceil_div(s.k, int64_t{BK});

  auto A = k.global(s.dtype, {M, s.k}, "A");
  auto B = k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  auto As = k.shared(s.dtype, {STAGES, BM, BK}, swizzle_128B, "As");
  auto Bs = k.shared(s.dtype, {STAGES, BN, BK}, swizzle_128B, "Bs");
  auto Ds = k.shared(s.dtype, {BM, BN}, swizzle_128B, "Ds");
  auto acc = k.wgmma_accumulator(f32, ROWS, BN, "acc");
  auto out = k.wgmma_accumulator(s.dtype, ROWS, BN, "out");
  TmaBarrier loaded(k, STAGES, "loaded");                 // load -> mma
  Barrier freed(k, STAGES, 4 * plan.consumers, "freed");  // mma -> load, one arrival a warp

  k.role("load", warpgroup(plan.consumers), 40, [&] {
    if_(warp_id == 4 * plan.consumers, [&] {
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

  k.role("mma", warpgroup(0, plan.consumers), 232, [&] {
    const Expr mine = warpgroup_id * ROWS;  // rows of the tile
    Ring ring(STAGES, Ring::consumer), done(STAGES, Ring::consumer);
    auto give_back = [&] {
      elected([&] { freed.arrive(done); });
      done.advance();
    };
    tiles.for_each([&](TileCoordinate t) {
      for_range(chunks, [&](Expr i) {
        loaded.wait(ring);
        warpgroup.gemm_async(acc, As[ring.stage].tile({mine, 0}, {ROWS, BK}), Bs[ring.stage],
                             {.accumulate = i != 0});
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
      if_(warp_id % 4 == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
      warpgroup.sync();  // the previous tile has left Ds
      warpgroup.copy(Ds.tile(mine, 0), out);
      ptx::fence_proxy_async();  // the copy engine reads what the threads wrote
      warpgroup.sync();
      if (!aligned_rows(s))
        return warpgroup.copy(D.tile(t.m * BM + mine, t.n * BN), Ds.tile({mine, 0}, {ROWS, BN}));
      if_(warp_id % 4 == 0, [&] {
        elected([&] {
          thread.copy_async(D.tile(t.m * BM + mine, t.n * BN), Ds.tile({mine, 0}, {ROWS, BN}));
          ptx::bulk_commit_group();
        });
      });
    });
    if_(warp_id % 4 == 0, [&] { elected([&] { ptx::bulk_wait_group_read(0); }); });
  });
  return k.finish();
}

}  // namespace tw::kernels::sm_90a
