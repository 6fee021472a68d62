#include "tilewright/report/roofline_chart.h"

#include <algorithm>
#include <cmath>

#include "tilewright/base/error.h"
#include "tilewright/base/format.h"
#include "tilewright/report/svg.h"
#include "tilewright/report/table.h"

namespace tw::report {

namespace {

constexpr double width = 760, height = 480, left = 84, right = 28, top = 52, bottom = 62;
constexpr std::string_view memory_color = "#2b6cb0", compute_color = "#c05621", grid_color = "#e2e2e2";

// Decades [low, high] of a logarithmic axis, and where they lie on the page.
struct LogAxis {
  int low, high;
  double from, to;

  double at(double value) const { return from + (std::log10(value) - low) / (high - low) * (to - from); }
};

int floor_decade(double v) { return static_cast<int>(std::floor(std::log10(v))); }
int ceil_decade(double v) { return static_cast<int>(std::ceil(std::log10(v))); }

void check(const RooflineChart& c) {
  const auto positive = [](double v, const std::string& what) {
    if (!(v > 0) || !std::isfinite(v))
      user_error({}, "a roofline needs a positive, finite {}; got {}", what, v);
  };
  require(!c.ceilings.empty(), "a roofline chart has a ceiling");
  positive(c.bytes_per_second, "memory bandwidth");
  for (const auto& ceiling : c.ceilings) positive(ceiling.flops, "rate for " + ceiling.label);
  for (const auto& point : c.points) positive(point.intensity, "arithmetic intensity for " + point.label);
}

class Painter {
 public:
  explicit Painter(const RooflineChart& chart) : c_(chart), svg_(width, height, chart.title) {
    const double ridge = c_.ceilings.front().flops / c_.bytes_per_second;
    double lowest = ridge / 100, highest = ridge * 20, peak = 0;
    for (const auto& p : c_.points) {
      lowest = std::min(lowest, p.intensity / 2);
      highest = std::max(highest, p.intensity * 3);
    }
    for (const auto& ceiling : c_.ceilings) peak = std::max(peak, ceiling.flops);
    x_ = {floor_decade(lowest), ceil_decade(highest), left, width - right};
    const double floor =
        std::min(c_.bytes_per_second * std::pow(10.0, x_.low), c_.ceilings.front().flops / 10);
    y_ = {floor_decade(floor), ceil_decade(peak * 1.2), height - bottom, top};
  }

  std::string paint() {
    grid();
    for (size_t i = c_.ceilings.size(); i-- > 0;) ceiling(c_.ceilings[i], i == 0);
    bandwidth();
    ridge();
    for (size_t i = 0; i < c_.points.size(); ++i) point(c_.points[i], i);
    svg_.text(left, 28, c_.title, {.size = 17, .bold = true});
    return svg_.finish();
  }

 private:
  double slope_end() const {  // the intensity at which memory meets the highest ceiling drawn
    double peak = 0;
    for (const auto& ceiling : c_.ceilings) peak = std::max(peak, ceiling.flops);
    return peak / c_.bytes_per_second;
  }

  double roof_at(double x) const {  // y of the roof above a place of the page
    const double intensity = std::pow(10.0, x_.low + (x - x_.from) / (x_.to - x_.from) * (x_.high - x_.low));
    return y_.at(std::min(c_.ceilings.front().flops, intensity * c_.bytes_per_second));
  }

  void grid() {
    for (int d = x_.low; d <= x_.high; ++d) {
      const double x = x_.at(std::pow(10.0, d));
      svg_.line(x, y_.from, x, y_.to, {grid_color});
      svg_.text(x, y_.from + 18, format("{:g}", std::pow(10.0, d)), {.size = 11, .anchor = Anchor::middle});
    }
    for (int d = y_.low; d <= y_.high; ++d) {
      const double y = y_.at(std::pow(10.0, d));
      svg_.line(x_.from, y, x_.to, y, {grid_color});
      svg_.text(x_.from - 8, y + 4, decade(d), {.size = 11, .anchor = Anchor::end});
    }
    svg_.line(x_.from, y_.from, x_.to, y_.from, {});
    svg_.line(x_.from, y_.from, x_.from, y_.to, {});
    svg_.text((x_.from + x_.to) / 2, height - 18, "arithmetic intensity (FLOP / byte of device memory)",
              {.size = 13, .anchor = Anchor::middle});
    svg_.text(20, (y_.from + y_.to) / 2, "attainable FLOP/s",
              {.size = 13, .anchor = Anchor::middle, .rotate = -90});
  }

  static std::string decade(int d) {  // 10^14 is "100 T"
    static constexpr std::string_view prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    if (d < 0 || d >= 21) return format("1e{}", d);
    return format("{:g} {}", std::pow(10.0, d % 3), prefixes[d / 3]);
  }

  void ceiling(const RooflineChart::Ceiling& c, bool main) {
    const double y = y_.at(c.flops);
    const double start = x_.at(c.flops / c_.bytes_per_second);
    svg_.line(start, y, x_.to, y, main ? Stroke{compute_color, 2.5} : Stroke{"#b5b5b5", 1.25, "5 4"});
    svg_.text(x_.to - 4, y - 6, format("{}: {}", c.label, si(c.flops, "FLOP/s")),
              {.size = main ? 12.0 : 10.5,
               .color = main ? compute_color : "#8a8a8a",
               .anchor = Anchor::end,
               .halo = true});
  }

  void bandwidth() {
    const double main_ridge = c_.ceilings.front().flops / c_.bytes_per_second;
    const double lowest = std::max(std::pow(10.0, x_.low), std::pow(10.0, y_.low) / c_.bytes_per_second);
    const auto on_roof = [&](double intensity) {
      return std::pair(x_.at(intensity), y_.at(intensity * c_.bytes_per_second));
    };
    svg_.polyline({on_roof(main_ridge), on_roof(slope_end())}, {"#b5b5b5", 1.25, "5 4"});
    svg_.polyline({on_roof(lowest), on_roof(main_ridge)}, {memory_color, 2.5});
    const auto [x0, y0] = on_roof(lowest);
    const auto [x1, y1] = on_roof(main_ridge);
    const double angle = std::atan2(y1 - y0, x1 - x0);
    const double along = 0.4;
    svg_.text(x0 + along * (x1 - x0) + 9 * std::sin(angle), y0 + along * (y1 - y0) - 9 * std::cos(angle),
              format("memory: {}", si(c_.bytes_per_second, "B/s")),
              {.color = memory_color, .anchor = Anchor::middle, .rotate = angle * 180 / M_PI, .halo = true});
  }

  void ridge() {
    const double at = c_.ceilings.front().flops / c_.bytes_per_second;
    const double x = x_.at(at);
    svg_.line(x, y_.at(c_.ceilings.front().flops), x, y_.from, {"#777", 1, "2 3"});
    svg_.text(x + 6, y_.from - 8, format("ridge {:.3g}", at), {.size = 11, .color = "#555", .halo = true});
  }

  void point(const RooflineChart::Point& p, size_t index) {
    const double peak = c_.ceilings.front().flops;
    const double roof = std::min(peak, p.intensity * c_.bytes_per_second);
    const bool memory = p.intensity * c_.bytes_per_second < peak;
    const double x = x_.at(p.intensity), y = y_.at(roof);
    const auto color = memory ? memory_color : compute_color;
    svg_.line(x, y, x, y_.from, {color, 1, "3 3"});
    svg_.circle(x, y, 6, color);
    // Labels stand below the roof, stepped so that neighbours do not cover each other, and inside the page.
    const std::string detail = format("{:.4g} FLOP/byte, at most {}", p.intensity, si(roof, "FLOP/s"));
    const double text_width = 7.2 * std::max(display_width(p.label), display_width(detail));
    const bool leftward = x + 12 + text_width > x_.to;
    const double tx = leftward ? x - 12 : x + 12;
    double ty = y + 26 + 36 * static_cast<double>(index % 5);
    if (leftward) ty = std::max(ty, roof_at(tx - text_width) + 26);
    const Anchor anchor = leftward ? Anchor::end : Anchor::start;
    svg_.text(tx, ty, p.label, {.anchor = anchor, .bold = true, .halo = true});
    svg_.text(tx, ty + 15, detail, {.size = 11, .anchor = anchor, .halo = true});
  }

  const RooflineChart& c_;
  Svg svg_;
  LogAxis x_{}, y_{};
};

}  // namespace

std::string to_svg(const RooflineChart& chart) {
  check(chart);
  return Painter(chart).paint();
}

}  // namespace tw::report
