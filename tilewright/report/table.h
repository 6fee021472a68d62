#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tilewright/report/terminal.h"

namespace tw::report {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

// Rows of text under titles, aligned by column.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // Missing cells are empty; more cells than columns are an internal error.
  void row(std::vector<std::string> cells);
  void rule();  // a line between the rows before and after
  bool empty() const { return rows_.empty(); }

  std::string text(Style style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// "name   value" lines, values aligned; a multi-line value continues under its first line.
std::string fields(const std::vector<std::pair<std::string, std::string>>& lines);

// Numbers for people.
std::string count(double value);                 // "1.07 G", "412"
std::string si(double value, const char* unit);  // "2.38 PFLOP/s", "8.00 TB/s"
std::string seconds(double value);               // "1.24 s", "31.0 ms", "820 us", "12.3 ns"
std::string bytes(double value);                 // "228 KiB"
std::string scientific(double value);            // "3.1e-04"

}  // namespace tw::report
