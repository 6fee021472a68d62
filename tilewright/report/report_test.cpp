#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <sstream>

#include "tilewright/base/error.h"
#include "tilewright/report/progress.h"
#include "tilewright/report/roofline_chart.h"
#include "tilewright/report/svg.h"
#include "tilewright/report/table.h"

namespace tw::report {
namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Table, PlainAlignsByColumn) {
  Table t({{"step"}, {"time", Align::right}});
  t.row({"gemm.step1", "3 ms"});
  t.row({"gemm.step10"});
  EXPECT_EQ(t.text(Style::plain),
            "step         time\n"
            "-----------  ----\n"
            "gemm.step1   3 ms\n"
            "gemm.step10\n");
}

TEST(Table, BoxedCountsCodePointsNotBytes) {
  Table t({{"a"}, {"b"}});
  t.row({"±2", "x"});
  t.rule();
  t.row({"1", "yy"});
  EXPECT_EQ(t.text(Style::boxed),
            "┌────┬────┐\n"
            "│ a  │ b  │\n"
            "├────┼────┤\n"
            "│ ±2 │ x  │\n"
            "├────┼────┤\n"
            "│ 1  │ yy │\n"
            "└────┴────┘\n");
}

TEST(Table, MoreCellsThanColumnsIsADefect) {
  Table t({{"a"}});
  EXPECT_THROW(t.row({"1", "2"}), Error);
}

TEST(Table, EveryBoxedLineHasOneWidth) {
  EXPECT_TRUE(rc::check("boxed lines have one width", [] {
    const auto columns = *rc::gen::inRange(1, 6);
    Table t(std::vector<Column>(static_cast<size_t>(columns), Column{"t", Align::right}));
    const auto rows = *rc::gen::inRange(0, 8);
    for (int r = 0; r < rows; ++r) {
      std::vector<std::string> cells;
      for (int c = 0; c < columns; ++c)
        cells.emplace_back(static_cast<size_t>(*rc::gen::inRange(0, 20)), 'x');
      t.row(cells);
    }
    const auto all = lines(t.text(Style::boxed));
    RC_ASSERT(all.size() == static_cast<size_t>(rows) + 4);
    for (const auto& line : all) RC_ASSERT(display_width(line) == display_width(all.front()));
  }));
}

TEST(Table, FieldsContinueUnderTheirFirstLine) {
  EXPECT_EQ(fields({{"peak", "2\n3"}, {"at", "1"}}), "peak  2\n      3\nat    1\n");
}

TEST(Numbers, ThreeSignificantDigits) {
  EXPECT_EQ(si(2.381e15, "FLOP/s"), "2.38 PFLOP/s");
  EXPECT_EQ(si(8e12, "B/s"), "8.00 TB/s");
  EXPECT_EQ(si(999.6e9, "B/s"), "1.00 TB/s");
  EXPECT_EQ(si(412, ""), "412");
  EXPECT_EQ(seconds(1.2345), "1.23 s");
  EXPECT_EQ(seconds(0.0310), "31.0 ms");
  EXPECT_EQ(seconds(0.00082), "820 us");
  EXPECT_EQ(seconds(9.9996e-4), "1.00 ms");
  EXPECT_EQ(seconds(1.23e-8), "12.3 ns");
  EXPECT_EQ(seconds(1.25e-12), "1.25 ps");
  EXPECT_EQ(bytes(232448), "227 KiB");
  EXPECT_EQ(bytes(233472), "228 KiB");
  EXPECT_EQ(scientific(0.000312), "3.1e-04");
}

TEST(Progress, LineFitsAndSaturates) {
  EXPECT_EQ(progress_line("step", 1, 2, 80), "[##########..........]  50 %  step");
  EXPECT_EQ(progress_line("step", 5, 2, 80), "[####################] 100 %  step");
  EXPECT_EQ(progress_line("step", 0, 0, 80), "step");
  EXPECT_EQ(progress_line("a long label", 1, 2, 10).size(), 10u);
}

TEST(Svg, EscapesText) {
  Svg svg(10, 10, "a<b & \"c\"");
  svg.text(0, 0, "x<y");
  const std::string out = svg.finish();
  EXPECT_NE(out.find("<title>a&lt;b &amp; &quot;c&quot;</title>"), std::string::npos);
  EXPECT_NE(out.find(">x&lt;y</text>"), std::string::npos);
}

RooflineChart b200() {
  return {.title = "B200",
          .ceilings = {{"f16", 2000e12}},
          .bytes_per_second = 8e12,
          .points = {{"square", 4096.0 / 3}, {"thin", 1.0}}};
}

// Circles mark the points; both axes have as many px as the decades they show, so a point's place follows
// from its numbers alone.
TEST(RooflineChart, PointsLieOnTheRoof) {
  const std::string svg = to_svg(b200());
  EXPECT_NE(svg.find("ridge 250<"), std::string::npos) << svg;
  EXPECT_NE(svg.find("1365 FLOP/byte, at most 2.00 PFLOP/s"), std::string::npos);
  EXPECT_NE(svg.find("1 FLOP/byte, at most 8.00 TFLOP/s"), std::string::npos);
  const std::regex circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::vector<std::pair<double, double>> at;
  for (auto i = std::sregex_iterator(svg.begin(), svg.end(), circle); i != std::sregex_iterator(); ++i)
    at.emplace_back(std::stod((*i)[1]), std::stod((*i)[2]));
  ASSERT_EQ(at.size(), 2u);
  const double px_per_x_decade = (at[0].first - at[1].first) / std::log10(4096.0 / 3);
  const double px_per_y_decade = (at[1].second - at[0].second) / std::log10(2000e12 / 8e12);
  EXPECT_NEAR(px_per_x_decade, (760.0 - 84 - 28) / 5, 0.1);  // intensities 0.1 to 10^4: five decades
  EXPECT_NEAR(px_per_y_decade, (480.0 - 52 - 62) / 5, 0.1);  // 10^11 to 10^16
}

TEST(RooflineChart, RefusesWhatHasNoLogarithm) {
  auto chart = b200();
  chart.points[1].intensity = 0;
  try {
    to_svg(chart);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user);
    EXPECT_NE(e.message().find("arithmetic intensity for thin"), std::string::npos);
  }
}

}  // namespace
}  // namespace tw::report
