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
  std::string kernel, arch, dtype = "f16";
  int64_t m = 0, n = 0, k = 0;  // 0: the demo's
  bool ir = false, ptx = false;
};

void show(const Session& session, const Options& o) {
  const auto& kernel = kernels::gemm_kernel(o.kernel);
  const auto shape = complete(kernel, {o.m, o.n, o.k, dtype_from_name(o.dtype)});
  const std::string arch = o.arch.empty() ? kernel.archs.back() : o.arch;
  const ir::Kernel recorded = record(kernel, shape, arch);
  const bool ir = o.ir || !o.ptx;
  nlohmann::ordered_json json{{"kernel", kernel.name}, {"arch", arch}, {"shape", to_string(shape)}};
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
  command->add_option("--arch", o->arch, "sm_90a, sm_100a (default: the newest it is written for)");
  command->add_flag("--ir", o->ir, "tile operations with scopes, layouts and source lines (the default)");
  command->add_flag("--ptx", o->ptx, "the module with the source line of every instruction");
  command->add_option("-m", o->m, "rows of D (default: the shape of `tw demo`)");
  command->add_option("-n", o->n, "columns of D");
  command->add_option("-k", o->k, "inner extent");
  command->add_option("--dtype", o->dtype, "f16 or bf16")->capture_default_str();
  command->callback([o, &session] { show(session, *o); });
}

}  // namespace tw::tools
