#include "tilewright/runtime/poison.h"

#include <cstring>

namespace tw {
namespace {

// Calls `found` with the offset of each element that equals `value`, until it returns false.
template <class T, class Found>
void each(std::span<const std::byte> data, T value, Found&& found) {
  for (size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
    T element;
    std::memcpy(&element, data.data() + i, sizeof(T));
    if (element == value && !found(i)) return;
  }
}

template <class Found>
void each_poison(std::span<const std::byte> data, const PoisonPattern& pattern, Found&& found) {
  switch (pattern.bytes) {
    case 1: return each(data, static_cast<uint8_t>(pattern.value), found);
    case 2: return each(data, static_cast<uint16_t>(pattern.value), found);
    default: return each(data, pattern.value, found);
  }
}

}  // namespace

PoisonPattern poison_pattern(DType dtype) {
  switch (dtype) {
    case DType::e4m3:
    case DType::e8m0: return {0xff, 1};
    case DType::e5m2: return {0xfd, 1};
    default: break;
  }
  switch (bits(dtype)) {
    case 16: return {0x7fad, 2};  // NaN as f16 and as bf16
    case 32:
    case 64: return {0x7ffadead, 4};  // NaN as f32 and, twice in a row, as f64
    default: return {0xad, 1};        // no NaN in these types
  }
}

uint64_t count_poison(std::span<const std::byte> data, DType dtype) {
  const PoisonPattern pattern = poison_pattern(dtype);
  uint64_t bytes = 0;
  each_poison(data, pattern, [&](uint64_t) {
    bytes += static_cast<uint64_t>(pattern.bytes);
    return true;
  });
  return bytes;
}

uint64_t first_poison(std::span<const std::byte> data, DType dtype) {
  uint64_t first = data.size();
  each_poison(data, poison_pattern(dtype), [&](uint64_t at) {
    first = at;
    return false;
  });
  return first;
}

}  // namespace tw
