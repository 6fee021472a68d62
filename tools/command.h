#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tilewright/base/error.h"
#include "tools/files.h"

namespace CLI {
class App;
}

// What the subcommands of tw share. Each lives in a file of its own and adds itself to the parser; its
// callback does the work, prints one report and throws tw::Error on failure.
namespace tw::tools {

enum Exit {
  all_right = 0,
  bad_outcome = 1,  // a result that is wrong, a fault, a driver's refusal, something not modelled
  misuse = 2,       // the command line or its input breaks a rule
};
Exit exit_code(ErrorKind kind);

struct Session {
  bool json = false;
  Exit exit = all_right;  // set by a command whose report is printed but is not good news
};

// Adds subcommand `name` with the options that every command has.
CLI::App* add_command(CLI::App& app, Session& session, std::string name, std::string description);

void add_demo(CLI::App& app, Session& session);
void add_list(CLI::App& app, Session& session);
void add_show(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_ptx(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_layout(CLI::App& app, Session& session);
void add_roofline(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_bench_gemm(CLI::App& bench, Session& session);
void add_doctor(CLI::App& app, Session& session);

void print(std::string_view text);                     // to stdout
void print_json(const nlohmann::ordered_json& value);  // indented, with a newline

}  // namespace tw::tools
