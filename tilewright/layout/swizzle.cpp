#include "tilewright/layout/swizzle.h"

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw {

int width_bytes(SwizzleMode mode) { return 16 << static_cast<int>(mode); }

Swizzle::Swizzle(int m, int b, int s, bool inner_direction)
    : per_element(m), swizzle_len(b), atom_len(s), inner(inner_direction) {
  if (m < 0 || b < 0 || s < 0) user_error({}, "SW({},{},{}): a swizzle's numbers are not negative", m, b, s);
  if (s < b)
    user_error({}, "SW({},{},{}): the bit fields overlap; the third number is at least the second", m, b, s);
  if (m > 62 || b > 62 || s > 62 || m + b + s > 62)
    user_error({}, "SW({},{},{}): addresses have 62 bits, the swizzle reaches bit {}", m, b, s, m + b + s);
}

Swizzle Swizzle::of(SwizzleMode mode, DType element) {
  const int b = bits(element);
  if (!is_power_of_two(b) || b > 128)
    user_error({}, "no swizzle for {}: {} bits do not divide a 16-byte chunk into a power of two",
               name(element), b);
  return Swizzle(log2_exact(128 / b), static_cast<int>(mode), 3);
}

}  // namespace tw
