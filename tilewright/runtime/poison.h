#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "tilewright/base/dtype.h"

// The pattern that marks unwritten memory on a GPU. A NaN wherever the type has one, and not the NaN that
// arithmetic gives (PTX ISA, "Floating Point Instructions": canonical NaNs are 0x7fff and 0x7fffffff; "cvt":
// 0x7f for e4m3), so that a computed NaN is not taken for an unwritten element.
namespace tw {

struct PoisonPattern {
  uint32_t value;  // repeated over memory
  int bytes;       // its width: 1, 2 or 4
};
PoisonPattern poison_pattern(DType dtype);

// Bytes of those elements (halves of 64-bit ones) that still hold the pattern.
uint64_t count_poison(std::span<const std::byte> data, DType dtype);
// Offset of the first of them; the size of `data` if there is none.
uint64_t first_poison(std::span<const std::byte> data, DType dtype);

}  // namespace tw
