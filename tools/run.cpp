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

nlohmann::ordered_json to_json(const kernels::GemmKernel& kernel, const Device& device,
                               const GemmRequest& request, const GemmOutcome& outcome) {
  nlohmann::ordered_json j{{"kernel", kernel.name},
                           {"device", device.name()},
                           {"arch", device.target()},
                           {"m", request.shape.m},
                           {"n", request.shape.n},
                           {"k", request.shape.k},
                           {"dtype", name(request.shape.dtype)},
                           {"seed", request.seed},
                           {"seconds", outcome.launch.seconds},
                           {"compile_seconds", outcome.compile_seconds},
                           {"notes", outcome.notes}};
  if (device.simulated()) {
    j["schedule"] = sim::to_string(request.schedule);
    j["warp_instructions"] = outcome.launch.sim.warp_instructions;
    j["ctas"] = outcome.launch.sim.ctas;
  }
  j["verified"] = outcome.comparison.has_value();
  if (const auto& c = outcome.comparison) {
    j["error"] = c->error;
    j["error_rounded"] = c->error_rounded;
    j["limit"] = error_limit;
    j["non_finite"] = c->non_finite;
    j["unwritten_bytes"] = c->unwritten;
    j["right"] = outcome.good();
  }
  return j;
}

std::string to_text(const kernels::GemmKernel& kernel, const Device& device, const GemmRequest& request,
                    const GemmOutcome& outcome) {
  const double flops = 2.0 * static_cast<double>(request.shape.m) * static_cast<double>(request.shape.n) *
                       static_cast<double>(request.shape.k);
  std::vector<std::pair<std::string, std::string>> lines{
      {"kernel", kernel.name + ": " + kernel.idea},
      {"shape", to_string(request.shape)},
      {"device", format("{} ({})", device.name(), device.target())}};
  if (device.simulated()) {
    lines.emplace_back("schedule", sim::to_string(request.schedule));
    lines.emplace_back("simulated",
                       format("{} {}, {} warp instructions in {}", outcome.launch.sim.ctas,
                              outcome.launch.sim.ctas == 1 ? "CTA" : "CTAs",
                              report::count(static_cast<double>(outcome.launch.sim.warp_instructions)),
                              report::seconds(outcome.launch.seconds)));
  } else {
    lines.emplace_back("time", format("{}, {}", report::seconds(outcome.launch.seconds),
                                      report::si(flops / outcome.launch.seconds, "FLOP/s")));
  }
  lines.emplace_back("verdict", !outcome.comparison ? "not verified"
                                                    : format("{}: {}", outcome.good() ? "right" : "WRONG",
                                                             to_string(*outcome.comparison)));
  for (const std::string& note : outcome.notes) lines.emplace_back("note", note);
  return report::fields(lines);
}

void run(Session& session, const Options& o) {
  const auto& kernel = kernels::gemm_kernel(o.kernel);
  const auto device = Device::open(o.on);
  sim::Trace trace(trace_options(o.trace_ctas));
  if (!o.trace.empty() && !device->simulated())
    user_error({}, "--trace needs a simulated device; {} is none", device->name());
  const GemmRequest request{.shape = o.shape.of(kernel),
                            .schedule = sim::parse_schedule(o.schedule),
                            .seed = o.seed,
                            .verify = !o.no_verify,
                            .observer = o.trace.empty() ? nullptr : &trace};
  report::Progress progress(!session.json);
  const GemmOutcome outcome = [&] {
    try {
      return run_gemm(kernel, *device, request, progress);
    } catch (const Error&) {  // what led to a fault or a deadlock is worth seeing
      if (!o.trace.empty()) write_file(o.trace, trace.json());
      throw;
    }
  }();
  if (!o.trace.empty()) write_file(o.trace, trace.json());
  if (session.json) print_json(to_json(kernel, *device, request, outcome));
  else print(to_text(kernel, *device, request, outcome));
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
