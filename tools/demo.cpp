#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/report/table.h"
#include "tools/command.h"
#include "tools/compile.h"
#include "tools/gemm_check.h"
#include "tools/gemm_run.h"
#include "tools/source_quote.h"

namespace tw::tools {

namespace {

struct Line {
  const kernels::GemmKernel* kernel;
  std::string device;
  std::optional<GemmOutcome> outcome;  // none: it failed with `error`
  std::string error;
  check::CheckReport checked;

  bool right() const { return outcome && outcome->good(); }
  bool good() const { return right() && checked.verdict == check::Verdict::clean; }
};

Line run_line(const kernels::GemmKernel& kernel, Device& device, report::Progress& progress) {
  Line line{&kernel, std::string(device.name()), {}, {}, {}};
  try {
    GemmProblem problem(kernel, device, kernel.demo, progress);
    line.outcome = run_gemm(problem, {});
    line.checked = check_gemm(problem, {"late"});
  } catch (const Error& e) {  // the other steps still have something to show
    line.error = e.what();
  }
  return line;
}

nlohmann::ordered_json to_json(const Line& line) {
  nlohmann::ordered_json j{{"kernel", line.kernel->name},
                           {"device", line.device},
                           {"shape", to_string(line.kernel->demo)},
                           {"right", line.right()},
                           {"check", tools::to_json(line.checked)}};
  if (line.outcome) {
    j["error"] = line.outcome->judgement->comparison.error;
    j["error_rounded"] = line.outcome->judgement->comparison.error_rounded;
    j["seconds"] = line.outcome->launch.seconds;
  } else {
    j["failure"] = line.error;
  }
  return j;
}

void add_row(report::Table& table, const Line& line) {
  std::vector<std::string> row{line.kernel->name, line.device, to_string(line.kernel->demo)};
  if (line.outcome) {
    const Comparison& c = line.outcome->judgement->comparison;
    row.insert(row.end(), {report::scientific(c.error), report::scientific(c.error_rounded),
                           line.right() ? "right" : "WRONG", check::summary(line.checked),
                           report::seconds(line.outcome->launch.seconds)});
  } else {
    row.insert(row.end(), {"", "", "FAILED", "", ""});
  }
  row.push_back(line.kernel->idea);
  table.row(std::move(row));
}

// Why a line is not good, and what the checker remarks.
std::string remarkable(const Line& line) {
  if (!line.outcome) return line.error + "\n";
  std::string text;
  if (!line.right()) {
    const check::Fault& fault = *line.outcome->judgement->fault;
    text += format("{}: {}\n", check::name(fault.kind), fault.message);
    for (const Note& n : fault.notes) text += format("  note: {}\n", n.message);
  }
  if (line.checked.verdict != check::Verdict::clean || !line.checked.remarks.empty())
    text += check::to_text(line.checked, SourceQuotes());
  return text;
}

void demo(Session& session, const std::vector<std::string>& on) {
  const auto start = std::chrono::steady_clock::now();
  report::Progress progress(!session.json);
  std::vector<Line> lines;
  for (const std::string& name : on) {
    const auto device = Device::open(name);
    for (const auto& kernel : kernels::gemm_kernels())
      if (std::find(kernel.archs.begin(), kernel.archs.end(), device->target()) != kernel.archs.end())
        lines.push_back(run_line(kernel, *device, progress));
  }
  progress.clear();
  const auto right = std::count_if(lines.begin(), lines.end(), [](const Line& l) { return l.good(); });
  const auto wrong = static_cast<std::ptrdiff_t>(lines.size()) - right;
  if (wrong != 0) session.exit = bad_outcome;

  if (session.json) {
    auto json = nlohmann::ordered_json::array();
    for (const Line& l : lines) json.push_back(to_json(l));
    return print_json({{"limit", error_limit}, {"runs", json}});
  }
  using report::Align;
  report::Table table({{"step"},
                       {"machine"},
                       {"shape"},
                       {"error", Align::right},
                       {"rounded", Align::right},
                       {"result"},
                       {"hand-offs"},
                       {"time", Align::right},
                       {"what it adds"}});
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0 && lines[i].device != lines[i - 1].device) table.rule();
    add_row(table, lines[i]);
  }
  print(table.text(report::style_for(stdout)));
  for (const Line& l : lines)
    if (const std::string why = remarkable(l); !why.empty())
      print(format("\n{} on {}:\n{}", l.kernel->name, l.device, why));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  print(format(
      "\n{} of {} right and clean in {}. Errors are relative to an fp64 reference (limit {:.0e}), before "
      "and after rounding it. `clean`: every hand-off between threads, copies and tensor cores is ordered "
      "by synchronisation, not by luck.\n",
      right, lines.size(), report::seconds(took.count()), error_limit));
}

}  // namespace

void add_demo(CLI::App& app, Session& session) {
  auto* command =
      add_command(app, session, "demo", "run every step of the ladder on simulated GPUs and verify it");
  auto on = std::make_shared<std::vector<std::string>>(std::vector<std::string>{"sim:b200", "sim:h200"});
  command->add_option("--on", *on, "devices")->capture_default_str();
  command->callback([on, &session] { demo(session, *on); });
}

}  // namespace tw::tools
