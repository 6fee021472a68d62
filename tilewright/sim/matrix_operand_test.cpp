#include "tilewright/sim/matrix_operand.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace tw::sim {
namespace {

TEST(OperandGeometry, EachAddressIsThatOfItsRowAndColumn) {
  EXPECT_TRUE(rc::check([] {
    const auto below = [](uint32_t n) { return *rc::gen::inRange<uint32_t>(0, n); };
    OperandGeometry g;
    g.start = below(1024) * 16;
    g.period = 1 + below(16);
    g.pitch = below(64) * 16;
    g.group_stride = below(512) * 16;
    g.width = 1 + below(8);
    g.column_stride = below(512) * 16;
    g.swizzle_mask = below(8);
    g.phase = below(64) * 16;
    g.rows = static_cast<int>(below(40));
    g.columns = static_cast<int>(below(20));
    std::vector<uint32_t> expected, found;
    for (uint32_t r = 0; r < static_cast<uint32_t>(g.rows); ++r)
      for (uint32_t c = 0; c < static_cast<uint32_t>(g.columns); ++c) expected.push_back(g.address(r, c));
    g.each_address([&](uint32_t at) { found.push_back(at); });
    RC_ASSERT(found == expected);
  }));
}

}  // namespace
}  // namespace tw::sim
