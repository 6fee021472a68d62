#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/base/error.h"
#include "tilewright/report/progress.h"
#include "tilewright/report/table.h"
#include "tools/command.h"
#include "tools/ptx_launch.h"
#include "tools/trace_file.h"

namespace tw::tools {

namespace {

struct Options {
  std::string file, launch, entry, on, schedule = "eager", trace, trace_ctas;
  std::vector<uint32_t> grid, block, cluster;
  uint32_t dynamic_shared = 0;
  std::vector<std::string> arguments, print, keep, expect;
  double tolerance = 0;
  bool make_template = false;
  const CLI::App* command = nullptr;

  bool given(const char* option) const { return command->count(option) != 0; }
  bool runs() const { return given("--launch") || given("--grid") || given("--block") || given("--arg"); }
};

// ---- listing ----

nlohmann::ordered_json to_json(const ptx::Function& entry) {
  auto parameters = nlohmann::ordered_json::array();
  const std::vector<uint32_t> offsets = ptx::parameter_offsets(entry);
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const ptx::Variable& p = entry.params[i];
    parameters.push_back({{"name", p.name},
                          {"declaration", parameter_text(p)},
                          {"bytes", p.size_bytes()},
                          {"align", p.alignment()},
                          {"offset", offsets[i]}});
  }
  return {{"name", entry.name},
          {"signature", demangled(entry.name)},
          {"directives", entry.directives},
          {"parameters", std::move(parameters)}};
}

void list(const Session& session, const ptx::Module& module) {
  if (session.json) {
    auto entries = nlohmann::ordered_json::array();
    for (const ptx::Function* f : module.entries()) entries.push_back(to_json(*f));
    return print_json({{"file", module.name}, {"target", module.arch()}, {"entries", std::move(entries)}});
  }
  std::string text = format("{}: PTX {}.{} for {}\n", module.name, module.version_major, module.version_minor,
                            module.arch());
  for (const ptx::Function* f : module.entries()) {
    text += format("\n{}\n", f->name);
    if (const std::string plain = demangled(f->name); plain != f->name) text += format("  {}\n", plain);
    for (const std::string& d : f->directives) text += format("  {}\n", d);
    for (const ptx::Variable& p : f->params)
      text += format("  {:>4} bytes  {}\n", p.size_bytes(), parameter_text(p));
  }
  print(text);
}

// ---- running ----

sim::Dim3 dim3(const std::vector<uint32_t>& v) {
  return {v[0], v.size() > 1 ? v[1] : 1, v.size() > 2 ? v[2] : 1};
}

BufferSpec& buffer_named(LaunchSpec& launch, const std::string& name, const char* option) {
  const auto at = std::find_if(launch.buffers.begin(), launch.buffers.end(),
                               [&](const BufferSpec& b) { return b.name == name; });
  if (at != launch.buffers.end()) return *at;
  std::string known;
  for (const BufferSpec& b : launch.buffers) known += format("{}{}", known.empty() ? "" : ", ", b.name);
  user_error({}, "{} {}: there is no such buffer; there are: {}", option, name,
             known.empty() ? "none" : known);
}

// "arg1=FILE" of --keep and --expect.
std::pair<std::string, std::string> split(const std::string& text, const char* option) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos || equals + 1 == text.size())
    user_error({}, "{} {}: expected BUFFER=FILE", option, text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// The launch file, and over it what the command line says.
LaunchSpec describe(const Options& o) {
  LaunchSpec launch;
  if (o.given("--launch")) launch = parse_launch(read_file(o.launch), o.launch);
  if (o.given("--entry")) launch.entry = o.entry;
  if (o.given("--grid")) launch.grid = dim3(o.grid);
  if (o.given("--block")) launch.block = dim3(o.block), launch.has_block = true;
  if (o.given("--cluster")) launch.cluster = dim3(o.cluster), launch.has_cluster = true;
  if (o.given("--shared")) launch.dynamic_shared = o.dynamic_shared;
  if (!o.arguments.empty()) launch.arguments.clear();
  for (size_t i = 0; i < o.arguments.size(); ++i) add_argument(launch, o.arguments[i], format("arg{}", i));
  for (const std::string& name : o.print) buffer_named(launch, name, "--print").print = true;
  for (const std::string& text : o.keep) {
    const auto [name, file] = split(text, "--keep");
    buffer_named(launch, name, "--keep").keep = file;
  }
  for (const std::string& text : o.expect) {
    const auto [name, what] = split(text, "--expect");
    Expectation e;
    (launch.find(what) ? e.buffer : e.file) = what;
    buffer_named(launch, name, "--expect").expect = e;
  }
  if (o.given("--tolerance"))
    for (BufferSpec& b : launch.buffers)
      if (b.expect) b.expect->tolerance = o.tolerance;
  return launch;
}

std::string extents(const sim::Dim3& d) { return format("{}x{}x{}", d.x, d.y, d.z); }

// A buffer's values as rows of its last dimension, the first ones where there are many.
std::string table_of(const BufferOutcome& o) {
  constexpr int64_t kColumns = 16, kRows = 32;
  const int64_t width = o.spec->shape.back(), rows = static_cast<int64_t>(o.values.size()) / width;
  std::string text;
  for (int64_t r = 0; r < std::min(rows, kRows); ++r) {
    for (int64_t c = 0; c < std::min(width, kColumns); ++c)
      text += format("{}{:g}", c ? " " : "", o.values[static_cast<size_t>(r * width + c)]);
    if (width > kColumns) text += format(" ... ({} more)", width - kColumns);
    text += "\n";
  }
  if (rows > kRows) text += format("... ({} more rows)\n", rows - kRows);
  text.pop_back();
  return text;
}

struct Finished {
  const LaunchSpec& spec;
  const BoundLaunch& bound;
  const LaunchResult& result;
  const std::vector<BufferOutcome>& outcomes;
  sim::ScheduleSpec schedule;

  bool good() const {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const BufferOutcome& o) { return o.good(); });
  }
};

nlohmann::ordered_json to_json(const Device& device, const Finished& f) {
  nlohmann::ordered_json j{{"entry", f.bound.entry->name},
                           {"device", device.name()},
                           {"arch", device.target()},
                           {"seconds", f.result.seconds}};
  if (device.simulated()) {
    j["schedule"] = sim::to_string(f.schedule);
    j["warp_instructions"] = f.result.sim.warp_instructions;
    j["ctas"] = f.result.sim.ctas;
  }
  auto buffers = nlohmann::ordered_json::object();
  for (const BufferOutcome& o : f.outcomes) {
    nlohmann::ordered_json& b = buffers[o.spec->name];
    b = nlohmann::ordered_json::object();
    if (o.spec->print) b["values"] = o.values;
    if (!o.spec->keep.empty()) b["kept"] = o.spec->keep;
    if (!o.comparison) continue;
    b["right"] = o.good();
    b["different"] = o.different;
    b["error"] = o.comparison->error;
    b["tolerance"] = o.spec->expect->tolerance;
    b["unwritten_bytes"] = o.comparison->unwritten;
  }
  j["buffers"] = std::move(buffers);
  j["right"] = f.good();
  return j;
}

std::string to_text(const Device& device, const Finished& f) {
  const sim::Launch& l = f.bound.launch;
  std::vector<std::pair<std::string, std::string>> lines{
      {"entry", demangled(f.bound.entry->name)},
      {"launch", format("grid {}, block {}, cluster {}, {} bytes of dynamic shared memory", extents(l.grid),
                        extents(l.block), extents(l.cluster), l.dynamic_shared)},
      {"device", format("{} ({})", device.name(), device.target())}};
  if (device.simulated()) {
    lines.emplace_back("schedule", sim::to_string(f.schedule));
    lines.emplace_back("simulated", format("{} {}, {} warp instructions in {}", f.result.sim.ctas,
                                           f.result.sim.ctas == 1 ? "CTA" : "CTAs",
                                           report::count(static_cast<double>(f.result.sim.warp_instructions)),
                                           report::seconds(f.result.seconds)));
  } else {
    lines.emplace_back("time", report::seconds(f.result.seconds));
  }
  bool compared = false;
  for (const BufferOutcome& o : f.outcomes) {
    if (o.spec->print) lines.emplace_back(o.spec->name, table_of(o));
    if (!o.spec->keep.empty()) lines.emplace_back("kept", format("{} in {}", o.spec->name, o.spec->keep));
    if (!o.comparison) continue;
    compared = true;
    lines.emplace_back("verdict", format("{} {}", o.spec->name, o.verdict()));
  }
  if (!compared) lines.emplace_back("verdict", "ran to its end; the launch names nothing to compare with");
  return report::fields(lines);
}

void run(Session& session, const Options& o, const ptx::Module& module) {
  const LaunchSpec spec = describe(o);
  const auto device = Device::open(o.on.empty() ? default_device(module) : o.on);
  if (!o.trace.empty() && !device->simulated())
    user_error({}, "--trace needs a simulated device; {} is none", device->name());
  sim::Trace trace(trace_options(o.trace_ctas));
  report::Progress progress(!session.json);
  progress.stage(format("{} on {}", module.name, device->name()));
  const BoundLaunch bound = bind_launch(spec, module, *device);
  LaunchOptions options;
  options.timed = true;
  options.names = std::make_shared<ptx::DebugMap>(spec.names);
  options.dependent = bound.dependent;
  options.sim.schedule = sim::parse_schedule(o.schedule);
  options.sim.observer = o.trace.empty() ? nullptr : &trace;
  options.sim.progress_user = &progress;
  options.sim.progress = [](void* user, uint64_t done, uint64_t total) {
    static_cast<report::Progress*>(user)->update(done, total);
  };
  const LaunchResult result = [&] {
    try {
      return device->launch_ptx(module, bound.entry->name, bound.launch, options);
    } catch (const Error&) {  // what led to a fault or a deadlock is worth seeing
      if (!o.trace.empty()) write_file(o.trace, trace.json());
      throw;
    }
  }();
  device->synchronize();
  if (!o.trace.empty()) write_file(o.trace, trace.json());
  const std::vector<BufferOutcome> outcomes = judge(spec, bound);
  progress.clear();
  const Finished finished{spec, bound, result, outcomes, options.sim.schedule};
  if (session.json) print_json(to_json(*device, finished));
  else print(to_text(*device, finished));
  if (!finished.good()) session.exit = bad_outcome;
}

void ptx(Session& session, const Options& o) {
  const ptx::Module module = ptx::parse(read_file(o.file), o.file);
  if (o.make_template) return print(launch_template(find_entry(module, o.entry, {})));
  if (o.runs()) return run(session, o, module);
  list(session, module);
}

void add_launch_options(CLI::App& command, Options& o) {
  command.add_option("--grid", o.grid, "CTAs, as in 4 or 4,2,1")->delimiter(',')->expected(1, 3);
  command.add_option("--block", o.block, "threads (default: .reqntid)")->delimiter(',')->expected(1, 3);
  command.add_option("--cluster", o.cluster, "CTAs (default: .reqnctapercluster)")
      ->delimiter(',')
      ->expected(1, 3);
  command.add_option("--shared", o.dynamic_shared, "bytes of dynamic shared memory");
  command
      .add_option(
          "--arg", o.arguments,
          "next argument, in the order of the parameters: a number; TYPE[EXTENT,...]=INITIALISER, a buffer "
          "that is called arg0, arg1, ... by its place; or an object as in a launch file")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--print", o.print, "buffers to print")->delimiter(',');
  command.add_option("--keep", o.keep, "BUFFER=FILE: write it (text if the name ends in .txt, else raw)");
  command.add_option("--expect", o.expect, "BUFFER=FILE or BUFFER=BUFFER: what it must hold");
  command.add_option("--tolerance", o.tolerance, "relative Frobenius error allowed; 0: equal bit for bit");
}

}  // namespace

void add_ptx(CLI::App& app, Session& session) {
  auto* command = add_command(app, session, "ptx", "list or run the entries of a PTX module from elsewhere");
  command->footer(
      "Without a launch: lists the entries. docs/foreign-ptx.md describes launch files; --template starts "
      "one.");
  auto o = std::make_shared<Options>();
  o->command = command;
  command->add_option("FILE", o->file, "PTX text")->required();
  command->add_option("--launch", o->launch, "launch file (JSON); other options override it");
  command->add_flag("--template", o->make_template, "print a launch file for the entry, to fill in");
  command->add_option("--entry", o->entry, "which entry, where there are several");
  command->add_option("--on", o->on, "sim:b200, sim:h200, ..., cuda:0 (default: by the module's .target)");
  add_launch_options(*command, *o);
  command->add_option("--schedule", o->schedule, "of the simulator: eager, late, random:SEED or starve:ROLE")
      ->capture_default_str();
  command->add_option("--trace", o->trace, "write what warps and engines did, in order, for ui.perfetto.dev");
  command->add_option("--trace-ctas", o->trace_ctas, "CTAs to trace, as in 0-7 (default: the first cluster)");
  command->callback([o, &session] { ptx(session, *o); });
}

}  // namespace tw::tools
