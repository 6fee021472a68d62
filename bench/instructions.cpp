#include "bench/instructions.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/sim/simulator.h"

namespace tw::bench {

namespace {

using Kind = Instruction::Kind;

// What compilers emit for address arithmetic, epilogues and softmax.
constexpr Instruction list[] = {
    {Kind::integer, "mov.b32", "mov.b32 %r#, %odd;"},
    {Kind::integer, "add.s32", "add.s32 %r#, %r#, %lane;"},
    {Kind::integer, "sub.s32", "sub.s32 %r#, %r#, %odd;"},
    {Kind::integer, "add.s64", "add.s64 %w#, %w#, %gmem;"},
    {Kind::integer, "mul.lo.s32", "mul.lo.s32 %r#, %r#, %odd;"},
    {Kind::integer, "mul.hi.u32", "mul.hi.u32 %r#, %r#, %odd;"},
    {Kind::integer, "mad.lo.s32", "mad.lo.s32 %r#, %r#, 3, %lane;"},
    {Kind::integer, "mul.wide.u32", "mul.wide.u32 %w#, %r#, 4;"},
    {Kind::integer, "mad.wide.u32", "mad.wide.u32 %w#, %r#, %odd, %w#;"},
    {Kind::integer, "min.s32", "min.s32 %r#, %r#, %odd;"},
    {Kind::integer, "abs.s32", "abs.s32 %r#, %r#;"},
    {Kind::integer, "and.b32", "and.b32 %r#, %r#, %odd;"},
    {Kind::integer, "xor.b64", "xor.b64 %w#, %w#, %gmem;"},
    {Kind::integer, "lop3.b32", "lop3.b32 %r#, %r#, %lane, %odd, 0xD8;"},
    {Kind::integer, "shl.b32", "shl.b32 %r#, %r#, 1;"},
    {Kind::integer, "shr.s32", "shr.s32 %r#, %r#, %lane;"},
    {Kind::integer, "shf.l.wrap.b32", "shf.l.wrap.b32 %r#, %r#, %odd, 7;"},
    {Kind::integer, "prmt.b32", "prmt.b32 %r#, %r#, %odd, 0x5410;"},
    {Kind::integer, "bfe.u32", "bfe.u32 %r#, %odd, 3, 9;"},
    {Kind::integer, "bfi.b32", "bfi.b32 %r#, %odd, %r#, 3, 9;"},
    {Kind::integer, "popc.b32", "popc.b32 %r#, %odd;"},
    {Kind::integer, "clz.b32", "clz.b32 %r#, %r#;"},
    {Kind::integer, "setp.lt.s32", "setp.lt.s32 %q#, %r#, %odd;"},
    {Kind::integer, "selp.b32", "selp.b32 %r#, %r#, %odd, %q#;"},
    {Kind::integer, "cvt.u64.u32", "cvt.u64.u32 %w#, %r#;"},
    {Kind::integer, "cvt.u32.u64", "cvt.u32.u64 %r#, %w#;"},
    {Kind::integer, "shfl.sync.bfly.b32", "shfl.sync.bfly.b32 %r#, %r#, 1, 31, -1;"},
    {Kind::floating, "add.f32", "add.rn.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "mul.f32", "mul.rn.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "mul.ftz.f32", "mul.rn.ftz.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "fma.f32", "fma.rn.f32 %r#, %r#, 0f3F000000, 0f3F800000;"},
    {Kind::floating, "fma.ftz.f32", "fma.rn.ftz.f32 %r#, %r#, 0f3F000000, 0f3F800000;"},
    {Kind::floating, "fma.f32x2", "fma.rn.f32x2 %w#, %w#, %pair, %pair;"},
    {Kind::floating, "max.f32", "max.f32 %r#, %r#, 0f3E800000;"},
    {Kind::floating, "max.ftz.f32", "max.ftz.f32 %r#, %r#, 0f3E800000;"},
    {Kind::floating, "neg.f32", "neg.f32 %r#, %r#;"},
    {Kind::floating, "setp.gt.f32", "setp.gt.f32 %q#, %r#, 0f3F800000;"},
    {Kind::floating, "ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %r#, 0f3EAAAAAB;"},
    {Kind::floating, "rcp.approx.ftz.f32", "rcp.approx.ftz.f32 %r#, 0f40400000;"},
    {Kind::floating, "cvt.rn.f32.s32", "cvt.rn.f32.s32 %r#, %odd;"},
    {Kind::floating, "cvt.rzi.s32.f32", "cvt.rzi.s32.f32 %r#, 0f42C8CCCD;"},
    {Kind::floating, "cvt.rn.f16.f32", "cvt.rn.f16.f32 %h#, %r#;"},
    {Kind::floating, "cvt.f32.f16", "cvt.f32.f16 %r#, %h#;"},
    {Kind::floating, "cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 %r#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %r#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "add.f16x2", "add.rn.f16x2 %r#, %r#, %half;"},
    {Kind::floating, "mul.f16x2", "mul.rn.f16x2 %r#, %r#, %half;"},
    {Kind::floating, "fma.f16x2", "fma.rn.f16x2 %r#, %r#, %half, %half;"},
    {Kind::floating, "fma.bf16x2", "fma.rn.bf16x2 %r#, %r#, %half, %half;"},
    {Kind::floating, "max.f16x2", "max.f16x2 %r#, %r#, %half;"},
    {Kind::memory, "ld.shared.b32", "ld.shared.b32 %r#, [%word];"},
    {Kind::memory, "ld.shared.v4.b32", "ld.shared.v4.b32 {%r#, %x, %y, %z}, [%smem];"},
    {Kind::memory, "st.shared.b32", "st.shared.b32 [%word], %r#;"},
    {Kind::memory, "st.shared.v4.b32", "st.shared.v4.b32 [%smem], {%r#, %lane, %odd, %r#};"},
    {Kind::memory, "ld.global.v4.b32", "ld.global.v4.b32 {%r#, %x, %y, %z}, [%gmem];"},
    {Kind::memory, "st.global.v4.b32", "st.global.v4.b32 [%gmem], {%r#, %lane, %odd, %r#};"},
};

constexpr int iterations = 1000, unrolled = 16;

std::string loop_ptx(std::string_view instruction) {
  std::string text =
      ".version 8.7\n.target sm_100a\n.address_size 64\n"
      ".visible .entry loop(.param .u64 out) {\n"
      "  .shared .align 16 .b8 buffer[512];\n"
      "  .reg .pred %more, %q<16>;\n  .reg .b16 %h<16>;\n  .reg .b32 %r<16>, %i, %lane, %odd, %half, %smem, "
      "%word, "
      "%x, %y, %z;\n"
      "  .reg .b64 %w<16>, %gmem, %base, %pair;\n"
      "  ld.param.u64 %base, [out];\n  mov.u32 %lane, %tid.x;\n  mov.u32 %i, 0;\n"
      "  mad.lo.u32 %odd, %lane, 0x9E3779B1, 12345;\n  mov.b32 %half, 0x3C003800;\n  mov.b64 %pair, "
      "0x3F8000003F000000;\n"
      "  mov.b32 %smem, buffer;\n  mad.lo.u32 %word, %lane, 4, %smem;\n  mad.lo.u32 %smem, %lane, 16, "
      "%smem;\n"
      "  mad.wide.u32 %gmem, %lane, 16, %base;\n"
      "  st.shared.v4.b32 [%smem], {%lane, %odd, %lane, %odd};\n"
      "  st.global.v4.b32 [%gmem], {%lane, %odd, %lane, %odd};\n";
  for (int i = 0; i < unrolled; ++i)
    text += format(
        "  cvt.rn.f32.u32 %r{0}, %lane;\n  mov.b64 %w{0}, %pair;\n  mov.b16 %h{0}, 0x3C00;\n"
        "  setp.lt.u32 %q{0}, %lane, {0};\n",
        i);
  text += "again:\n";
  for (int i = 0; i < unrolled; ++i) {
    std::string body(instruction);
    for (size_t at; (at = body.find('#')) != std::string::npos;) body.replace(at, 1, std::to_string(i));
    text += "  " + body + "\n";
  }
  text += format("  add.u32 %i, %i, 1;\n  setp.lt.u32 %more, %i, {};\n  @%more bra again;\n  ret;\n}}\n",
                 iterations);
  return text;
}

}  // namespace

std::span<const Instruction> instructions() { return list; }

struct InstructionLoop::State {
  explicit State(sim::Program p) : program(std::move(p)) {}
  sim::Program program;
  sim::GlobalMemory memory;
  sim::Launch launch;
};

InstructionLoop::InstructionLoop(const Instruction& instruction) {
  auto module = std::make_shared<const ptx::Module>(ptx::parse(loop_ptx(instruction.text), "bench"));
  state_ = std::make_unique<State>(sim::Program(std::move(module), "loop", sim::Machine{}));
  const uint64_t out = state_->memory.allocate(32 * 16, "out");
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
