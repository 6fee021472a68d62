#include <gtest/gtest.h>

#include <vector>

#include "kernels/registry.h"
#include "tests/support/assemble.h"
#include "tilewright/base/format.h"
#include "tilewright/lower/lower.h"

// Every kernel that ships, for every architecture it is written for, goes through NVIDIA's assembler where a
// CUDA toolkit is installed. (So does every kernel that any other test compiles:
// support/assembled_kernels.cpp.)
namespace tw {
namespace {

struct Case {
  kernels::GemmKernel kernel;
  kernels::GemmShape shape;
  std::string arch;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& kernel : kernels::gemm_kernels())
    for (const std::string& arch : kernel.archs)
      for (const DType dtype : {DType::f16, DType::bf16}) {
        auto shape = kernel.demo;
        shape.dtype = dtype;
        out.push_back({kernel, shape, arch});
      }
  return out;
}

class Ladder : public ::testing::TestWithParam<Case> {};

TEST_P(Ladder, AssemblesWell) {
  const Case& c = GetParam();
  if (testing::find_cuda_tool("ptxas").empty()) GTEST_SKIP() << "no ptxas on this machine";
  const Compiled compiled = lower(c.kernel.build(c.shape, c.arch));
  EXPECT_TRUE(testing::assembles_well(*compiled.text, c.arch));
}

INSTANTIATE_TEST_SUITE_P(All, Ladder, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string text =
      format("{}_{}_{}", tested.param.kernel.name, tested.param.arch, name(tested.param.shape.dtype));
  for (char& c : text)
    if (c == '.') c = '_';
  return text;
});

}  // namespace
}  // namespace tw
