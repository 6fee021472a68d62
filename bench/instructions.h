#pragma once
#include <memory>

namespace tw::bench {

// A loop of 32-lane instructions of one kind, run by one simulated warp on one host thread.
class InstructionLoop {
 public:
  enum class Kind { integer, floating };
  explicit InstructionLoop(Kind kind);
  ~InstructionLoop();

  // Host seconds an instruction, loop control included.
  double seconds();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw::bench
