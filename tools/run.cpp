#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/base/format.h"
#include "tilewright/report/table.h"
#include "tools/command.h"
#include "tools/compile.h"
#include "tools/gemm_run.h"
#include "tools/trace_file.h"

namespace tw::tools {

namespace {

struct Options {
  std::string kernel, on = "sim:b200", schedule = "eager";
  ShapeOptions shape;
  uint64_t seed = 1;
  bool no_verify = false;
  std::string trace, trace_ctas;
};

struct Finished {
  const kernels::GemmKernel& kernel;
  const Options& options;
  const GemmProblem& problem;
  sim::ScheduleSpec schedule;
  GemmOutcome outcome;
};

nlohmann::ordered_json to_json(const Finished& f) {
  const kernels::GemmShape& shape = f.problem.shape();
  const Device& device = f.problem.device();
  nlohmann::ordered_json j{{"kernel", f.kernel.name},
                           {"device", device.name()},
                           {"arch", device.target()},
                           {"m", shape.m},
                           {"n", shape.n},
                           {"k", shape.k},
                           {"dtype", name(shape.dtype)},
                           {"seed", f.options.seed},
                           {"seconds", f.outcome.launch.seconds},
                           {"compile_seconds", f.problem.compile_seconds()},
                           {"notes", f.problem.notes()}};
  if (device.simulated()) {
    j["schedule"] = sim::to_string(f.schedule);
    j["warp_instructions"] = f.outcome.launch.sim.warp_instructions;
    j["ctas"] = f.outcome.launch.sim.ctas;
  }
  j["verified"] = f.outcome.judgement.has_value();
  if (const auto& judgement = f.outcome.judgement) {
    const Comparison& c = judgement->comparison;
    j["error"] = c.error;
    j["error_rounded"] = c.error_rounded;
    j["limit"] = error_limit;
    j["non_finite"] = c.non_finite;
    j["unwritten_bytes"] = c.unwritten;
    j["right"] = judgement->good();
  }
  return j;
}

std::string verdict(const GemmOutcome& outcome) {
  if (!outcome.judgement) return "not verified";
  if (outcome.good()) return format("right: {}", to_string(outcome.judgement->comparison));
  return format("WRONG: {}", outcome.judgement->fault->message);
}

std::string to_text(const Finished& f) {
  const kernels::GemmShape& shape = f.problem.shape();
  const Device& device = f.problem.device();
  const LaunchResult& launch = f.outcome.launch;
  std::vector<std::pair<std::string, std::string>> lines{
      {"kernel", f.kernel.name + ": " + f.kernel.idea},
      {"shape", to_string(shape)},
      {"device", format("{} ({})", device.name(), device.target())}};
  if (device.simulated()) {
    lines.emplace_back("schedule", sim::to_string(f.schedule));
    lines.emplace_back("simulated", format("{} {}, {} warp instructions in {}", launch.sim.ctas,
                                           launch.sim.ctas == 1 ? "CTA" : "CTAs",
                                           report::count(static_cast<double>(launch.sim.warp_instructions)),
                                           report::seconds(launch.seconds)));
  } else {
    const double flops =
        2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
    lines.emplace_back("time", format("{}, {}", report::seconds(launch.seconds),
                                      report::si(flops / launch.seconds, "FLOP/s")));
  }
  lines.emplace_back("verdict", verdict(f.outcome));
  if (!f.outcome.good())
    for (const Note& n : f.outcome.judgement->fault->notes) lines.emplace_back("where", n.message);
  for (const std::string& note : f.problem.notes()) lines.emplace_back("note", note);
  return report::fields(lines);
}

void run(Session& session, const Options& o) {
  const auto& kernel = kernels::gemm_kernel(o.kernel);
  const auto device = Device::open(o.on);
  sim::Trace trace(trace_options(o.trace_ctas));
  if (!o.trace.empty() && !device->simulated())
    user_error({}, "--trace needs a simulated device; {} is none", device->name());
  const GemmRequest request{.schedule = sim::parse_schedule(o.schedule),
                            .verify = !o.no_verify,
                            .observer = o.trace.empty() ? nullptr : &trace};
  report::Progress progress(!session.json);
  GemmProblem problem(kernel, *device, o.shape.of(kernel), progress, o.seed);
  const GemmOutcome outcome = [&] {
    try {
      return run_gemm(problem, request);
    } catch (const Error&) {  // what led to a fault or a deadlock is worth seeing
      if (!o.trace.empty()) write_file(o.trace, trace.json());
      throw;
    }
  }();
  if (!o.trace.empty()) write_file(o.trace, trace.json());
  const Finished finished{kernel, o, problem, request.schedule, outcome};
  if (session.json) print_json(to_json(finished));
  else print(to_text(finished));
  if (!outcome.good()) session.exit = bad_outcome;
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto* command = add_command(app, session, "run", "run a kernel on random inputs and verify its result");
  auto o = std::make_shared<Options>();
  command->add_option("KERNEL", o->kernel, "as in `tw list`")->required();
  command->add_option("--on", o->on, "sim:b200, sim:h200, ..., cuda:0; picks the architecture")
      ->capture_default_str();
  add_shape_options(*command, o->shape);
  command->add_option("--schedule", o->schedule, "of the simulator: eager, late, random:SEED or starve:ROLE")
      ->capture_default_str();
  command->add_option("--seed", o->seed, "of the inputs")->capture_default_str();
  command->add_flag("--no-verify", o->no_verify, "do not compute the fp64 reference");
  command->add_option("--trace", o->trace, "write what roles and engines did, in order, for ui.perfetto.dev");
  command->add_option("--trace-ctas", o->trace_ctas, "CTAs to trace, as in 0-7 (default: the first cluster)");
  command->callback([o, &session] { run(session, *o); });
}

}  // namespace tw::tools
