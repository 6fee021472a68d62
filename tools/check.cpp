#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tools/command.h"
#include "tools/compile.h"
#include "tools/gemm_check.h"
#include "tools/ptx_check.h"
#include "tools/source_quote.h"

namespace tw::tools {

namespace {

struct Options {
  std::string kernel, launch, on, schedules = "eager,late,random:1", sarif;
  ShapeOptions shape;
  check::ExploreBudget explore;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream text(list);
  for (std::string word; std::getline(text, word, ',');) words.push_back(word);
  if (words.empty()) user_error({}, "--schedules names no schedule");
  return words;
}

// A kernel of the registry, or a PTX file with its launch.
check::CheckReport check_any(const Options& o, report::Progress& progress) {
  if (o.kernel.ends_with(".ptx")) {
    const ptx::Module module = ptx::parse(read_file(o.kernel), o.kernel);
    const LaunchSpec launch = o.launch.empty() ? LaunchSpec{} : parse_launch(read_file(o.launch), o.launch);
    const auto device = Device::open(o.on.empty() ? default_device(module) : o.on);
    return check_ptx(module, launch, *device, split(o.schedules), progress, o.explore);
  }
  if (!o.launch.empty()) user_error({}, "--launch goes with a PTX file; {} is none", o.kernel);
  const auto& kernel = kernels::gemm_kernel(o.kernel);
  const auto device = Device::open(o.on.empty() ? "sim:b200" : o.on);
  GemmProblem problem(kernel, *device, o.shape.of(kernel), progress);
  return check_gemm(problem, split(o.schedules), o.explore);
}

void check(Session& session, const Options& o) {
  report::Progress progress(!session.json);
  const check::CheckReport report = check_any(o, progress);
  if (!o.sarif.empty()) write_file(o.sarif, to_sarif(report).dump(2) + "\n");
  if (session.json) print_json(to_json(report));
  else print(check::to_text(report, SourceQuotes()));
  session.exit = report.verdict == check::Verdict::clean    ? all_right
                 : report.verdict == check::Verdict::faults ? bad_outcome
                                                            : misuse;
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  auto* command =
      add_command(app, session, "check",
                  "prove every hand-off of a kernel, or name the one that is missing (exit code 0 clean, "
                  "1 faults, 2 incomplete)");
  auto o = std::make_shared<Options>();
  command->add_option("KERNEL", o->kernel, "as in `tw list`, or a PTX file")->required();
  command->add_option("--launch", o->launch, "of a PTX file: its launch file (docs/foreign-ptx.md)");
  command->add_option(
      "--on", o->on,
      "a simulated device; picks the architecture (default: sim:b200, or by the .target of PTX)");
  add_shape_options(*command, o->shape);
  command->add_option("--schedules", o->schedules, "of the simulator, one run each")->capture_default_str();
  command->add_option("--explore", o->explore.runs,
                      "further runs under other orders of synchronisation that may change the outcome "
                      "(docs/checker.md)");
  command->add_option("--explore-seconds", o->explore.seconds, "no further such run after this long");
  command->add_option("--sarif", o->sarif, "also write the report for editors and code review");
  command->callback([o, &session] { check(session, *o); });
}

}  // namespace tw::tools
