#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/ptx/module.h"

// Registers that wgmma.mma_async reads and writes while threads go on ("wgmma.fence", "wgmma.wait_group").
namespace tw::check {

// For each instruction of a program, the registers it shares with some wgmma.mma_async.
class SharedRegisters {
 public:
  explicit SharedRegisters(const std::vector<const ptx::Instruction*>& program);
  const std::vector<uint32_t>& of(uint32_t pc) const { return of_[pc]; }
  bool any() const { return count_ != 0; }
  size_t count() const { return count_; }

 private:
  std::vector<std::vector<uint32_t>> of_;
  size_t count_ = 0;  // registers are below it
};

// What one warp did to them.
class RegisterState {
 public:
  // Each answers the rule that was broken, or nothing.
  const char* touched(const std::vector<uint32_t>& registers);  // by an instruction other than wgmma
  const char* multiplies(const std::vector<uint32_t>& registers, uint64_t index, size_t count);
  void fence();
  void over(uint64_t index) { over_ = index > over_ ? index : over_; }  // multiplications up to it

 private:
  std::vector<uint64_t> in_flight_;   // by register: the last wgmma on it
  std::vector<uint8_t> since_fence_;  // by register: touched since the last fence
  std::vector<uint32_t> list_;        // of those
  uint64_t over_ = 0;
  bool fenced_ = false;
};

}  // namespace tw::check
