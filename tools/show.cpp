#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
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

void show(const Session& session, const Options& o) {
  const auto& kernel = kernels::gemm_kernel(o.kernel);
  const auto shape = o.shape.of(kernel);
  const ir::Kernel recorded = record(kernel, shape, o.arch);
  const bool ir = o.ir || !o.ptx;
  nlohmann::ordered_json json{{"kernel", kernel.name}, {"arch", o.arch}, {"shape", to_string(shape)}};
  if (ir) json["ir"] = ir::print(recorded, true);
  if (o.ptx) {
    const Compiled compiled = lower(recorded);
    json["ptx"] = *compiled.text;
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
