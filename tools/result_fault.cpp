#include "tools/result_fault.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tilewright/base/format.h"

namespace tw::tools {
namespace {

// How far from its expectation an element is when no rounding explains it: so many times the limit, of its
// size or of the array's root mean square, whichever is larger. One step of bf16 is 0.8 % of the smallest
// number that has it, which five times a limit of 2e-3 just allows.
constexpr double kFar = 5;

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::isfinite(v) ? v * v : 0;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// Elements that are far off, and the smallest part of the array that holds them.
struct FarOff {
  int64_t count = 0, first = 0;
  std::vector<int64_t> low, high;

  void add(const NamedArray& array, int64_t number) {
    if (count++ == 0) first = number, low = array.shape, high.assign(array.shape.size(), 0);
    for (size_t d = array.shape.size(); d-- > 0; number /= array.shape[d]) {
      low[d] = std::min(low[d], number % array.shape[d]);
      high[d] = std::max(high[d], number % array.shape[d]);
    }
  }

  // "D[0 to 127, 5]"
  std::string part(const NamedArray& array) const {
    std::string text;
    for (size_t d = 0; d < low.size(); ++d) {
      text += d == 0 ? "" : ", ";
      text += low[d] == high[d] ? format("{}", low[d]) : format("{} to {}", low[d], high[d]);
    }
    return format("{}[{}]", array.name, text);
  }
};

FarOff far_off(const NamedArray& array, double limit, const std::vector<double>& values,
               const std::vector<double>& expected) {
  const double typical = root_mean_square(expected);
  FarOff found;
  for (size_t i = 0; i < values.size(); ++i) {
    const double allowed = kFar * limit * std::max(typical, std::abs(expected[i]));
    const bool same = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
    if (!same && !(std::abs(values[i] - expected[i]) <= allowed)) found.add(array, static_cast<int64_t>(i));
  }
  return found;
}

}  // namespace

int64_t NamedArray::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string NamedArray::element(int64_t number) const {
  std::string text;
  for (size_t d = shape.size(); d-- > 0; number /= shape[d])
    text = format("{}{}{}", number % shape[d], text.empty() ? "" : ", ", text);
  return format("{}[{}]", name, text);
}

check::Fault unwritten_fault(const NamedArray& array, uint64_t missing, uint64_t first) {
  check::Fault f;
  f.kind = check::FaultKind::unwritten;
  f.loc = array.loc;
  const auto width = static_cast<uint64_t>(bits(array.dtype));
  f.message = format("nothing wrote {} of the {} bytes of buffer '{}'; the first are those of {}", missing,
                     static_cast<uint64_t>(array.elements()) * width / 8, array.name,
                     array.element(static_cast<int64_t>(first * 8 / width)));
  return f;
}

check::Fault wrong_result_fault(const NamedArray& array, const Comparison& comparison, double limit,
                                const std::vector<double>& values, const std::vector<double>& expected) {
  check::Fault f;
  f.kind = check::FaultKind::wrong_result;
  f.loc = array.loc;
  f.message = format("buffer '{}': error {:.1e}, rounded {:.1e}, the tolerance is {:g}", array.name,
                     comparison.error, comparison.error_rounded, limit);
  if (comparison.non_finite) f.message += format(", {} elements are not finite", comparison.non_finite);
  f.message += format("; farthest off is {}: {}, expected {}", array.element(comparison.worst),
                      comparison.worst_given, comparison.worst_expected);
  const FarOff far = far_off(array, limit, values, expected);
  if (far.count == 0) return f;
  const auto first = static_cast<size_t>(far.first);
  f.notes.push_back(
      {{},
       format("{} of {} elements are off by more than {:g} %, all of them in {}; the first is {}: {}, "
              "expected {}",
              far.count, values.size(), 100 * kFar * limit, far.part(array), array.element(far.first),
              values[first], expected[first])});
  return f;
}

}  // namespace tw::tools
