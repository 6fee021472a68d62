#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tilewright/lower/lower.h"
#include "tools/command.h"
#include "tools/compile.h"

namespace tw::tools {

namespace {

struct Options {
  std::string kernel, arch = "sm_100a";
  ShapeOptions shape;
  bool ir = false, ptx = false;
};

// The module's text with each instruction's place in the C++ source as a comment: still PTX.
std::string with_source_lines(const Compiled& compiled) {
  std::map<uint32_t, SourceLoc> places;
  for (const auto& item : compiled.module->items)
    if (const auto* function = std::get_if<ptx::Function>(&item))
      for (const auto& statement : function->body)
        if (const auto* i = std::get_if<ptx::Instruction>(&statement); i && i->loc) places[i->line] = i->loc;
  constexpr size_t column = 90;
  std::string out;
  std::istringstream text(*compiled.text);
  uint32_t number = 0;
  for (std::string line; std::getline(text, line); out += line + "\n")
    if (const auto place = places.find(++number); place != places.end()) {
      line.resize(std::max(line.size() + 2, column), ' ');
      line += "// " + to_string(place->second);
    }
  return out;
}

void show(const Session& session, const Options& o) {
  const auto& kernel = kernels::gemm_kernel(o.kernel);
  const auto shape = o.shape.of(kernel);
  const ir::Kernel recorded = record(kernel, shape, o.arch);
  const bool ir = o.ir || !o.ptx;
  nlohmann::ordered_json json{{"kernel", kernel.name}, {"arch", o.arch}, {"shape", to_string(shape)}};
  if (ir) json["ir"] = ir::print(recorded, true);
  if (o.ptx) {
    const Compiled compiled = lower(recorded);
    json["ptx"] = with_source_lines(compiled);
    json["notes"] = compiled.notes;
  }
  if (session.json) return print_json(json);
  if (ir) print(json["ir"].get_ref<const std::string&>());
  if (o.ptx) print(json["ptx"].get_ref<const std::string&>());
}

}  // namespace

void add_show(CLI::App& app, Session& session) {
  auto* command = add_command(app, session, "show", "a kernel as tile IR, or as the PTX that runs");
  auto o = std::make_shared<Options>();
  command->add_option("KERNEL", o->kernel, "as in `tw list`")->required();
  command->add_option("--arch", o->arch, "sm_90a, sm_100a or sm_103a")->capture_default_str();
  command->add_flag("--ir", o->ir, "tile operations with scopes, layouts and source lines (the default)");
  command->add_flag("--ptx", o->ptx, "the module with the source line of every instruction");
  add_shape_options(*command, o->shape);
  command->callback([o, &session] { show(session, *o); });
}

}  // namespace tw::tools
