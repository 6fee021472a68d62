// The faults of public reports (docs/faults.md), one file of pairs/ each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/faults/pair.h"

namespace tw::faults {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = fs::path(TW_SOURCE_DIR) / "tests/faults/pairs";

Pair load(const std::string& name) {
  const std::string path = (kFolder / (name + ".ptx")).string();
  std::ifstream in(path);
  return read_pair(in, path);
}

class Pairs : public ::testing::TestWithParam<std::string> {};

TEST_P(Pairs, TheFaultIsNamed) {
  const Pair p = load(GetParam());
  if (p.control()) GTEST_SKIP() << "a control";
  expect_named(p);
}
TEST_P(Pairs, WhatIsMendedIsClean) { expect_clean(load(GetParam())); }
TEST_P(Pairs, Assembles) { expect_assembles(load(GetParam())); }

// What one run leaves in a module's variables is not what the next one finds.
TEST(CheckPtx, EveryScheduleStartsFromFreshModuleVariables) {
  std::istringstream text(R"(
// launch: {"buffers": {"out": {"type": "u32", "shape": [1], "expect": {"values": [7]}}}, "arguments": [{"buffer": "out"}]}
.version 8.7
.target sm_90a
.address_size 64
.global .align 4 .u32 tickets = 7;
.visible .entry ticket(.param .u64 out) {
  .reg .b32 %mine;
  .reg .b64 %out;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  atom.global.add.u32 %mine, [tickets], 1;
  st.global.u32 [%out], %mine;
  ret;
}
)");
  expect_clean(read_pair(text, "ticket.ptx"));
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& file : fs::directory_iterator(kFolder))
    if (file.path().extension() == ".ptx") out.push_back(file.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Faults, Pairs, ::testing::ValuesIn(names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tw::faults
