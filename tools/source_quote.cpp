#include "tools/source_quote.h"

#include <algorithm>
#include <fstream>

#include "tilewright/base/format.h"

namespace tw::tools {

std::string SourceQuotes::operator()(const SourceLoc& loc) {
  if (!loc) return {};
  const auto [entry, fresh] = files_.try_emplace(std::string(loc.file));
  std::vector<std::string>& lines = entry->second;
  if (fresh) {
    std::ifstream in(entry->first);
    if (!in) in.open(std::string(shown_file(loc)));
    for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  }
  if (loc.line == 0 || loc.line > lines.size()) return {};
  const std::string& line = lines[loc.line - 1];
  std::string text = format("{:>5} | {}\n", loc.line, line);
  if (loc.column == 0 || loc.column > line.size() + 1) return text;
  // Tabs stay tabs, so that the mark stands under its column.
  std::string margin = line.substr(0, loc.column - 1);
  std::replace_if(
      margin.begin(), margin.end(), [](char c) { return c != '\t'; }, ' ');
  return text + format("      | {}^\n", margin);
}

}  // namespace tw::tools
