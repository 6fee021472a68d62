#include "tilewright/report/svg.h"

#include "tilewright/base/format.h"

namespace tw::report {

namespace {

// Two decimals are a hundredth of a pixel.
std::string px(double v) {
  std::string s = format("{:.2f}", v);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.back() == '.') s.pop_back();
  return s == "-0" ? "0" : s;
}

std::string list(const std::vector<std::pair<double, double>>& points) {
  std::string out;
  for (const auto& [x, y] : points) out += (out.empty() ? "" : " ") + px(x) + "," + px(y);
  return out;
}

std::string attributes(const Stroke& s) {
  std::string out = format(R"(stroke="{}" stroke-width="{}")", s.color, px(s.width));
  if (!s.dash.empty()) out += format(R"( stroke-dasharray="{}")", s.dash);
  return out;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view title)
    : width_(width), height_(height), title_(title) {}

void Svg::line(double x1, double y1, double x2, double y2, const Stroke& stroke) {
  body_ += format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", px(x1), px(y1), px(x2), px(y2),
                  attributes(stroke));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke) {
  body_ += format("<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {}/>\n", list(points),
                  attributes(stroke));
}

void Svg::polygon(const std::vector<std::pair<double, double>>& points, std::string_view fill) {
  body_ += format("<polygon points=\"{}\" fill=\"{}\"/>\n", list(points), fill);
}

void Svg::rect(double x, double y, double w, double h, std::string_view fill) {
  body_ += format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", px(x), px(y), px(w),
                  px(h), fill);
}

void Svg::circle(double x, double y, double r, std::string_view fill) {
  body_ +=
      format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"white\" stroke-width=\"1.5\"/>\n",
             px(x), px(y), px(r), fill);
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style) {
  static constexpr std::string_view anchors[] = {"start", "middle", "end"};
  std::string extra;
  if (style.bold) extra += " font-weight=\"bold\"";
  if (style.rotate != 0) extra += format(" transform=\"rotate({} {} {})\"", px(style.rotate), px(x), px(y));
  if (style.halo) extra += R"( stroke="white" stroke-width="4" stroke-linejoin="round" paint-order="stroke")";
  body_ += format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
                  px(x), px(y), px(style.size), style.color, anchors[static_cast<int>(style.anchor)], extra,
                  xml_escape(text));
}

std::string Svg::finish() const {
  return format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      px(width_), px(height_), xml_escape(title_), body_);
}

}  // namespace tw::report
