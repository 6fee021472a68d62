// Faults that people really made, each as a pair of kernels in one file of pairs/: the faulty one is reported
// with the right kind, the mended one is clean. Files without a fault are controls, correct code that must
// stay silent. The head of a file says
//   // B31: what the fault is, or what the control shows
//   // expect: KIND: text that the message holds      KIND as in check::name, or "refused" before anything
//   runs
//   // launch: a launch file in one line              docs/foreign-ptx.md
//   // assembles: no                                  where ptxas refuses the faulty kernel too
// Lines that end in "// faulty" or "// mended" belong to that kernel alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/assemble.h"
#include "tilewright/check/check.h"
#include "tilewright/ptx/parser.h"
#include "tools/ptx_check.h"

namespace tw {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = fs::path(TW_SOURCE_DIR) / "tests/faults/pairs";

enum class Variant { faulty, mended };

// A file of pairs/.
struct Pair {
  std::string path;
  std::map<std::string, std::string> head;  // "expect", "launch"
  std::vector<std::string> lines;

  bool control() const { return !head.contains("expect"); }
  // Lines of the other variant stay as empty ones, so that messages name lines of the file.
  std::string text(Variant v) const {
    const std::string other = v == Variant::faulty ? "// mended" : "// faulty";
    std::string out;
    for (const std::string& line : lines) out += (line.ends_with(other) ? "" : line) + "\n";
    return out;
  }
};

Pair read_pair(const std::string& name) {
  Pair p;
  p.path = (kFolder / (name + ".ptx")).string();
  std::ifstream in(p.path);
  for (std::string line; std::getline(in, line);) {
    if (const size_t colon = line.find(": "); line.starts_with("// ") && colon != std::string::npos)
      p.head.emplace(line.substr(3, colon - 3), line.substr(colon + 2));
    p.lines.push_back(std::move(line));
  }
  if (!p.head.contains("launch")) throw std::runtime_error(p.path + " has no launch");
  return p;
}

check::CheckReport check_variant(const Pair& p, Variant v) {
  const ptx::Module module = ptx::parse(p.text(v), p.path);
  const tools::LaunchSpec launch = tools::parse_launch(p.head.at("launch"), p.path);
  const auto device = Device::open(tools::default_device(module));
  report::Progress silent(false);
  return tools::check_ptx(module, launch, *device, {"eager", "late", "random:1", "random:2"}, silent);
}

// "race: tile" in two.
std::pair<std::string, std::string> expected(const Pair& p) {
  const std::string& text = p.head.at("expect");
  const size_t colon = text.find(": ");
  return {text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 2)};
}

class Pairs : public ::testing::TestWithParam<std::string> {};

TEST_P(Pairs, TheFaultIsNamed) {
  const Pair p = read_pair(GetParam());
  if (p.control()) GTEST_SKIP() << "a control";
  const auto [kind, part] = expected(p);
  if (kind == "refused") {
    try {
      check_variant(p, Variant::faulty);
      ADD_FAILURE() << "not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
    return;
  }
  const check::CheckReport report = check_variant(p, Variant::faulty);
  EXPECT_EQ(report.verdict, check::Verdict::faults) << check::to_text(report);
  EXPECT_TRUE(std::any_of(report.faults.begin(), report.faults.end(),
                          [&, kind = kind, part = part](const check::Fault& f) {
                            return check::name(f.kind) == kind && f.message.find(part) != std::string::npos;
                          }))
      << "expected " << kind << ": " << part << "\n"
      << check::to_text(report);
}

TEST_P(Pairs, WhatIsMendedIsClean) {
  const Pair p = read_pair(GetParam());
  const check::CheckReport report = check_variant(p, Variant::mended);
  EXPECT_EQ(report.verdict, check::Verdict::clean) << check::to_text(report);
}

TEST_P(Pairs, Assembles) {
  const Pair p = read_pair(GetParam());
  const auto arch = [](const std::string& text) {
    const size_t at = text.find(".target ") + 8;
    return text.substr(at, text.find_first_of(" ,\n", at) - at);
  };
  for (const Variant v : {Variant::mended, Variant::faulty}) {
    if (v == Variant::faulty && p.head.contains("assembles")) continue;
    EXPECT_TRUE(testing::assembles(p.text(v), arch(p.text(v))));
  }
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
}  // namespace tw
