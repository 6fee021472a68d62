#include "bench/simulator.h"

#include <algorithm>

#include "bench/instructions.h"
#include "kernels/registry.h"
#include "tilewright/base/format.h"
#include "tilewright/check/check.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"
#include "tilewright/sim/matrix_multiply.h"

namespace tw::bench {

Body matrix_tile() {
  return [] { return sim::time_matrix_tile(128, 128, 64, 20); };
}

Body simulated_gemm(const kernels::GemmKernel& kernel, int64_t extent, const std::string& on, bool checked) {
  const auto device = Device::open(on);
  const kernels::GemmShape shape{extent, extent, extent, DType::f16};
  const Compiled compiled = lower(kernel.build(shape, device->target()));
  Tensor a = device->tensor(DType::f16, {shape.m, shape.k}, "A");
  Tensor b = device->tensor(DType::f16, {shape.n, shape.k}, "B");
  const Tensor d = device->tensor(DType::f16, {shape.m, shape.n}, "D");
  fill_normal(a, 1);
  fill_normal(b, 2);
  const auto launch = [=](const sim::RunOptions& sim) { device->launch(compiled, {a, b, d}, {.sim = sim}); };
  if (!checked) return fastest_of(1, [=] { launch({}); });
  return fastest_of(1, [=] {
    if (check::check(launch, {.schedules = {"eager"}}).verdict != check::Verdict::clean)
      internal_error({}, "{} is not clean", kernel.name);
  });
}

Body step3() { return simulated_gemm(kernels::gemm_kernel("gemm.step3"), step3_extent); }

const kernels::GemmKernel& last_step() {
  constexpr std::string_view stem = "gemm.step";
  const kernels::GemmKernel* last = nullptr;
  for (const kernels::GemmKernel& k : kernels::gemm_kernels()) {
    const bool numbered =
        k.name.starts_with(stem) && k.name.find_first_not_of("0123456789", stem.size()) == std::string::npos;
    if (numbered && std::count(k.archs.begin(), k.archs.end(), "sm_100a") != 0) last = &k;
  }
  return *last;
}

Body instruction(const Instruction& which) {
  return [loop = std::make_shared<InstructionLoop>(which)] { return loop->seconds(); };
}

Body slowest_compilation() {
  return [] {
    double slowest = 0;
    for (const auto& kernel : kernels::gemm_kernels())
      for (const std::string& arch : kernel.archs)
        slowest = std::max(slowest, fastest_of(1, [&] { lower(kernel.build(kernel.demo, arch)); })());
    return slowest;
  };
}

std::vector<Result> instruction_results(int rounds) {
  constexpr double target = 20.0;  // ns, of integer and float instructions
  std::vector<Body> bodies;
  for (const Instruction& i : instructions()) bodies.push_back(instruction(i));
  const auto t = interleaved(bodies, rounds, Summary::fastest);
  std::vector<Result> worst{{"instruction.integer", "32-lane integer instruction, slowest", 0, "ns", target},
                            {"instruction.float", "32-lane float instruction, slowest", 0, "ns", target}};
  std::vector<Result> each;
  for (size_t n = 0; n < t.size(); ++n) {
    const Instruction& i = instructions()[n];
    const double ns = t[n] * 1e9;
    each.push_back({format("instruction.{}", i.name), format("  {}", i.name), ns, "ns"});
    if (i.kind == Instruction::Kind::memory) continue;
    each.back().target = target;
    Result& slowest = worst[i.kind == Instruction::Kind::integer ? 0 : 1];
    if (ns <= slowest.value) continue;
    slowest.value = ns;
    slowest.what = format("32-lane {} instruction, slowest ({})",
                          i.kind == Instruction::Kind::integer ? "integer" : "float", i.name);
  }
  worst.insert(worst.end(), each.begin(), each.end());
  return worst;
}

std::vector<Result> checker_results(int rounds) {
  const kernels::GemmKernel& kernel = kernels::gemm_kernel("gemm.step9");
  std::vector<Result> results;
  for (const std::string device : {"sim:b200", "sim:h200"}) {
    const auto t = interleaved({simulated_gemm(kernel, checked_extent, device),
                                simulated_gemm(kernel, checked_extent, device, true)},
                               rounds);
    const std::string name = "check." + device.substr(4);
    results.push_back({name, format("check of {} 1024^3 on {}", kernel.name, device), t[1] * 1e3, "ms"});
    results.push_back({name + ".ratio", "  against the plain simulation, time", t[1] / t[0], "x", 4.0});
  }
  return results;
}

std::vector<Result> simulator_results(int rounds) {
  const auto t =
      interleaved({matrix_tile(), on_two_threads(matrix_tile()), slowest_compilation(), step3()}, rounds);
  std::vector<Result> results{
      {"matrix.one_thread", "matrix arithmetic of 128x128x64 tiles, one thread", tile_flops / t[0] / 1e9,
       "GFLOP/s"},
      {"matrix.two_threads", "the same, two threads", 2 * tile_flops / t[1] / 1e9, "GFLOP/s"},
      {"compile", "C++ to PTX, slowest kernel", t[2] * 1e3, "ms", 50.0},
      {"step3", "gemm.step3 1024x1024x1024 f16 on sim:b200", t[3] * 1e3, "ms"}};
  for (Result& r : instruction_results(rounds)) results.push_back(std::move(r));
  return results;
}

}  // namespace tw::bench
