#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tw::sim {

// The simulated device's memory: allocations with addresses, bounds, and a written/unwritten state for every
// byte. Fresh bytes are poison: they hold a pattern, and a simulated read of one is a fault.
class GlobalMemory {
 public:
  GlobalMemory();
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // 256-byte aligned; allocations never touch, so an access past an end is found. `name` appears in reports.
  uint64_t allocate(uint64_t bytes, std::string_view name);
  void free(uint64_t address);

  void write(uint64_t address, std::span<const std::byte> bytes);
  void read(uint64_t address, std::span<std::byte> bytes) const;  // poison included
  void poison(uint64_t address, uint64_t bytes);                  // makes the bytes unwritten again
  uint64_t unwritten(uint64_t address, uint64_t bytes) const;     // how many of the bytes nothing has written
  uint64_t first_unwritten(uint64_t address, uint64_t bytes) const;  // offset of the first; `bytes` if none

  struct Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tw::sim
