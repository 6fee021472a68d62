#include "tilewright/dsl/schedule.h"

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

}  // namespace tw::dsl
