#pragma once
#include <memory>
#include <span>
#include <string_view>

namespace tw::bench {

// One 32-lane instruction whose time is measured.
struct Instruction {
  enum class Kind { integer, floating, memory };
  Kind kind;
  std::string_view name;  // as people write it: "lop3.b32"
  // PTX; "#" is the number of one of several accumulators. Registers: %r# 32 bits, %w# 64, %h# 16, %q# a
  // predicate; %lane, %odd (a number with many bits), %smem and %gmem (addresses, 16 bytes a lane).
  std::string_view text;
};
std::span<const Instruction> instructions();

// A loop of one instruction, run by one simulated warp on one host thread.
class InstructionLoop {
 public:
  explicit InstructionLoop(const Instruction& instruction);
  ~InstructionLoop();

  // Host seconds an instruction; loop control (3 instructions for every 16) is included.
  double seconds();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw::bench
