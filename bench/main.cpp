#include <sys/resource.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/blas.h"
#include "bench/harness.h"
#include "bench/simulator.h"
#include "tilewright/base/error.h"
#include "tilewright/report/progress.h"
#include "tilewright/report/terminal.h"

// `./dev bench`: ratios between the simulator and the host's own BLAS, taken in one run.
namespace {

using namespace tw;         // NOLINT
using namespace tw::bench;  // NOLINT

// C = A B^T of square f32 matrices.
Body host_gemm(int64_t extent, int threads, int repeats) {
  const auto cells = static_cast<size_t>(extent * extent);
  std::vector<float> a(cells), b(cells), c(cells);
  for (size_t i = 0; i < cells; ++i) {
    a[i] = static_cast<float>(i % 13) - 6;
    b[i] = static_cast<float>(i % 7) - 3;
  }
  return fastest_of(repeats, [=, a = std::move(a), b = std::move(b), c = std::move(c)]() mutable {
    sgemm(extent, extent, extent, a.data(), b.data(), c.data(), threads);
  });
}

std::vector<Result> ratios(int rounds) {
  constexpr int64_t extent = step3_extent;
  constexpr double flops = 2.0 * extent * extent * extent;
  const auto t = interleaved({host_gemm(extent, 1, 3), matrix_tile(), host_gemm(extent, 2, 3),
                              on_two_threads(matrix_tile()), host_gemm(extent, 2, 1), step3()},
                             rounds);
  const double host1 = flops / t[0], sim1 = tile_flops / t[1], host2 = flops / t[2],
               sim2 = 2 * tile_flops / t[3];
  return {{"blas.one_thread", "OpenBLAS sgemm 1024^3, one thread", host1 / 1e9, "GFLOP/s"},
          {"blas.two_threads", "OpenBLAS sgemm 1024^3, two threads", host2 / 1e9, "GFLOP/s"},
          {"matrix.ratio.one_thread", "matrix arithmetic against it, one thread", 100 * sim1 / host1, "%",
           50.0, true},
          {"matrix.ratio.two_threads", "matrix arithmetic against it, two threads", 100 * sim2 / host2, "%",
           50.0, true},
          {"step3.ratio", "gemm.step3 1024^3 on sim:b200 against it, time", t[5] / t[4], "x", 6.0}};
}

// The whole ladder's last step at a size that people run, beside the same product by the host.
std::vector<Result> large_ratio(int rounds) {
  constexpr int64_t extent = 4096;
  constexpr double flops = 2.0 * extent * extent * extent;
  const kernels::GemmKernel& kernel = last_step();
  const auto t = interleaved({host_gemm(extent, 2, 1), simulated_gemm(kernel, extent)}, rounds);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {{"large.blas", "OpenBLAS sgemm 4096^3, two threads", flops / t[0] / 1e9, "GFLOP/s"},
          {"large", format("{} 4096^3 on sim:b200", kernel.name), t[1], "s"},
          {"large.ratio", "  against OpenBLAS, time", t[1] / t[0], "x", 2.5},
          {"large.memory", "  memory of this program at most, OpenBLAS' matrices included",
           static_cast<double>(used.ru_maxrss) / 1024, "MiB", 2048}};
}

struct Options {
  bool json = false, large = false, checker = false, instructions = false;
};

int run(const Options& options) {
  const bool json = options.json;
  report::Progress progress(!json);
  progress.stage("measuring against OpenBLAS");
  std::vector<Result> results;
  if (options.large) {
    results = large_ratio(3);
  } else if (options.checker) {
    results = checker_results(5);
  } else if (options.instructions) {
    results = instruction_results(51);
  } else {
    constexpr int rounds = 11;
    results = ratios(rounds);
    progress.stage("measuring the simulator");
    for (Result& r : simulator_results(rounds)) results.push_back(std::move(r));
    progress.stage("measuring the checker");
    for (Result& r : checker_results(rounds)) results.push_back(std::move(r));
  }
  progress.clear();
  if (json) {
    std::fputs(bench::json(results, blas_description()).c_str(), stdout);
  } else {
    std::printf("yardstick: %s\n\n", blas_description().c_str());
    std::fputs(table(results, report::style_for(stdout) == report::Style::boxed).c_str(), stdout);
    std::puts(
        "\nMedians over rounds that run everything in turn. On a busy machine the ratios flatter the short "
        "tile: a long GEMM is interrupted more. Of an instruction the fastest round counts.");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  run_blas_at_its_best(argv);
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--large") {
      options.large = true;
    } else if (word == "--checker") {
      options.checker = true;
    } else if (word == "--instructions") {
      options.instructions = true;
    } else {
      std::fputs("usage: tw_bench [--json] [--large | --checker | --instructions]\n", stderr);
      return 2;
    }
  }
  return run(options);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
