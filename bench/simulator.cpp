#include "bench/simulator.h"

#include <algorithm>

#include "bench/instructions.h"
#include "kernels/registry.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"
#include "tilewright/sim/matrix_multiply.h"

namespace tw::bench {

Body matrix_tile() {
  return [] { return sim::time_matrix_tile(128, 128, 64, 20); };
}

Body step3() {
  const auto device = Device::open("sim:b200");
  const kernels::GemmShape shape{step3_extent, step3_extent, step3_extent, DType::f16};
  const Compiled compiled = lower(kernels::gemm_kernel("gemm.step3").build(shape, device->target()));
  Tensor a = device->tensor(DType::f16, {shape.m, shape.k}, "A");
  Tensor b = device->tensor(DType::f16, {shape.n, shape.k}, "B");
  const Tensor d = device->tensor(DType::f16, {shape.m, shape.n}, "D");
  fill_normal(a, 1);
  fill_normal(b, 2);
  return fastest_of(1, [=] { device->launch(compiled, {a, b, d}); });
}

Body integer_instruction() {
  return
      [loop = std::make_shared<InstructionLoop>(InstructionLoop::Kind::integer)] { return loop->seconds(); };
}

Body float_instruction() {
  return
      [loop = std::make_shared<InstructionLoop>(InstructionLoop::Kind::floating)] { return loop->seconds(); };
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

std::vector<Result> simulator_results(int rounds) {
  const auto t = interleaved({matrix_tile(), on_two_threads(matrix_tile()), integer_instruction(),
                              float_instruction(), slowest_compilation(), step3()},
                             rounds);
  return {{"matrix.one_thread", "matrix arithmetic of 128x128x64 tiles, one thread", tile_flops / t[0] / 1e9,
           "GFLOP/s"},
          {"matrix.two_threads", "the same, two threads", 2 * tile_flops / t[1] / 1e9, "GFLOP/s"},
          {"instruction.integer", "32-lane integer instruction", t[2] * 1e9, "ns", 20.0},
          {"instruction.float", "32-lane float instruction", t[3] * 1e9, "ns", 20.0},
          {"compile", "C++ to PTX, slowest kernel", t[4] * 1e3, "ms", 50.0},
          {"step3", "gemm.step3 1024x1024x1024 f16 on sim:b200", t[5] * 1e3, "ms"}};
}

}  // namespace tw::bench
