#include "kernels/gemm/plan.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw::kernels {

double estimate_cycles(const GemmShape& s, const GemmPlan& p, const GemmMachine& machine) {
  constexpr int64_t kMany = 4096;  // rows, when nobody says how many to expect
  const int64_t m = s.runtime_m && s.m == 0 ? kMany : s.m;
  const int64_t tiles = ceil_div(m, int64_t{p.tile_m}) * ceil_div(s.n, int64_t{p.tile_n});
  const auto waves = static_cast<double>(ceil_div(tiles, int64_t{std::max(1, machine.sms / p.ctas)}));
  const auto chunks = static_cast<double>(ceil_div(s.k, int64_t{64}));
  const double computing = machine.launch_cycles +
                           waves * (chunks * p.cycles + machine.store_cycles * p.tile_m * p.tile_n / p.ctas);
  const double bytes = 2.0 * static_cast<double>(m * s.k + s.n * s.k + m * s.n);
  // Where memory is the limit, less computing is still better: it waits less often.
  return std::max(computing, bytes / machine.bytes_per_cycle) + 0.02 * computing;
}

const GemmPlan& choose(const GemmShape& s, std::span<const GemmPlan> plans, const GemmMachine& machine) {
  if (s.tile_m != 0 || s.tile_n != 0) {
    std::string known;
    for (const GemmPlan& p : plans) {
      if (p.tile_m == s.tile_m && p.tile_n == s.tile_n) return p;
      known += format("{}{}x{}", known.empty() ? "" : ", ", p.tile_m, p.tile_n);
    }
    user_error({}, "gemm has no tile of {}x{}; there are {}", s.tile_m, s.tile_n, known);
  }
  return *std::min_element(plans.begin(), plans.end(), [&](const GemmPlan& a, const GemmPlan& b) {
    return estimate_cycles(s, a, machine) < estimate_cycles(s, b, machine);
  });
}

}  // namespace tw::kernels
