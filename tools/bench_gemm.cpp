#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/report/progress.h"
#include "tilewright/runtime/cublas.h"
#include "tilewright/runtime/device.h"
#include "tools/command.h"
#include "tools/compile.h"
#include "tools/gemm_bench.h"
#include "tools/gemm_report.h"
#include "tools/host.h"

namespace tw::tools {

namespace {

struct Options {
  std::string on = "cuda:0", dtype = "bf16", shapes, tile, cublas;
  std::vector<std::string> kernels, save;
  std::optional<int64_t> m, n, k;
  bool no_cublas = false;
  int rounds = 15, working_set = 400;
};

std::vector<kernels::GemmShape> shapes(const Options& o) {
  const DType dtype = dtype_from_name(o.dtype);
  if (!o.shapes.empty() && (o.m || o.n || o.k))
    user_error({}, "-m, -n and -k describe one shape; --shapes names several: give one");
  std::vector<kernels::GemmShape> all{{o.m.value_or(4096), o.n.value_or(4096), o.k.value_or(4096), dtype}};
  if (!o.shapes.empty()) all = parse_gemm_shapes(o.shapes, dtype);
  for (kernels::GemmShape& s : all) set_tile(s, o.tile);
  return all;
}

bool written_for(const kernels::GemmKernel& kernel, std::string_view arch) {
  return std::find(kernel.archs.begin(), kernel.archs.end(), arch) != kernel.archs.end();
}

// Those named, else the last of the list that the architecture has.
std::vector<const kernels::GemmKernel*> chosen(const Options& o, std::string_view arch) {
  std::vector<const kernels::GemmKernel*> out;
  for (const std::string& name : o.kernels) out.push_back(&kernels::gemm_kernel(name));
  if (out.empty())
    for (const kernels::GemmKernel& k : kernels::gemm_kernels())
      if (written_for(k, arch)) out = {&k};
  if (out.empty()) user_error({}, "no kernel is written for {}", arch);
  return out;
}

// What to type to measure the same again.
std::string command_line(const Options& o, const std::vector<const kernels::GemmKernel*>& kernels) {
  std::string line = format("tw bench gemm --on {} --dtype {} --rounds {}", o.on, o.dtype, o.rounds);
  for (const kernels::GemmKernel* k : kernels) line += " --kernel " + k->name;
  if (!o.shapes.empty()) line += " --shapes " + o.shapes;
  if (o.working_set != Options{}.working_set) line += format(" --working-set {}", o.working_set);
  if (!o.tile.empty()) line += " --tile " + o.tile;
  if (o.m) line += format(" -m {}", *o.m);
  if (o.n) line += format(" -n {}", *o.n);
  if (o.k) line += format(" -k {}", *o.k);
  return o.no_cublas ? line + " --no-cublas" : line;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// cuBLAS beside its workspace, which it must not outlive.
struct Yardstick {
  Tensor workspace;
  std::unique_ptr<cuda::Cublas> cublas;
};

// Nothing, and the reason in `note`, where there is no cuBLAS; one that was asked for by name must be there.
std::optional<Yardstick> yardstick(const Options& o, Device& device, std::string& note) {
  if (device.simulated() || o.no_cublas) {
    note = device.simulated() ? "does not run on a simulated device" : "not asked for";
    return std::nullopt;
  }
  try {
    const cuda::LoadedCublas loaded = cuda::load_cublas(o.cublas);
    device.synchronize();  // makes its context current
    Tensor workspace = device.tensor(DType::u8, {int64_t{cuda::kCublasWorkspace}}, "workspace of cuBLAS");
    auto cublas = std::make_unique<cuda::Cublas>(loaded.api, workspace.address());
    return Yardstick{workspace, std::move(cublas)};
  } catch (const Error& e) {
    if (!o.cublas.empty()) throw;
    note = e.message();
    std::fprintf(stderr, "warning: measuring without cuBLAS: %s\n", note.c_str());
    return std::nullopt;
  }
}

void save(const std::vector<std::string>& files, const GemmReport& report) {
  for (const std::string& file : files)
    write_file(file, file.ends_with(".md") ? to_markdown(report) : to_json(report).dump(2) + "\n");
}

void bench(Session& session, const Options& o) {
  const auto wanted = shapes(o);
  const auto device = Device::open(o.on);
  GemmBenchOptions options{.kernels = chosen(o, device->target()),
                           .rounds = o.rounds,
                           .working_set = static_cast<uint64_t>(o.working_set) * 1'000'000};
  GemmReport report{.command = command_line(o, options.kernels),
                    .date = now(),
                    .device = device->product(),
                    .arch = std::string(device->target()),
                    .sms = device->sm_count(),
                    .simulated = device->simulated(),
                    .rounds = o.rounds};
  if (!device->simulated()) report.driver = nvidia_driver();
  auto compared = yardstick(o, *device, report.cublas_note);
  if (compared) report.cublas = compared->cublas->version();

  report::Progress progress(!session.json);
  for (const kernels::GemmShape& shape : wanted) {
    report.results.push_back(
        bench_gemm(*device, compared ? compared->cublas.get() : nullptr, shape, options, progress));
    save(o.save, report);  // what there is, should a later shape fail
  }
  progress.clear();
  if (session.json) print_json(to_json(report));
  else print(to_text(report, report::style_for(stdout)));
  if (!report.good()) session.exit = bad_outcome;
}

}  // namespace

void add_bench_gemm(CLI::App& bench_command, Session& session) {
  auto* command = add_command(bench_command, session, "gemm", "GEMM kernels on a GPU, beside cuBLAS");
  auto o = std::make_shared<Options>();
  command->add_option("--on", o->on, "cuda:0, ...; a simulated device takes the host's time")
      ->capture_default_str();
  command->add_option("--kernel", o->kernels,
                      "as in `tw list`; may be repeated (default: the last of the list)");
  command->add_option("-m", o->m, "rows of D (default: 4096)")->check(CLI::PositiveNumber);
  command->add_option("-n", o->n, "columns of D")->check(CLI::PositiveNumber);
  command->add_option("-k", o->k, "inner extent")->check(CLI::PositiveNumber);
  command->add_option("--shapes", o->shapes, "square, llm, all, or MxNxK,MxNxK,...");
  command->add_option("--tile", o->tile, "MxN, of D: the tile that `gemm` takes (default: its choice)");
  command->add_option("--dtype", o->dtype, "f16 or bf16")->capture_default_str();
  command->add_option("--rounds", o->rounds, "medians are over so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--working-set", o->working_set, "MB that launches rotate through, to defeat the L2 cache")
      ->capture_default_str()
      ->check(CLI::Range(0, 1'000'000));
  command->add_option("--cublas", o->cublas,
                      "the library or its folder (default: TW_CUBLAS, else looked for)");
  command->add_flag("--no-cublas", o->no_cublas, "measure our kernels alone");
  command->add_option("--save", o->save,
                      "also write the report: FILE.json, or FILE.md for a page; may be repeated");
  command->callback([o, &session] { bench(session, *o); });
}

}  // namespace tw::tools
