#include "tools/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tw::tools {

Exit exit_code(ErrorKind kind) { return kind == ErrorKind::user ? misuse : bad_outcome; }

CLI::App* add_command(CLI::App& app, Session& session, std::string name, std::string description) {
  CLI::App* command = app.add_subcommand(std::move(name), std::move(description));
  command->add_flag("--json", session.json, "print the report as JSON");
  return command;
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_json(const nlohmann::ordered_json& value) { print(std::string_view(value.dump(2) + "\n")); }

}  // namespace tw::tools
