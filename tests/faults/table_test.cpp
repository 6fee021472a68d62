// docs/faults.md lists every fault once, with the pairs that are there; tests/faults/table.py keeps it so.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "tests/faults/pair.h"
#include "tools/files.h"

namespace tw::faults {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = TW_SOURCE_DIR, kPairs = kRoot / "tests/faults/pairs";

struct Link {
  std::string text, path;  // path: from docs/
};

struct Row {
  std::string id;
  std::vector<Link> links;
  std::vector<std::string> kinds;
  std::string reason;  // where there is no link
};

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> out;
  for (size_t at = 0;;) {
    const size_t end = text.find(by, at);
    out.push_back(text.substr(at, end - at));
    if (end == text.npos) return out;
    at = end + by.size();
  }
}

std::vector<Row> table() {
  std::vector<Row> rows;
  std::ifstream in(kRoot / "docs/faults.md");
  static const std::regex first(R"([BN]\d+)"), link(R"(\[([^\]]+)\]\(([^)]+)\))");
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells = split(line, " | ");
    if (cells.size() != 5 || !cells[0].starts_with("| ")) continue;
    Row row;
    row.id = cells[0].substr(2);
    if (!std::regex_match(row.id, first)) continue;
    std::string last = cells[4];
    last.erase(last.find_last_not_of(" |") + 1);
    if (cells[3] == "none") {
      row.reason = last;
    } else {
      for (const std::string& part : split(cells[3], "<br>")) {
        std::smatch m;
        if (!std::regex_match(part, m, link)) throw std::runtime_error("no link: " + part);
        row.links.push_back({m[1], m[2]});
      }
      row.kinds = split(last, "<br>");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string file_of(const Row& row, size_t link) { return (kRoot / "docs" / row.links[link].path).string(); }

TEST(FaultTable, EveryFaultIsThereOnce) {
  const std::vector<Row> rows = table();
  std::set<std::string> ids;
  for (const Row& row : rows) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
  EXPECT_EQ(ids.size(), 130u);
}

TEST(FaultTable, WhatItNamesIsThere) {
  for (const Row& row : table()) {
    if (row.links.empty()) {
      EXPECT_GT(row.reason.size(), 20u) << row.id << " has neither a pair nor a reason";
      continue;
    }
    ASSERT_EQ(row.links.size(), row.kinds.size()) << row.id;
    for (size_t i = 0; i < row.links.size(); ++i) {
      const std::string path = file_of(row, i);
      ASSERT_TRUE(fs::exists(path)) << path;
      if (path.ends_with(".cpp")) {
        const auto [suite, test] = [&] {
          const std::vector<std::string> parts = split(row.links[i].text, ".");
          return std::pair(parts.at(0), parts.at(1));
        }();
        EXPECT_TRUE(test.starts_with(row.id + "_")) << test;
        EXPECT_NE(tools::read_file(path).find(format("({}, {})", suite, test)), std::string::npos) << test;
        continue;
      }
      std::ifstream in(path);
      const Pair p = read_pair(in, path);
      EXPECT_TRUE(row.links[i].text.starts_with(row.id + "_")) << row.links[i].text;
      EXPECT_EQ(row.kinds[i], p.control() ? "clean" : (p.remark() ? "remark: " : "") + p.kind()) << path;
    }
  }
}

// Pairs whose names begin with no number show rules beyond the list.
TEST(FaultTable, EveryPairIsInIt) {
  static const std::regex numbered(R"([BN]\d+_.*\.ptx)");
  std::set<std::string> named;
  for (const Row& row : table())
    for (size_t i = 0; i < row.links.size(); ++i) named.insert(fs::weakly_canonical(file_of(row, i)));
  for (const auto& file : fs::directory_iterator(kPairs)) {
    if (!std::regex_match(file.path().filename().string(), numbered)) continue;
    EXPECT_TRUE(named.contains(fs::weakly_canonical(file.path())))
        << file.path() << ": run tests/faults/table.py";
  }
}

}  // namespace
}  // namespace tw::faults
