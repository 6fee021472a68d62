#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "kernels/registry.h"
#include "tilewright/report/table.h"
#include "tools/command.h"

namespace tw::tools {

namespace {

void list(const Session& session) {
  auto json = nlohmann::ordered_json::array();
  report::Table table({{"kernel"}, {"architectures"}, {"what it shows"}});
  for (const auto& k : kernels::gemm_kernels()) {
    std::string archs;
    for (const std::string& a : k.archs) archs += (archs.empty() ? "" : " ") + a;
    table.row({k.name, archs, k.idea});
    json.push_back({{"name", k.name}, {"architectures", k.archs}, {"shows", k.idea}});
  }
  if (session.json) return print_json(json);
  print(table.text(report::style_for(stdout)));
}

}  // namespace

void add_list(CLI::App& app, Session& session) {
  add_command(app, session, "list", "the kernels that there are")->callback([&session] { list(session); });
}

}  // namespace tw::tools
