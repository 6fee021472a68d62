#pragma once
#include <functional>
#include <optional>

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

enum class Schedule {
  persistent,      // a fixed pool of workers, tiles dealt out in advance
  launch_control,  // a worker for each tile; one that runs takes over tiles whose worker has not started
};

// The tiles shared out in either way to workers that are whole clusters, for kernels with roles.
class TileScheduler {
 public:
  struct Options {
    Schedule schedule = Schedule::persistent;
    int ctas = 1;     // of a cluster
    int pool = 0;     // persistent: clusters that share the tiles
    int readers = 0;  // launch_control: warps, of all CTAs of a cluster, that walk over the tiles
  };
  TileScheduler(KernelBuilder& k, TileOrder order, const Options& options, Where where = Where::current());

  Expr ctas() const;  // the size of the grid
  // Each role walks over the same tiles. One role of a single thread in every CTA leads: with launch control
  // it asks for the next tile before it begins one. The others follow.
  void lead(const std::function<void(TileCoordinate)>& body, Where where = Where::current()) const {
    walk(body, true, where);
  }
  void follow(const std::function<void(TileCoordinate)>& body, Where where = Where::current()) const {
    walk(body, false, where);
  }

 private:
  // Answers in flight: while the leader waits for one, a role that is a tile behind may yet read the one
  // before.
  static constexpr int kAnswers = 2;
  struct Answers {
    Tile memory;          // 16 bytes each
    TmaBarrier received;  // in each CTA
    Barrier read;         // by all warps of the cluster
  };
  void walk(const std::function<void(TileCoordinate)>& body, bool asks, Where where) const;

  TileOrder order_;
  Options options_;
  std::optional<Answers> answers_;
};

}  // namespace tw::dsl
