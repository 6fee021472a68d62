#include "tilewright/runtime/poison.h"

#include <cstring>

namespace tw {
namespace {

template <class T>
uint64_t count(std::span<const std::byte> data, T value) {
  uint64_t equal = 0;
  for (size_t i = 0; i + sizeof(T) <= data.size(); i += sizeof(T)) {
    T element;
    std::memcpy(&element, data.data() + i, sizeof(T));
    equal += element == value;
  }
  return equal * sizeof(T);
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
  PoisonPattern pattern = poison_pattern(dtype);
  switch (pattern.bytes) {
    case 1: return count(data, static_cast<uint8_t>(pattern.value));
    case 2: return count(data, static_cast<uint16_t>(pattern.value));
    default: return count(data, pattern.value);
  }
}

}  // namespace tw
