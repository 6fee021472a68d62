#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/machine/gpu.h"
#include "tilewright/report/table.h"
#include "tilewright/runtime/device.h"
#include "tools/command.h"
#include "tools/host.h"

namespace tw::tools {

namespace {

struct Finding {
  std::string what;
  bool present = true;
  std::string found;  // what there is, or why there is none
  std::string gives;  // what it is good for; for missing things, what having it would add
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

Finding program(const std::string& name, const std::string& gives, const std::string& install,
                const std::vector<std::string>& more = {}, const std::string& version_line = "") {
  const auto path = find_program(name, more);
  if (!path) return {name, false, install, gives};
  const std::string version = program_version(*path, version_line);
  return {name, true, *path + (version.empty() ? "" : ": " + version), gives};
}

// What a table has room for: a message up to its details.
std::string brief(const std::string& message) {
  return message.substr(0, std::min(message.find(" ("), message.find(';')));
}

void host(std::vector<Finding>& out) {
  const Cpu cpu = host_cpu();
  out.push_back({"processor", true, format("{}, {} usable cores", cpu.model, cpu.usable_cores),
                 "clusters of a simulated grid run on all cores"});
  std::string simd = joined(cpu.simd);
  if (!cpu.simd_lack.empty()) simd += " (no " + joined(cpu.simd_lack) + ")";
  out.push_back(
      {"vector units", cpu.simd_lack.empty(), simd, "speed of the simulator; results do not depend on it"});
  out.push_back({"memory", true,
                 format("{}, {} available", report::bytes(static_cast<double>(host_memory_bytes())),
                        report::bytes(static_cast<double>(host_free_memory_bytes()))),
                 "holds the tensors of simulated devices"});
}

void devices(std::vector<Finding>& out) {
  for (const auto& gpu : machine::gpus()) {
    const std::string name = format("sim:{}", gpu.name);
    try {
      const auto device = Device::open(name);
      out.push_back({name, true, format("{}, {} SMs", device->target(), device->sm_count()),
                     "runs kernels, simulated"});
    } catch (const Error& e) {
      out.push_back({name, false, e.message(), "runs kernels, simulated"});
    }
  }
  for (int i = 0;; ++i) {
    const std::string name = format("cuda:{}", i);
    const std::string gives = "runs kernels on the GPU, with timing by events";
    try {
      const auto device = Device::open(name);
      out.push_back({name, true, format("{}, {} SMs", device->target(), device->sm_count()), gives});
    } catch (const Error& e) {
      if (i == 0) out.push_back({name, false, e.message(), gives});
      break;
    }
  }
}

void programs(std::vector<Finding>& out) {
  out.push_back(program("g++", "builds Tilewright and kernels", "apt-get install g++"));
  out.push_back(program("cmake", "builds Tilewright and kernels", "apt-get install cmake"));
  out.push_back(program("ccache", "faster rebuilds", "apt-get install ccache"));
  out.push_back(program("ptxas", "tests also assemble every kernel for its target",
                        "part of the CUDA toolkit; not needed to build or run", {"/usr/local/cuda/bin"},
                        "release"));
  out.push_back(program("nvcc", "tests also parse what it emits",
                        "part of the CUDA toolkit; not needed to build or run", {"/usr/local/cuda/bin"},
                        "release"));
  out.push_back(program("clang-format", "./dev format", "apt-get install clang-format"));
  out.push_back(program("clang-tidy-19", "./dev lint", "apt-get install clang-tidy-19", {}, "version"));
  out.push_back(
      program("rsvg-convert", "turns the SVG drawings of tw into PNG", "apt-get install librsvg2-bin"));
}

void doctor(const Session& session) {
  std::vector<Finding> findings;
  host(findings);
  devices(findings);
  programs(findings);

  if (session.json) {
    auto list = nlohmann::ordered_json::array();
    for (const Finding& f : findings)
      list.push_back({{"what", f.what}, {"present", f.present}, {"found", f.found}, {"gives", f.gives}});
    print_json(nlohmann::ordered_json{{"findings", list}});
    return;
  }
  report::Table table({{"what"}, {""}, {"found"}, {"good for"}});
  for (const Finding& f : findings)
    table.row({f.what, f.present ? "yes" : "no", f.present ? f.found : brief(f.found), f.gives});
  print(table.text(report::style_for(stdout)));
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  auto* command = add_command(app, session, "doctor", "what this machine can do, and what is missing");
  command->callback([&session] { doctor(session); });
}

}  // namespace tw::tools
