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

// Output tiles shared out among a fixed pool of CTAs: CTA c takes tiles c, c + pool, c + 2 pool, ... in an
// order that walks down groups of `group` tile rows, one tile column after the other, so that tiles in flight
// share their operands in L2.
class PersistentTiles {
 public:
  // pool: CTAs (or clusters) that share the tiles; worker: which of them this is.
  PersistentTiles(int64_t tiles_m, int64_t tiles_n, int group, int pool, Expr worker);

  int64_t count() const { return tiles_m_ * tiles_n_; }
  void for_each(const std::function<void(TileCoordinate)>& body, Where where = Where::current()) const;

 private:
  int64_t tiles_m_, tiles_n_;
  int group_, pool_;
  Expr worker_;
};

}  // namespace tw::dsl
