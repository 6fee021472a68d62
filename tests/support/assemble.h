#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace testing {
class AssertionResult;
}

// NVIDIA's assembler as a second opinion on PTX: what it accepts, a GPU's driver accepts.
namespace tw::testing {

// TW_PTXAS if set, else ptxas on PATH or in the toolkit's usual folder; nothing when there is none.
std::optional<std::string> find_ptxas();

struct Assembly {
  bool ok = false;
  std::string log;            // what ptxas said
  int registers = 0;          // the most that an entry uses per thread
  int64_t spilled_bytes = 0;  // stores and loads together, over all entries
};

// Assembles a module for `arch` ("sm_100a") with the toolkit that find_ptxas() found; without one, an
// internal error.
Assembly assemble(std::string_view ptx, std::string_view arch);

// EXPECT_TRUE(assembles(text, "sm_90a")): success when ptxas takes the text, or when there is no ptxas.
::testing::AssertionResult assembles(std::string_view ptx, std::string_view arch);

}  // namespace tw::testing
