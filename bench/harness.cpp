#include "bench/harness.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "tilewright/base/format.h"
#include "tilewright/report/table.h"

namespace tw::bench {

Body fastest_of(int repeats, std::function<void()> call) {
  return [repeats, call = std::move(call)] {
    using Clock = std::chrono::steady_clock;
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeats; ++i) {
      const auto start = Clock::now();
      call();
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
  };
}

Body on_two_threads(Body body) {
  return [body = std::move(body)] {
    double other = 0;
    std::thread second([&] { other = body(); });
    const double mine = body();
    second.join();
    return std::max(mine, other);
  };
}

std::vector<double> interleaved(const std::vector<Body>& bodies, int rounds, Summary summary) {
  std::vector<std::vector<double>> seconds(bodies.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t b = 0; b < bodies.size(); ++b) {
      const double took = bodies[b]();
      if (round >= 0) seconds[b].push_back(took);
    }
  }
  std::vector<double> times;
  for (auto& s : seconds) {
    const size_t rank = summary == Summary::median ? s.size() / 2 : 0;
    const auto chosen = s.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(s.begin(), chosen, s.end());
    times.push_back(*chosen);
  }
  return times;
}

std::string table(const std::vector<Result>& results, bool boxed) {
  report::Table out(
      {{"measurement"}, {"value", report::Align::right}, {"target", report::Align::right}, {"met"}});
  for (const Result& r : results) {
    const std::string target =
        r.target ? format("{} {:.3g} {}", r.higher_is_better ? "at least" : "at most", *r.target, r.unit)
                 : "";
    out.row({r.what, format("{:.3g} {}", r.value, r.unit), target, !r.target ? "" : r.met() ? "yes" : "NO"});
  }
  return out.text(boxed ? report::Style::boxed : report::Style::plain);
}

std::string json(const std::vector<Result>& results, const std::string& host) {
  auto list = nlohmann::ordered_json::array();
  for (const Result& r : results) {
    nlohmann::ordered_json item{{"name", r.name}, {"what", r.what}, {"value", r.value}, {"unit", r.unit}};
    if (r.target) {
      item["target"] = *r.target;
      item["higher_is_better"] = r.higher_is_better;
      item["met"] = r.met();
    }
    list.push_back(std::move(item));
  }
  return nlohmann::ordered_json{{"host", host}, {"results", list}}.dump(2) + "\n";
}

}  // namespace tw::bench
