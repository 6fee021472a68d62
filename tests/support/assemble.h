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

// Path of a program of the CUDA toolkit, on PATH or in /usr/local/cuda/bin; empty when there is none.
std::string find_cuda_tool(std::string_view name);

// What ptxas says about PTX text.
struct Assembly {
  bool ok = false;
  std::string log;            // errors, warnings, and for each entry its registers, shared memory, spills
  int registers = 0;          // the most that an entry uses per thread
  int64_t spilled_bytes = 0;  // stores and loads together, over all entries
  bool serialised = false;    // ptxas makes wgmma instructions wait where the text does not
};
// Assembles `ptx` for `arch` ("sm_90a"), with -g where its .target says debug; nullopt when there is no
// ptxas. Texts that were accepted are remembered in the build folder, so each costs its seconds once.
std::optional<Assembly> assemble(std::string_view ptx, std::string_view arch);

// EXPECT_TRUE(assembles(text, "sm_90a")): success when ptxas takes the text, or when there is no ptxas.
::testing::AssertionResult assembles(std::string_view ptx, std::string_view arch);
// The same, and the code is as fast as it looks: no spilled registers, no wgmma that ptxas serialises.
::testing::AssertionResult assembles_well(std::string_view ptx, std::string_view arch);

}  // namespace tw::testing
