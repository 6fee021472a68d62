#include "tilewright/layout/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/layout/queries.h"
#include "tilewright/layout/text.h"

namespace tw {
namespace {

constexpr int64_t linear_row = 32;

// The elements as a grid of rows.
struct Grid {
  Shape outer;  // dimensions shown as rows
  int64_t rows, columns, size;
  bool linear;  // one dimension, wrapped

  explicit Grid(std::span<const int64_t> shape) : size(volume(shape)), linear(shape.size() == 1) {
    if (shape.empty()) user_error({}, "a layout is drawn over one dimension or more");
    if (linear) {
      columns = std::min(size, linear_row);
      rows = ceil_div(size, columns);
      outer = {rows};
    } else {
      columns = shape.back();
      outer.assign(shape.begin(), shape.end() - 1);
      rows = size / columns;
    }
  }

  std::string row_label(int64_t row) const {
    if (linear) return format("{}", row * columns);
    std::string out;
    for (int64_t c : delinearize(row, outer)) out += format("{}{}", out.empty() ? "" : ",", c);
    return out;
  }
};

std::string_view initial(Axis a) {
  if (a == axis::warpid) return "W";
  if (a == axis::wid_in_wg) return "w";
  if (a == axis::wgid) return "G";
  if (a == axis::laneid) return "L";
  if (a == axis::tid_in_wg || a == axis::tx) return "T";
  return {};
}

// The place of a thread among those of its block, as far as the axes tell.
int64_t thread_number(const Point& p) {
  using namespace axis;
  return p[laneid] + 32 * (p[warpid] + p[wid_in_wg]) + 128 * p[wgid] + p[tid_in_wg] + p[tx];
}

// What one cell says: who holds the element, and where.
struct Cell {
  std::string threads, place;
};

std::string values_text(const std::vector<Point>& copies, Axis a) {
  std::set<int64_t> values;
  for (const Point& p : copies) values.insert(p[a]);
  if (values.size() > 3) return format("{}..{}", *values.begin(), *values.rbegin());
  std::string out;
  for (int64_t v : values) out += format("{}{}", out.empty() ? "" : "|", v);
  return out;
}

class Picture {
 public:
  const Grid grid;
  int64_t shown_rows, shown_columns;

  Picture(const Layout& layout, std::span<const int64_t> shape, const DrawOptions& options)
      : grid(shape), layout_(layout), options_(options), coloring_(options.coloring) {
    if (grid.size != layout.size())
      user_error({}, "a shape of {} elements for a layout of {}", grid.size, layout.size());
    for (Axis a : layout.tile_layout().axes()) (a.is_thread() ? threads_ : memory_).push_back(a);
    // Warps before lanes: the wider axis first.
    std::sort(threads_.begin(), threads_.end(), [](Axis a, Axis b) { return weight(a) > weight(b); });
    if (memory_.empty()) memory_.push_back(axis::m);
    if (coloring_ == Coloring::automatic)
      coloring_ = !threads_.empty()       ? Coloring::thread
                  : memory_[0] == axis::m ? Coloring::bank
                                          : Coloring::axis;
    shown_rows = std::min<int64_t>(grid.rows, options.max_rows);
    shown_columns = std::min<int64_t>(grid.columns, options.max_columns);
  }

  Cell cell(int64_t linear) const {
    const auto copies = layout_.apply(linear);
    Cell c;
    for (Axis a : threads_) {
      const auto letter = initial(a);
      c.threads +=
          format("{}{}{}", c.threads.empty() ? "" : " ",
                 letter.empty() ? std::string(a.name()) + " " : std::string(letter), values_text(copies, a));
    }
    for (Axis a : memory_)
      c.place += format("{}{}{}", c.place.empty() ? "" : " ", a == axis::m ? "" : std::string(a.name()) + " ",
                        values_text(copies, a));
    return c;
  }

  // The number a colour stands for: bank, thread or coordinate.
  int64_t key(int64_t linear) const {
    const Point p = layout_.at(linear);
    switch (coloring_) {
      case Coloring::thread: return thread_number(p);
      case Coloring::bank: return p[axis::m] * options_.element_bits / (8 * bank_bytes) % bank_count;
      default: return p[memory_[0]];
    }
  }

  std::string key_name() const {
    if (coloring_ == Coloring::bank)
      return format("shared-memory bank, {}-bit elements", options_.element_bits);
    if (coloring_ == Coloring::thread) return "thread modulo 32; darker: later warps";
    return format("{} modulo 32", memory_[0].name());
  }

  std::string cut_note() const {
    std::string out;
    if (shown_rows < grid.rows) out += format("first {} of {} rows", shown_rows, grid.rows);
    if (shown_columns < grid.columns)
      out += format("{}first {} of {} columns", out.empty() ? "" : ", ", shown_columns, grid.columns);
    return out;
  }

 private:
  static int64_t weight(Axis a) { return thread_number(Point{{a, 1}}) + (initial(a).empty() ? 1000 : 0); }

  const Layout& layout_;
  const DrawOptions& options_;
  Coloring coloring_;
  std::vector<Axis> threads_, memory_;
};

// Pastels around the colour circle for the lower five bits, darker for the warps above.
std::string color(int64_t key) {
  const double hue = static_cast<double>(key & 31) / 32 * 6;
  const double light = 0.88 - 0.09 * static_cast<double>((key >> 5) & 3);
  const double chroma = (1 - std::abs(2 * light - 1)) * 0.75;
  const double x = chroma * (1 - std::abs(std::fmod(hue, 2.0) - 1));
  constexpr int order[6][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
  const std::array<double, 3> level = {chroma, x, 0};
  std::string out = "#";
  for (int c = 0; c < 3; ++c) {
    const double v = level[static_cast<size_t>(order[static_cast<int>(hue) % 6][c])] + light - chroma / 2;
    out += format("{:02x}", static_cast<int>(std::lround(v * 255)));
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else if (c == '>') out += "&gt;";
    else out += c;
  }
  return out;
}

// SVG text and boxes, in pixels.
class Svg {
 public:
  void text(double x, double y, std::string_view what, std::string_view style) {
    body_ += format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(what));
  }
  void box(double x, double y, double w, double h, std::string_view fill) {
    body_ += format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x,
                    y, w, h, fill);
  }
  std::string finish(double width, double height) const {
    return format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" "
        "font-family=\"DejaVu Sans Mono, Menlo, Consolas, "
        "monospace\">\n<style>rect{{stroke:#666;stroke-width:.5}}"
        "text{{fill:#222;font-size:10px}}.i{{fill:#777}}.c{{text-anchor:middle}}.e{{text-anchor:end}}.h{{"
        "font-size:13px}}"
        "</style>\n<rect x=\"0\" y=\"0\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "style=\"fill:#fff;stroke:none\"/>\n{2}</svg>\n",
        width, height, body_);
  }

 private:
  std::string body_;
};

constexpr double glyph = 6.1;  // width of a character at 10 px

}  // namespace

std::string to_svg(const Layout& layout, std::span<const int64_t> shape, const DrawOptions& options) {
  const Picture picture(layout, shape, options);
  const Grid& grid = picture.grid;
  size_t widest = 3, row_label = 1;
  bool two_lines = false;
  std::vector<Cell> cells;
  for (int64_t r = 0; r < picture.shown_rows; ++r) {
    row_label = std::max(row_label, grid.row_label(r).size());
    for (int64_t c = 0; c < picture.shown_columns && r * grid.columns + c < grid.size; ++c) {
      cells.push_back(picture.cell(r * grid.columns + c));
      widest = std::max({widest, cells.back().threads.size(), cells.back().place.size()});
      two_lines = two_lines || !cells.back().threads.empty();
    }
  }
  const double cell_w = glyph * static_cast<double>(widest) + 8, cell_h = two_lines ? 30 : 20;
  const double left = 16 + glyph * static_cast<double>(row_label);
  const std::string name = to_string(layout), note = picture.cut_note();
  Svg svg;
  double top = 22;
  for (const std::string& line : {options.title, name}) {
    if (line.empty()) continue;
    svg.text(8, top, line, "class=\"h\"");
    top += 18;
  }
  for (int64_t c = 0; c < picture.shown_columns; ++c)
    svg.text(left + cell_w * (static_cast<double>(c) + 0.5), top + 2, format("{}", c), "class=\"i c\"");
  top += 8;
  auto cell = cells.begin();
  for (int64_t r = 0; r < picture.shown_rows; ++r) {
    const double y = top + cell_h * static_cast<double>(r);
    svg.text(left - 6, y + cell_h / 2 + 3, grid.row_label(r), "class=\"i e\"");
    for (int64_t c = 0; c < picture.shown_columns && r * grid.columns + c < grid.size; ++c, ++cell) {
      const double x = left + cell_w * static_cast<double>(c);
      svg.box(x, y, cell_w, cell_h, color(picture.key(r * grid.columns + c)));
      if (!cell->threads.empty()) svg.text(x + cell_w / 2, y + 12, cell->threads, "class=\"c\"");
      svg.text(x + cell_w / 2, y + cell_h - 7, cell->place, "class=\"c\"");
    }
  }
  double bottom = top + cell_h * static_cast<double>(picture.shown_rows) + 18;
  if (!note.empty()) {
    svg.text(left, bottom, note, "class=\"i\"");
    bottom += 16;
  }
  constexpr double swatch = 18;
  for (int k = 0; k < bank_count; ++k) {
    svg.box(left + swatch * k, bottom, swatch, 14, color(k));
    svg.text(left + swatch * (k + 0.5), bottom + 11, format("{}", k), "class=\"c\"");
  }
  svg.text(left, bottom + 28, picture.key_name(), "class=\"i\"");
  const double width =
      std::max({left + cell_w * static_cast<double>(picture.shown_columns), left + swatch * bank_count,
                8 + 7.9 * static_cast<double>(std::max(name.size(), options.title.size()))});
  return svg.finish(width + 12, bottom + 40);
}

std::string to_table(const Layout& layout, std::span<const int64_t> shape, const DrawOptions& options) {
  const Picture picture(layout, shape, options);
  const Grid& grid = picture.grid;
  std::vector<std::vector<std::string>> rows(1, {""});
  for (int64_t c = 0; c < picture.shown_columns; ++c) rows[0].push_back(format("{}", c));
  for (int64_t r = 0; r < picture.shown_rows; ++r) {
    rows.push_back({grid.row_label(r)});
    for (int64_t c = 0; c < picture.shown_columns && r * grid.columns + c < grid.size; ++c) {
      const Cell cell = picture.cell(r * grid.columns + c);
      rows.back().push_back(cell.threads.empty() ? cell.place : cell.threads + ":" + cell.place);
    }
  }
  std::vector<size_t> width(rows[0].size());
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string out;
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c)
      out += format("{}{:>{}}", c == 0 ? "" : c == 1 ? " | " : "  ", row[c], width[c]);
    out += '\n';
  }
  if (const std::string note = picture.cut_note(); !note.empty()) out += format("({})\n", note);
  return out;
}

}  // namespace tw
