#include "tests/support/assemble.h"

#include <gtest/gtest.h>

#include "tilewright/base/format.h"

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
    if (find_cuda_tool("ptxas").empty()) GTEST_SKIP() << "no ptxas on this machine";
  }
};

TEST_F(Ptxas, TakesAModuleAndCountsRegisters) {
  const Assembly a = *assemble(good, "sm_90a");
  EXPECT_TRUE(a.ok) << a.log;
  EXPECT_GT(a.registers, 0);
  EXPECT_EQ(a.spilled_bytes, 0);
  EXPECT_TRUE(assembles(good, "sm_90a"));
}

TEST_F(Ptxas, RefusesWhatTheTargetLacks) {
  // tcgen05 needs sm_100a ("tcgen05.fence", Target ISA Notes).
  std::string text = good;
  text.insert(text.find("  ret;"), "  tcgen05.fence::before_thread_sync;\n");
  const Assembly a = *assemble(text, "sm_90a");
  EXPECT_FALSE(a.ok);
  EXPECT_NE(a.log.find("tcgen05"), std::string::npos) << a.log;
  EXPECT_FALSE(assembles(text, "sm_90a"));
}

TEST_F(Ptxas, NamesTheLineOfAnError) {
  const Assembly a =
      *assemble(".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { rat; }\n", "sm_90a");
  EXPECT_FALSE(a.ok);
  EXPECT_NE(a.log.find("line 4"), std::string::npos) << a.log;
}

TEST_F(Ptxas, ToldTwiceSaysTheSame) {
  const Assembly a = *assemble(good, "sm_90a"), b = *assemble(good, "sm_90a");
  EXPECT_EQ(a.log, b.log);
  EXPECT_EQ(a.registers, b.registers);
}

// 64 live values do not fit 24 registers.
TEST_F(Ptxas, SpillsAreNotAssembledWell) {
  std::string text =
      ".version 8.7\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 p) .maxnreg 24 {\n.reg .b64 %p;\n.reg .b32 %v<64>;\n"
      "ld.param.u64 %p, [p];\n";
  for (int i = 0; i < 64; ++i) text += format("ld.volatile.global.u32 %v{}, [%p+{}];\n", i, 4 * i);
  for (int i = 0; i < 64; ++i) text += format("st.volatile.global.u32 [%p+{}], %v{};\n", 4 * i, i);
  text += "ret;\n}\n";
  EXPECT_TRUE(assembles(text, "sm_90a"));
  EXPECT_GT(assemble(text, "sm_90a")->spilled_bytes, 0);
  EXPECT_FALSE(assembles_well(text, "sm_90a"));
}

// "wgmma.mma_async": accumulators must not be accessed before wgmma.wait_group. Where some path lacks the
// wait, ptxas adds one, and makes every wgmma of the function wait for the one before.
TEST_F(Ptxas, SerialisedWgmmaIsNotAssembledWell) {
  std::string text = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %p, %d, %n;
  .reg .pred %skip;
  .reg .f32 %f<4>;
  ld.param.u64 %p, [p];
  ld.global.v2.u64 {%d, %n}, [%p];
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d, %d, 0, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  setp.ne.u64 %skip, %n, 0;
  @%skip bra done;
  wgmma.wait_group.sync.aligned 0;
done:
  st.global.v4.f32 [%p], {%f0, %f1, %f2, %f3};
  ret;
}
)";
  const Assembly a = *assemble(text, "sm_90a");
  EXPECT_TRUE(a.ok) << a.log;
  EXPECT_TRUE(a.serialised) << a.log;
  EXPECT_FALSE(assembles_well(text, "sm_90a"));
  text.erase(text.find("@%skip bra done;"), 16);
  EXPECT_TRUE(assembles_well(text, "sm_90a"));
}

}  // namespace
}  // namespace tw::testing
