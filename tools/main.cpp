#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/command.h"

namespace tw::tools {
namespace {

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user: return "user";
    case ErrorKind::not_modelled: return "not_modelled";
    case ErrorKind::fault: return "fault";
    case ErrorKind::deadlock: return "deadlock";
    case ErrorKind::driver: return "driver";
    case ErrorKind::internal: return "internal";
  }
  return "internal";
}

// A failure in the form that was asked for: a diagnostic for people on stderr, an object for programs on
// stdout.
Exit report(const Session& session, ErrorKind kind, const SourceLoc& loc, std::string_view message,
            std::string_view what) {
  if (session.json) {
    nlohmann::ordered_json error{{"kind", name(kind)}, {"message", message}};
    if (loc) error["location"] = to_string(loc);
    print_json(nlohmann::ordered_json{{"error", error}});
  }
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  return exit_code(kind);
}

int run(int argc, char** argv) {
  CLI::App app{"Tilewright: write tile kernels for Hopper and Blackwell GPUs, run and check them anywhere"};
  app.name("tw");
  app.require_subcommand(0, 1);
  app.footer("Exit code: 0 all is right, 1 a result is wrong or a run failed, 2 the input breaks a rule.");

  Session session;
  add_demo(app, session);
  add_list(app, session);
  add_show(app, session);
  add_run(app, session);
  add_ptx(app, session);
  add_check(app, session);
  add_layout(app, session);
  add_roofline(app, session);
  add_bench(app, session);
  add_doctor(app, session);

  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return session.exit;
    std::fputs(app.help().c_str(), stderr);
    return misuse;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& e) {
    const std::string what = std::string("error: ") + e.what();
    return report(session, ErrorKind::user, {}, e.what(), what + "\nSee tw --help, or tw COMMAND --help.");
  } catch (const Error& e) {
    return report(session, e.kind(), e.loc(), e.message(), e.what());
  } catch (const std::exception& e) {
    return report(session, ErrorKind::internal, {}, e.what(), std::string("internal error: ") + e.what());
  }
}

}  // namespace
}  // namespace tw::tools

int main(int argc, char** argv) { return tw::tools::run(argc, argv); }
