#pragma once
#include <functional>

#include "tilewright/dsl/dsl.h"

namespace tw::dsl {

// SMs of the GPUs an architecture stands for (H200: 132, B200: 148): the size of a persistent grid. Correct
// on any machine; fastest where it fits.
int sm_count(Arch arch);

struct TileCoordinate {
  Expr m, n;
};

// Output tiles in an order that walks down groups of `group` tile rows, one tile column after the other, so
// that tiles in flight share their operands in L2. Counts of tiles may be known at run time only.
class TileOrder {
 public:
  TileOrder(Expr tiles_m, Expr tiles_n, int group);
  Expr count() const { return tiles_m_ * tiles_n_; }
  TileCoordinate at(const Expr& index) const;  // 0 <= index < count

 private:
  Expr tiles_m_, tiles_n_;
  int group_;
};

// The tiles shared out among a fixed pool of workers: worker w takes tiles w, w + pool, w + 2 pool, ...
class PersistentTiles {
 public:
  // pool: CTAs (or clusters) that share the tiles; worker: which of them this is.
  PersistentTiles(TileOrder order, int pool, Expr worker);

  Expr workers() const { return min(order_.count(), pool_); }  // that get a tile: the size of the grid
  void for_each(const std::function<void(TileCoordinate)>& body, Where where = Where::current()) const;

 private:
  TileOrder order_;
  int pool_;
  Expr worker_;
};

}  // namespace tw::dsl
