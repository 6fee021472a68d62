#pragma once
#include <string>

#include "tests/faults/mutate.h"

namespace tw::testing {

// Why a kernel of the ladder with this mutation is as right as without it; empty: it is not.
std::string equivalent(const std::string& kernel, const ptx::Function& entry, const Mutation& m);

// A mutation that may leave every hand-off in order, so that only the numbers can tell: another stage than
// was meant, values that are not stored.
bool consistent(const ptx::Function& entry, const Mutation& m);

}  // namespace tw::testing
