#include "tilewright/report/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tilewright/base/error.h"
#include "tilewright/base/format.h"

namespace tw::report {

namespace {

struct Frame {
  std::string_view left, middle, right, fill;
};

std::string horizontal(const std::vector<int>& widths, const Frame& f) {
  std::string out(f.left);
  for (size_t c = 0; c < widths.size(); ++c) {
    if (c != 0) out += f.middle;
    for (int i = 0; i < widths[c]; ++i) out += f.fill;
  }
  out += f.right;
  return out + "\n";
}

std::string padded(const std::string& cell, int width, Align align) {
  const std::string space(static_cast<size_t>(std::max(0, width - display_width(cell))), ' ');
  return align == Align::left ? cell + space : space + cell;
}

// Three significant digits.
std::string digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 99.95) return format("{:.0f}", value);
  if (magnitude >= 9.995) return format("{:.1f}", value);
  return format("{:.2f}", value);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<std::string> cells) {
  require(cells.size() <= columns_.size(), "a table row has more cells than the table has columns");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

std::string Table::text(Style style) const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = display_width(columns_[c].title);
    for (const auto& r : rows_)
      if (!r.empty()) width = std::max(width, display_width(r[c]));
    widths.push_back(width);
  }

  const bool boxed = style == Style::boxed;
  const Frame middle = boxed ? Frame{"├─", "─┼─", "─┤", "─"} : Frame{"", "  ", "", "-"};
  const auto line = [&](const auto& cell_of) {
    std::string out = boxed ? "│ " : "";
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) out += boxed ? " │ " : "  ";
      out += padded(cell_of(c), widths[c], columns_[c].align);
    }
    if (boxed) return out + " │\n";
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };

  std::string out;
  if (boxed) out += horizontal(widths, {"┌─", "─┬─", "─┐", "─"});
  out += line([&](size_t c) { return columns_[c].title; });
  out += horizontal(widths, middle);
  for (const auto& r : rows_)
    out += r.empty() ? horizontal(widths, middle) : line([&](size_t c) { return r[c]; });
  if (boxed) out += horizontal(widths, {"└─", "─┴─", "─┘", "─"});
  return out;
}

std::string fields(const std::vector<std::pair<std::string, std::string>>& lines) {
  int width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, display_width(name));
  std::string out;
  for (const auto& [name, value] : lines) {
    out += padded(name, width, Align::left) + "  ";
    for (const char c : value) {
      out += c;
      if (c == '\n') out += std::string(static_cast<size_t>(width) + 2, ' ');
    }
    out += "\n";
  }
  return out;
}

std::string si(double value, const char* unit) {
  static constexpr std::array<const char*, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
  size_t p = 0;
  while (std::abs(value) >= 999.5 && p + 1 < prefixes.size()) {
    value /= 1000;
    ++p;
  }
  const bool whole = p == 0 && value == std::floor(value);
  std::string out = (whole ? format("{:.0f}", value) : digits(value)) + " " + prefixes[p] + unit;
  if (out.back() == ' ') out.pop_back();
  return out;
}

std::string count(double value) { return si(value, ""); }

std::string seconds(double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0 s";
  if (magnitude >= 0.9995) return digits(value) + " s";
  if (magnitude >= 0.9995e-3) return digits(value * 1e3) + " ms";
  if (magnitude >= 0.9995e-6) return digits(value * 1e6) + " us";
  if (magnitude >= 0.9995e-9) return digits(value * 1e9) + " ns";
  return digits(value * 1e12) + " ps";
}

std::string bytes(double value) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  size_t u = 0;
  while (value >= 1024 && u + 1 < units.size()) {
    value /= 1024;
    ++u;
  }
  return (value == std::floor(value) ? format("{:.0f}", value) : digits(value)) + " " + units[u];
}

std::string scientific(double value) { return format("{:.1e}", value); }

}  // namespace tw::report
