#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tw::bench {

// A measurement that returns seconds.
using Body = std::function<double()>;

// The fastest of `repeats` calls.
Body fastest_of(int repeats, std::function<void()> call);
// Two at once on two host threads: the slower one.
Body on_two_threads(Body body);

// What stands for the times of a body: their median, or the fastest, which other work on the host disturbs
// least: for bodies of less than a scheduler's time slice.
enum class Summary { median, fastest };

// Each body over rounds in which all bodies run one after another, so that a change of the host's speed hits
// all alike. One more round warms up.
std::vector<double> interleaved(const std::vector<Body>& bodies, int rounds,
                                Summary summary = Summary::median);

// One line of the report. `target` bounds `value` from above, or from below when higher is better.
struct Result {
  std::string name;  // "mma.f16.ratio"
  std::string what;  // for people
  double value = 0;
  std::string unit;  // "%", "x", "ns", "ms", "GFLOP/s"
  std::optional<double> target = std::nullopt;
  bool higher_is_better = false;

  bool met() const { return !target || (higher_is_better ? value >= *target : value <= *target); }
};

std::string table(const std::vector<Result>& results, bool boxed);
std::string json(const std::vector<Result>& results, const std::string& host);

}  // namespace tw::bench
