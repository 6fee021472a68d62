#pragma once
#include <atomic>
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

 private:
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
