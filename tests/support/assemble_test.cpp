#include "tests/support/assemble.h"

#include <gtest/gtest.h>

namespace tw::testing {
namespace {

constexpr const char* good = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry store(.param .u64 out) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

class Ptxas : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_ptxas()) GTEST_SKIP() << "no ptxas on this machine";
  }
};

TEST_F(Ptxas, TakesAModuleAndCountsRegisters) {
  const Assembly a = assemble(good, "sm_90a");
  EXPECT_TRUE(a.ok) << a.log;
  EXPECT_GT(a.registers, 0);
  EXPECT_EQ(a.spilled_bytes, 0);
  EXPECT_TRUE(assembles(good, "sm_90a"));
}

TEST_F(Ptxas, RefusesWhatTheTargetLacks) {
  // tcgen05 needs sm_100a ("tcgen05.fence", Target ISA Notes).
  std::string text = good;
  text.insert(text.find("  ret;"), "  tcgen05.fence::before_thread_sync;\n");
  const Assembly a = assemble(text, "sm_90a");
  EXPECT_FALSE(a.ok);
  EXPECT_NE(a.log.find("tcgen05"), std::string::npos) << a.log;
  EXPECT_FALSE(assembles(text, "sm_90a"));
}

}  // namespace
}  // namespace tw::testing
