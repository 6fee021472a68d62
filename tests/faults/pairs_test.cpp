// The faults of public reports (docs/faults.md), one file of pairs/ each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

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
