#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::report {

enum class Anchor { start, middle, end };

struct Stroke {
  std::string_view color = "#444";
  double width = 1;
  std::string_view dash = "";  // "4 3"
};

struct TextStyle {
  double size = 12;  // px
  std::string_view color = "#222";
  Anchor anchor = Anchor::start;
  bool bold = false;
  double rotate = 0;  // degrees, clockwise
  bool halo = false;  // a white outline, for text over lines
};

// A drawing under construction: a list of shapes on a white page, in px from the top left corner.
class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  void line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  void polyline(const std::vector<std::pair<double, double>>& points, const Stroke& stroke);
  void polygon(const std::vector<std::pair<double, double>>& points, std::string_view fill);
  void rect(double x, double y, double w, double h, std::string_view fill);
  void circle(double x, double y, double r, std::string_view fill);
  void text(double x, double y, std::string_view text, const TextStyle& style = {});

  std::string finish() const;  // a self-contained SVG document

 private:
  double width_, height_;
  std::string title_;
  std::string body_;
};

std::string xml_escape(std::string_view text);

}  // namespace tw::report
