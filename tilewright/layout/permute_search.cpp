#include <array>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/layout/queries.h"

namespace tw {
namespace {

bool steps_conflict_free(const TileLayout& layout, int bytes, int64_t steps, int k) {
  for (int64_t r = 0; r < steps; ++r) {
    std::array<int64_t, 32> address;
    for (int64_t lane = 0; lane < 32; ++lane)
      address[lane] = layout.at(lane + 32 * (r ^ (lane >> (5 - k))), axis::m) * bytes;
    if (!bank_conflicts(address, bytes).conflict_free()) return false;
  }
  return true;
}

}  // namespace

std::optional<int> conflict_free_xor(const TileLayout& source, const TileLayout& target, int element_bytes) {
  const int64_t n = source.size();
  if (n != target.size()) user_error({}, "{} elements cannot move to a layout of {}", n, target.size());
  if (n % 32 != 0 || !is_power_of_two(n / 32) || n / 32 > 32)
    user_error({}, "a warp moves 32 times 1, 2, 4, ..., 32 elements, not {}", n);
  if (source.equivalent(target)) return 0;
  if (element_bytes < bank_bytes) return std::nullopt;
  for (int k = 0; k <= log2_exact(n / 32); ++k)
    if (steps_conflict_free(source, element_bytes, n / 32, k) &&
        steps_conflict_free(target, element_bytes, n / 32, k))
      return k;
  return std::nullopt;
}

}  // namespace tw
