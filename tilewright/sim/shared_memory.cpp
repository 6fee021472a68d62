#include "tilewright/sim/shared_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tw::sim {

namespace {
// Calls f(word index, mask) for the words that [begin, begin + bytes) touches, until f answers false.
template <class F>
void each_word(uint64_t begin, uint64_t bytes, F f) {
  const uint64_t end = begin + bytes;
  while (begin < end) {
    const uint64_t bit = begin & 63, n = std::min<uint64_t>(64 - bit, end - begin);
    const uint64_t mask = (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << bit;
    if (!f(begin >> 6, mask)) return;
    begin += n;
  }
}
}  // namespace

void WrittenBytes::reset(uint64_t bytes) {
  bits_.assign((bytes + 63) / 64, 0);
  bytes_ = unwritten_ = bytes;
}

void WrittenBytes::mark(uint64_t begin, uint64_t bytes) {
  if (unwritten_ == 0) return;
  each_word(begin, bytes, [&](uint64_t word, uint64_t mask) {
    const uint64_t fresh = mask & ~bits_[word];
    if (fresh == 0) return true;
    unwritten_ -= static_cast<uint64_t>(std::popcount(fresh));
    bits_[word] |= mask;
    return true;
  });
}

void WrittenBytes::unmark(uint64_t begin, uint64_t bytes) {
  each_word(begin, bytes, [&](uint64_t word, uint64_t mask) {
    unwritten_ += static_cast<uint64_t>(std::popcount(mask & bits_[word]));
    bits_[word] &= ~mask;
    return true;
  });
}

bool WrittenBytes::written(uint64_t begin, uint64_t bytes) const {
  if (unwritten_ == 0 || bytes == 0) return true;
  const uint64_t last = begin + bytes - 1;
  const uint64_t first_mask = ~uint64_t{0} << (begin & 63), last_mask = ~uint64_t{0} >> (63 - (last & 63));
  const uint64_t from = begin >> 6, to = last >> 6;
  if (from == to) return (~bits_[from] & first_mask & last_mask) == 0;
  uint64_t missing = (~bits_[from] & first_mask) | (~bits_[to] & last_mask);
  for (uint64_t word = from + 1; word < to; ++word) missing |= ~bits_[word];  // as vector code
  return missing == 0;
}

uint64_t WrittenBytes::first_unwritten(uint64_t begin, uint64_t bytes) const {
  uint64_t result = begin + bytes;
  each_word(begin, bytes, [&](uint64_t word, uint64_t mask) {
    const uint64_t missing = mask & ~bits_[word];
    if (missing == 0) return true;
    result = word * 64 + static_cast<uint64_t>(std::countr_zero(missing));
    return false;
  });
  return result;
}

void SharedMemory::Free::operator()(std::byte* p) const { std::free(p); }

SharedMemory::SharedMemory(uint32_t bytes) : size_(bytes), written_(bytes) {
  const size_t rounded = (size_t{bytes} + 1024 + 1023) / 1024 * 1024;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(1024, rounded)));
  if (!data_) throw std::bad_alloc();
  std::memset(data_.get(), static_cast<int>(kPoison), rounded);
}

}  // namespace tw::sim
