#pragma once
#include <cstdint>

#include "tilewright/base/dtype.h"

namespace tw {

// The swizzle modes of shared-memory matrices (PTX ISA, "Shared Memory Layout and Swizzling"): the width in
// bytes of the row in which 16-byte chunks are exchanged.
enum class SwizzleMode : uint8_t { none, b32, b64, b128 };
int width_bytes(SwizzleMode mode);  // 16 for none: one chunk, nothing to exchange

// An XOR of address bits, SW(M, B, S): with x = p >> M, the B bits of x above bit S are XORed into its B
// lowest bits (inner), or the B lowest bits into those above S (outer). A bijection and its own inverse.
struct Swizzle {
  int per_element = 0;  // M: log2 of the elements that stay together
  int swizzle_len = 0;  // B: bits exchanged
  int atom_len = 0;     // S: distance of the two bit fields, at least B
  bool inner = true;

  Swizzle() = default;
  // A user error when a number is negative, S < B, or M+B+S exceeds 62.
  Swizzle(int m, int b, int s, bool inner_direction = true);
  // The hardware's swizzle in units of this type: B = 3, 2, 1, 0 for 128, 64, 32 bytes and none.
  static Swizzle of(SwizzleMode mode, DType element);

  constexpr int64_t apply(int64_t p) const {
    const int64_t x = p >> per_element;
    const int64_t low = (int64_t{1} << swizzle_len) - 1;
    const int64_t flips = inner ? ((x >> atom_len) & low) : ((x & low) << atom_len);
    return p ^ (flips << per_element);
  }
  // The smallest n with apply(p + n) = apply(p) + n for all p.
  constexpr int64_t period() const {
    return swizzle_len == 0 ? 1 : int64_t{1} << (per_element + atom_len + swizzle_len);
  }
  constexpr bool is_identity() const { return swizzle_len == 0; }
  bool operator==(const Swizzle&) const = default;
};

}  // namespace tw
