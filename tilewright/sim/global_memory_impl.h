#pragma once
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tilewright/ptx/module.h"
#include "tilewright/sim/global_memory.h"

namespace tw::sim {

// One allocation. Host threads mark bytes as written at the same time; the bits only ever go from 0 to 1 in a
// run.
struct Allocation {
  Allocation(uint64_t where, uint64_t size, std::string label);
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();

  const uint64_t address, bytes;
  const std::string name;
  std::byte* data;

  bool contains(uint64_t a, uint64_t n) const {
    return a >= address && n <= bytes && a - address <= bytes - n;
  }
  bool all_written() const { return unwritten_.load(std::memory_order_relaxed) == 0; }
  void mark(uint64_t offset, uint64_t n);
  void unmark(uint64_t offset, uint64_t n);
  uint64_t count_unwritten(uint64_t offset, uint64_t n) const;
  uint64_t first_unwritten(uint64_t offset, uint64_t n) const;  // offset + n if there is none

  // For n bytes that lie in one word of bits: `offset` a multiple of n, at most 32 of them.
  bool written_aligned(uint64_t offset, uint32_t n) const {
    const uint64_t mask = mask_of(n);
    return (bits_[offset >> 6].load(std::memory_order_relaxed) >> (offset & 63) & mask) == mask;
  }
  // How many of them nothing had written before; the caller sums up and calls count_written once.
  uint64_t mark_aligned(uint64_t offset, uint32_t n) {
    const uint64_t mask = mask_of(n) << (offset & 63);
    std::atomic<uint64_t>& word = bits_[offset >> 6];
    if ((word.load(std::memory_order_relaxed) & mask) == mask) return 0;
    const uint64_t before = word.fetch_or(mask, std::memory_order_relaxed);
    return static_cast<uint64_t>(std::popcount(mask & ~before));
  }
  void count_written(uint64_t fresh) {
    if (fresh) unwritten_.fetch_sub(fresh, std::memory_order_relaxed);
  }

 private:
  static uint64_t mask_of(uint32_t bytes) { return (uint64_t{1} << bytes) - 1; }
  std::unique_ptr<std::atomic<uint64_t>[]> bits_;
  std::atomic<uint64_t> unwritten_;
};

struct GlobalMemory::Impl {
  // The allocation that holds `address`, or nullptr. The table does not change while a grid runs.
  Allocation* find(uint64_t address) const;
  // The last allocation at or below `address`: what an access past an end probably meant.
  const Allocation* nearest(uint64_t address) const;

  std::map<uint64_t, std::unique_ptr<Allocation>> allocations;
  uint64_t next = 0x10'0000'0000;
  mutable std::mutex mutex;
  // Module-scope variables live as long as the memory: a second launch of the module sees what the first one
  // left.
  struct ModuleVariables {
    std::shared_ptr<const ptx::Module> module;
    std::map<const ptx::Variable*, uint64_t> addresses;
  };
  std::map<const ptx::Module*, ModuleVariables> modules;
};

}  // namespace tw::sim
