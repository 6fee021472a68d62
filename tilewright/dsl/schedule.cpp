#include "tilewright/dsl/schedule.h"

#include "tilewright/base/error.h"

namespace tw::dsl {

int sm_count(Arch arch) { return ir::is_blackwell(arch) ? 148 : 132; }

TileOrder::TileOrder(Expr tiles_m, Expr tiles_n, int group)
    : tiles_m_(std::move(tiles_m)), tiles_n_(std::move(tiles_n)), group_(group) {}

TileCoordinate TileOrder::at(const Expr& index) const {
  Expr per_group = tiles_n_ * Expr(group_), first = index / per_group * Expr(group_),
       in_group = index % per_group;
  // The last group may have fewer rows.
  auto fixed = tiles_m_.constant();
  Expr rows =
      fixed && *fixed % group_ == 0 ? Expr(group_) : max(min(tiles_m_ - first, Expr(group_)), Expr(1));
  return {first + in_group % rows, in_group / rows};
}

PersistentTiles::PersistentTiles(TileOrder order, int pool, Expr worker)
    : order_(std::move(order)), pool_(pool), worker_(std::move(worker)) {}

void PersistentTiles::for_each(const std::function<void(TileCoordinate)>& body, Where where) const {
  for_range(
      worker_, order_.count(), pool_, [&](Expr tile) { body(order_.at(tile)); }, where);
}

TileScheduler::TileScheduler(KernelBuilder& k, TileOrder order, const Options& options, Where where)
    : order_(std::move(order)), options_(options) {
  if (options.schedule == Schedule::persistent) {
    if (options.pool < 1) user_error(where, "a persistent schedule has a pool of at least one cluster");
    return;
  }
  if (options.readers < 1) user_error(where, "launch control counts the warps that read its answers");
  answers_ = Answers{k.shared(u32, {kAnswers, 4}, TileLayout::row_major({kAnswers, 4}), "answers", where),
                     TmaBarrier(k, kAnswers, "received", cta, where),
                     Barrier(k, kAnswers, options.readers, "read", cluster, where)};
}

Expr TileScheduler::ctas() const {
  Expr clusters = answers_ ? order_.count() : min(order_.count(), options_.pool);
  return clusters * Expr(options_.ctas);
}

void TileScheduler::walk(const std::function<void(TileCoordinate)>& body, bool asks, Where where) const {
  const Expr worker = cta_id.x / options_.ctas;
  if (!answers_) return PersistentTiles(order_, options_.pool, worker).for_each(body, where);

  Var tile("tile", worker, 0, where), more("more", true, where);
  Ring answer(kAnswers, Ring::consumer, where);
  while_(
      more,
      [&] {
        Tile response = answers_->memory[answer.stage];
        if (asks) {
          if_(
              cluster_rank == 0, [&] { answers_->read.wait(answer.stage, Expr(answer.phase) ^ 1, where); },
              where);
          ptx::clusterlaunchcontrol_try_cancel(response, answers_->received[answer], where);
          answers_->received.arrive(answer, where);
        }
        body(order_.at(tile));
        answers_->received.wait(answer, where);
        auto next = ptx::clusterlaunchcontrol_query_cancel(response, where);
        ptx::fence_proxy_async(where);  // the next answer is written by the async proxy
        answers_->read.arrive(warp, answer.stage, where);
        more.assign(next.found, where);
        tile.assign(next.first_cta / options_.ctas, where);
        answer.advance(where);
      },
      where);
}

}  // namespace tw::dsl
