#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/simulator.h"
#include "tilewright/base/format.h"
#include "tilewright/report/progress.h"
#include "tilewright/report/terminal.h"
#include "tools/command.h"
#include "tools/host.h"

namespace tw::tools {

namespace {

void bench_simulator(Session& session, int rounds) {
  report::Progress progress(!session.json);
  progress.stage("measuring the simulator");
  const auto results = bench::simulator_results(rounds);
  progress.clear();
  const Cpu cpu = host_cpu();
  const std::string host = format("{}, {} cores", cpu.model, cpu.usable_cores);
  if (session.json) return print(bench::json(results, host));
  print(host + "\n\n");
  print(bench::table(results, report::style_for(stdout) == report::Style::boxed));
  print("\n./dev bench sets these against the host's own BLAS.\n");
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  auto* command =
      app.add_subcommand("bench", "how fast Tilewright is: the simulator on this machine, kernels on a GPU");
  command->require_subcommand(1);
  auto* simulator =
      add_command(*command, session, "sim", "the simulator's arithmetic, instructions and a whole kernel");
  auto rounds = std::make_shared<int>(5);
  simulator->add_option("--rounds", *rounds, "medians are over so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add_bench_gemm(*command, session);
  simulator->callback([rounds, &session] { bench_simulator(session, *rounds); });
}

}  // namespace tw::tools
