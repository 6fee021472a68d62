#include "bench/instructions.h"

#include <cstring>
#include <string>
#include <utility>

#include "tilewright/base/format.h"
#include "tilewright/sim/simulator.h"

namespace tw::bench {

namespace {

constexpr int iterations = 2000, unrolled = 8;

// Eight accumulators, so that no instruction waits for its neighbour on real hardware either; the result is
// stored, and depends on the lane.
std::string loop_ptx(const std::string& body_of_register, bool is_float) {
  const std::string type = is_float ? "f32" : "b32", r = is_float ? "%f" : "%r";
  std::string text =
      ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry loop(.param .u64 out) {\n"
      "  .reg .pred %p;\n  .reg .b32 %i<4>;\n  .reg .b64 %rd<4>;\n";
  text += format("  .reg .{} {}<{}>;\n", type, r, unrolled);
  text += "  ld.param.u64 %rd0, [out];\n  mov.u32 %i0, %tid.x;\n  mov.u32 %i1, 0;\n";
  for (int i = 0; i < unrolled; ++i)
    text +=
        is_float ? format("  cvt.rn.f32.u32 %f{}, %i0;\n", i) : format("  add.u32 %r{}, %i0, {};\n", i, i);
  text += "again:\n";
  for (int i = 0; i < unrolled; ++i) {
    std::string body = body_of_register;
    for (size_t at; (at = body.find('$')) != std::string::npos;) body.replace(at, 1, r + std::to_string(i));
    text += body;
  }
  text += format("  add.u32 %i1, %i1, 1;\n  setp.lt.u32 %p, %i1, {};\n  @%p bra again;\n", iterations);
  for (int i = 1; i < unrolled; ++i)
    text += is_float ? format("  add.f32 %f0, %f0, %f{};\n", i) : format("  xor.b32 %r0, %r0, %r{};\n", i);
  text += "  mul.wide.u32 %rd1, %i0, 4;\n  add.u64 %rd2, %rd0, %rd1;\n";
  text += format("  st.global.{} [%rd2], {}0;\n  ret;\n}}\n", type, r);
  return text;
}

std::string ptx_of(InstructionLoop::Kind kind) {
  if (kind == InstructionLoop::Kind::integer)
    return loop_ptx(
        "  mad.lo.u32 $, $, 3, %i0;\n  xor.b32 $, $, %i1;\n  shl.b32 $, $, 1;\n  sub.u32 $, $, %i0;\n",
        false);
  return loop_ptx(
      "  fma.rn.f32 $, $, 0f3F000000, 0f3F800000;\n  add.rn.f32 $, $, 0f3F800000;\n"
      "  mul.rn.f32 $, $, 0f3F000000;\n  max.f32 $, $, 0f3E800000;\n",
      true);
}

}  // namespace

struct InstructionLoop::State {
  explicit State(sim::Program p) : program(std::move(p)) {}
  sim::Program program;
  sim::GlobalMemory memory;
  sim::Launch launch;
};

InstructionLoop::InstructionLoop(Kind kind) {
  auto module = std::make_shared<const ptx::Module>(ptx::parse(ptx_of(kind), "bench"));
  state_ = std::make_unique<State>(sim::Program(std::move(module), "loop", sim::Machine{}));
  const uint64_t out = state_->memory.allocate(32 * 4, "out");
  state_->launch.block.x = 32;
  state_->launch.params.resize(sizeof out);
  std::memcpy(state_->launch.params.data(), &out, sizeof out);
}

InstructionLoop::~InstructionLoop() = default;

double InstructionLoop::seconds() {
  sim::RunOptions options;
  options.host_threads = 1;
  const sim::RunStats stats = state_->program.run(state_->launch, state_->memory, options);
  return stats.seconds / static_cast<double>(stats.warp_instructions);
}

}  // namespace tw::bench
