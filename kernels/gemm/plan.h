#pragma once
#include <span>

#include "kernels/registry.h"

// How `gemm` serves a shape: the tile that a small model of time finds best.
namespace tw::kernels {

struct GemmPlan {
  int tile_m, tile_n;  // of D
  int consumers;       // warpgroups that multiply; each has tile_m / consumers rows
  int stages;          // of A and B in shared memory
  int cycles;          // that a 64-deep chunk of K takes an SM when all are busy; measured
  int ctas = 1;        // that compute a tile together, each on an SM
};

struct GemmMachine {
  int sms;
  double bytes_per_cycle;  // of the whole GPU's memory
  int launch_cycles;       // before the first product
  double store_cycles;     // for each element of a tile of D and SM, what the next tile does not hide
};

// Cycles of the whole product. Every wave of tiles costs its slowest member, a full tile; operands and result
// cross the memory bus at least once.
double estimate_cycles(const GemmShape& s, const GemmPlan& plan, const GemmMachine& machine);

// The one of least cycles; s.tile_m and s.tile_n, where given, leave no choice. User error: no such tile
// (lists those there are).
const GemmPlan& choose(const GemmShape& s, std::span<const GemmPlan> plans, const GemmMachine& machine);

}  // namespace tw::kernels
