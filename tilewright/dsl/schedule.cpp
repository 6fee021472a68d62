#include "tilewright/dsl/schedule.h"

namespace tw::dsl {

int sm_count(Arch arch) { return ir::is_blackwell(arch) ? 148 : 132; }

PersistentTiles::PersistentTiles(int64_t tiles_m, int64_t tiles_n, int group, int pool, Expr worker)
    : tiles_m_(tiles_m), tiles_n_(tiles_n), group_(group), pool_(pool), worker_(std::move(worker)) {}

void PersistentTiles::for_each(const std::function<void(TileCoordinate)>& body, Where where) const {
  for_range(
      worker_, Expr(count()), pool_,
      [&](Expr tile) {
        Expr per_group(group_ * tiles_n_), in_group = tile % per_group,
                                           first = tile / per_group * Expr(group_);
        // The last group may have fewer rows.
        Expr rows =
            tiles_m_ % group_ == 0 ? Expr(group_) : max(min(Expr(tiles_m_) - first, Expr(group_)), Expr(1));
        body({first + in_group % rows, in_group / rows});
      },
      where);
}

}  // namespace tw::dsl
