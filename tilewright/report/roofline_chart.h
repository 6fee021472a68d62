#pragma once
#include <string>
#include <vector>

namespace tw::report {

// The roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009): attainable FLOP/s over arithmetic
// intensity.
struct RooflineChart {
  struct Ceiling {
    std::string label;  // "f16 tensor cores"
    double flops;       // FLOP/s
  };
  struct Point {
    std::string label;  // "gemm 4096x4096x4096"
    double intensity;   // FLOP per byte
  };

  std::string title;
  std::vector<Ceiling>
      ceilings;  // the first is the one that the points are judged by; the others are context
  double bytes_per_second = 0;
  std::vector<Point> points;
};

// A log-log chart, 760 x 480 px. A user error when a rate or an intensity is not positive and finite.
std::string to_svg(const RooflineChart& chart);

}  // namespace tw::report
