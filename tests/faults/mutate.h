#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tilewright/ptx/module.h"

// Faults put into correct kernels, one at a time.
namespace tw::testing {

enum class Family : uint8_t {
  remove,  // a synchronising instruction is left out
  phase,   // a wait starts with the other parity
  count,   // a barrier expects one arrival more or fewer (named barriers: one warp)
  bytes,   // an expect_tx announces half or twice the bytes
  stages,  // one side of a ring goes round a stage early
  swap,    // a use of a ring's stage, or all of a role, take stage 1 for 0 and 0 for 1
  widen,   // what one lane or some warps execute, all do
  narrow,  // what all lanes of a warp execute, one does
};
inline constexpr Family kFamilies[] = {Family::remove, Family::phase, Family::count, Family::bytes,
                                       Family::stages, Family::swap,  Family::widen, Family::narrow};
const char* name(Family f);

struct Mutation {
  Family family;
  size_t at;         // the statement of the entry's body that it is about, as it was
  std::string what;  // "mbarrier.init.shared::cta.b64 with the count 2 for 1"
  std::function<void(ptx::Function&)> apply;
};

// All of a family that the entry has places for.
std::vector<Mutation> mutations(const ptx::Function& entry, Family family);

// The module with its first entry changed.
ptx::Module mutated(const ptx::Module& module, const Mutation& mutation);

}  // namespace tw::testing
