#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tw::sim {

// One bit per byte: written or not. Counts what is left, so that checks cost nothing once all is written.
class WrittenBytes {
 public:
  explicit WrittenBytes(uint64_t bytes = 0) { reset(bytes); }
  void reset(uint64_t bytes);
  bool all_written() const { return unwritten_ == 0; }
  bool all_unwritten() const { return unwritten_ == bytes_; }
  void mark(uint64_t begin, uint64_t bytes);
  void unmark(uint64_t begin, uint64_t bytes);
  bool written(uint64_t begin, uint64_t bytes) const;              // every byte of the range
  uint64_t first_unwritten(uint64_t begin, uint64_t bytes) const;  // begin + bytes if there is none

  // For bytes that lie in one word of bits: `offset` a multiple of `bytes`, at most 32 of them.
  bool written_aligned(uint64_t offset, uint32_t bytes) const {
    const uint64_t mask = mask_of(bytes);
    return (bits_[offset >> 6] >> (offset & 63) & mask) == mask;
  }
  void mark_aligned(uint64_t offset, uint32_t bytes) {
    const uint64_t mask = mask_of(bytes) << (offset & 63), old = bits_[offset >> 6];
    if ((old & mask) == mask) return;
    unwritten_ -= static_cast<uint64_t>(std::popcount(mask & ~old));
    bits_[offset >> 6] = old | mask;
  }

 private:
  static uint64_t mask_of(uint32_t bytes) { return (uint64_t{1} << bytes) - 1; }
  std::vector<uint64_t> bits_;
  uint64_t bytes_ = 0, unwritten_ = 0;
};

// The shared memory of one CTA, static and dynamic. Offsets count from the CTA's shared base.
class SharedMemory {
 public:
  explicit SharedMemory(uint32_t bytes);
  uint32_t size() const { return size_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  bool contains(uint64_t offset, uint64_t bytes) const { return offset <= size_ && bytes <= size_ - offset; }
  WrittenBytes& written() { return written_; }
  const WrittenBytes& written() const { return written_; }

  static constexpr std::byte kPoison{0xFF};  // f32, f16 and bf16 see a NaN

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;  // 1024-byte aligned
  uint32_t size_;
  WrittenBytes written_;
};

// --- addresses ---
// As on the hardware: a 32-bit shared address is (rank of the CTA in its cluster) << 24 | (1024 + offset), so
// a CTA's own addresses are valid in the whole cluster, and clearing bit 24 names the even CTA of a pair.
inline constexpr uint32_t kSharedReserved = 1024;
inline constexpr uint32_t shared_address(uint32_t rank, uint32_t offset) {
  return (rank << 24) | (kSharedReserved + offset);
}
// Generic windows.
inline constexpr uint64_t kSharedWindow = 0x7f00'0000'0000;  // + 32-bit shared address
inline constexpr uint64_t kLocalWindow = 0x7e00'0000'0000;   // + offset in the thread's local memory
inline constexpr uint64_t kParamWindow = 0x7d00'0000'0000;   // + offset in the entry's parameters
inline constexpr uint64_t kConstWindow = 0x7c00'0000'0000;   // + offset in constant memory
inline constexpr uint64_t kWindowSize = 0x100'0000'0000;

}  // namespace tw::sim
