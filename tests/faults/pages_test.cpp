// docs/faults has a page for every kind of fault, and the kernel that each shows is reported as it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/faults/pair.h"
#include "tilewright/base/format.h"

namespace tw::faults {
namespace {

using check::FaultKind;

std::vector<FaultKind> kinds() {
  std::vector<FaultKind> out;
  for (int k = 0; std::string_view(check::name(static_cast<FaultKind>(k))) != "?"; ++k)
    out.push_back(static_cast<FaultKind>(k));
  return out;
}

class Pages : public ::testing::TestWithParam<FaultKind> {};

TEST_P(Pages, ShowAWrongAndARightKernel) {
  const std::string kind = check::name(GetParam()),
                    path = format("{}/{}", TW_SOURCE_DIR, check::page(GetParam()));
  std::ifstream in(path);
  ASSERT_TRUE(in) << "no page " << path;
  std::string line;
  while (std::getline(in, line) && line != "```ptx") {
  }
  ASSERT_TRUE(in) << path << " shows no kernel";
  const Pair p = read_pair(in, path, "```");
  EXPECT_EQ(p.kind(), kind);
  EXPECT_EQ(p.remark(), check::severity(GetParam()) == check::Severity::remark);
  expect_named(p);
  expect_clean(p);
  expect_assembles(p);
}

INSTANTIATE_TEST_SUITE_P(Faults, Pages, ::testing::ValuesIn(kinds()), [](const auto& tested) {
  std::string name = check::name(tested.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace tw::faults
