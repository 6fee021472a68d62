// Every kernel that a test compiles also goes through NVIDIA's assembler, where there is one: this file is
// part of each test program that can compile kernels (tw_tests in cmake/Rooms.cmake), and a test need do
// nothing for it.
#include <gtest/gtest.h>

#include "tests/support/assemble.h"
#include "tilewright/lower/lower.h"

namespace tw::testing {
namespace {

void expect_assembles(const Compiled& kernel) {
  EXPECT_TRUE(assembles_well(*kernel.text, kernel.module->target.front())) << kernel.name;
}

const bool watching = (on_compiled(&expect_assembles), true);

}  // namespace
}  // namespace tw::testing
