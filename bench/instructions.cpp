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
    {Kind::integer, "add.u16", "add.u16 %h#, %h#, 3;"},
    {Kind::integer, "add.u16x2", "add.u16x2 %r#, %r#, %odd;"},
    {Kind::integer, "add.cc.u32", "add.cc.u32 %r#, %r#, %odd;"},
    {Kind::integer, "addc.u32", "addc.u32 %r#, %r#, %odd;"},
    {Kind::integer, "neg.s32", "neg.s32 %r#, %r#;"},
    {Kind::integer, "add.s64", "add.s64 %w#, %w#, %gmem;"},
    {Kind::integer, "mul.lo.s32", "mul.lo.s32 %r#, %r#, %odd;"},
    {Kind::integer, "mul.lo.s64", "mul.lo.s64 %w#, %w#, %gmem;"},
    {Kind::integer, "mul.wide.s16", "mul.wide.s16 %r#, %h#, 7;"},
    {Kind::integer, "mul24.lo.s32", "mul24.lo.s32 %r#, %r#, %odd;"},
    {Kind::integer, "mul.hi.u32", "mul.hi.u32 %r#, %r#, %odd;"},
    {Kind::integer, "mul.hi.s32", "mul.hi.s32 %r#, %r#, %odd;"},
    {Kind::integer, "mad.hi.u32", "mad.hi.u32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "mad.lo.s32", "mad.lo.s32 %r#, %r#, 3, %lane;"},
    {Kind::integer, "mul.wide.u32", "mul.wide.u32 %w#, %r#, 4;"},
    {Kind::integer, "mad.wide.u32", "mad.wide.u32 %w#, %r#, %odd, %w#;"},
    {Kind::integer, "mad.lo.s64", "mad.lo.s64 %w#, %w#, %gmem, %w#;"},
    {Kind::integer, "dp4a.s32.s32", "dp4a.s32.s32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "dp2a.lo.s32.s32", "dp2a.lo.s32.s32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "sad.u32", "sad.u32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "min.s32", "min.s32 %r#, %r#, %odd;"},
    {Kind::integer, "max.u32", "max.u32 %r#, %r#, %odd;"},
    {Kind::integer, "max.s64", "max.s64 %w#, %w#, %gmem;"},
    {Kind::integer, "max.s16x2", "max.s16x2 %r#, %r#, %odd;"},
    {Kind::integer, "abs.s32", "abs.s32 %r#, %r#;"},
    {Kind::integer, "and.b32", "and.b32 %r#, %r#, %odd;"},
    {Kind::integer, "not.b32", "not.b32 %r#, %r#;"},
    {Kind::integer, "cnot.b32", "cnot.b32 %r#, %r#;"},
    {Kind::integer, "xor.b64", "xor.b64 %w#, %w#, %gmem;"},
    {Kind::integer, "lop3.b32", "lop3.b32 %r#, %r#, %lane, %odd, 0xD8;"},
    {Kind::integer, "and.pred", "and.pred %q#, %q#, %more;"},
    {Kind::integer, "not.pred", "not.pred %q#, %q#;"},
    {Kind::integer, "shl.b32", "shl.b32 %r#, %r#, 1;"},
    {Kind::integer, "shr.s32", "shr.s32 %r#, %r#, %lane;"},
    {Kind::integer, "shl.b64", "shl.b64 %w#, %w#, 1;"},
    {Kind::integer, "shr.u64", "shr.u64 %w#, %w#, 3;"},
    {Kind::integer, "shl.b16", "shl.b16 %h#, %h#, 1;"},
    {Kind::integer, "shf.r.clamp.b32", "shf.r.clamp.b32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "shf.l.wrap.b32", "shf.l.wrap.b32 %r#, %r#, %odd, 7;"},
    {Kind::integer, "prmt.b32", "prmt.b32 %r#, %r#, %odd, 0x5410;"},
    {Kind::integer, "prmt.b32 by register", "prmt.b32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "prmt.b32.f4e", "prmt.b32.f4e %r#, %r#, %odd, %lane;"},
    {Kind::integer, "bfe.u32", "bfe.u32 %r#, %odd, 3, 9;"},
    {Kind::integer, "bfe.s32", "bfe.s32 %r#, %odd, %lane, 9;"},
    {Kind::integer, "bfe.u64", "bfe.u64 %w#, %gmem, 3, 9;"},
    {Kind::integer, "bfi.b32", "bfi.b32 %r#, %odd, %r#, 3, 9;"},
    {Kind::integer, "bmsk.clamp.b32", "bmsk.clamp.b32 %r#, %lane, 9;"},
    {Kind::integer, "szext.wrap.s32", "szext.wrap.s32 %r#, %odd, 9;"},
    {Kind::integer, "brev.b32", "brev.b32 %r#, %r#;"},
    {Kind::integer, "bfind.u32", "bfind.u32 %r#, %odd;"},
    {Kind::integer, "popc.b32", "popc.b32 %r#, %odd;"},
    {Kind::integer, "popc.b64", "popc.b64 %r#, %gmem;"},
    {Kind::integer, "clz.b64", "clz.b64 %r#, %gmem;"},
    {Kind::integer, "clz.b32", "clz.b32 %r#, %r#;"},
    {Kind::integer, "setp.lt.s32", "setp.lt.s32 %q#, %r#, %odd;"},
    {Kind::integer, "setp.lt.and.u32", "setp.lt.and.u32 %q#, %r#, %odd, %more;"},
    {Kind::integer, "setp.eq.s64", "setp.eq.s64 %q#, %w#, %gmem;"},
    {Kind::integer, "set.lt.u32.s32", "set.lt.u32.s32 %r#, %r#, %odd;"},
    {Kind::integer, "slct.s32.s32", "slct.s32.s32 %r#, %r#, %odd, %lane;"},
    {Kind::integer, "selp.b32", "selp.b32 %r#, %r#, %odd, %q#;"},
    {Kind::integer, "selp.b64", "selp.b64 %w#, %w#, %gmem, %q#;"},
    {Kind::integer, "cvt.u64.u32", "cvt.u64.u32 %w#, %r#;"},
    {Kind::integer, "cvt.u32.u64", "cvt.u32.u64 %r#, %w#;"},
    {Kind::integer, "cvt.s64.s32", "cvt.s64.s32 %w#, %r#;"},
    {Kind::integer, "cvt.u32.u16", "cvt.u32.u16 %r#, %h#;"},
    {Kind::integer, "cvt.u16.u32", "cvt.u16.u32 %h#, %r#;"},
    {Kind::integer, "cvt.s32.s8", "cvt.s32.s8 %r#, %r#;"},
    {Kind::integer, "cvt.sat.u8.s32", "cvt.sat.u8.s32 %r#, %r#;"},
    {Kind::integer, "mov.b64 packed", "mov.b64 %w#, {%r#, %odd};"},
    {Kind::integer, "mov.b64 unpacked", "mov.b64 {%r#, %x}, %w#;"},
    {Kind::integer, "mov.b32 packed", "mov.b32 %r#, {%h#, %h#};"},
    {Kind::integer, "mov.b32 unpacked", "mov.b32 {%h#, _}, %r#;"},
    {Kind::integer, "vote.sync.ballot.b32", "vote.sync.ballot.b32 %r#, %q#, -1;"},
    {Kind::integer, "redux.sync.add.s32", "redux.sync.add.s32 %r#, %odd, -1;"},
    {Kind::integer, "shfl.sync.bfly.b32", "shfl.sync.bfly.b32 %r#, %r#, 1, 31, -1;"},
    {Kind::integer, "shfl.sync.idx.b32", "shfl.sync.idx.b32 %r#, %r#, %lane, 31, -1;"},
    {Kind::floating, "add.f32", "add.rn.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "sub.f32", "sub.rn.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "add.rz.f32", "add.rz.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "add.f64", "add.rn.f64 %w#, %w#, %w#;"},
    {Kind::floating, "mul.f32", "mul.rn.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "mul.ftz.f32", "mul.rn.ftz.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "fma.f32", "fma.rn.f32 %r#, %r#, 0f3F000000, 0f3F800000;"},
    {Kind::floating, "fma.f64", "fma.rn.f64 %w#, %w#, %pair, %pair;"},
    {Kind::floating, "fma.rz.f32", "fma.rz.f32 %r#, %r#, 0f3F000000, 0f3F800000;"},
    {Kind::floating, "fma.ftz.f32", "fma.rn.ftz.f32 %r#, %r#, 0f3F000000, 0f3F800000;"},
    {Kind::floating, "fma.f32x2", "fma.rn.f32x2 %w#, %w#, %pair, %pair;"},
    {Kind::floating, "add.f32x2", "add.rn.f32x2 %w#, %w#, %pair;"},
    {Kind::floating, "mul.ftz.f32x2", "mul.rn.ftz.f32x2 %w#, %w#, %pair;"},
    {Kind::floating, "max.f32", "max.f32 %r#, %r#, 0f3E800000;"},
    {Kind::floating, "max.ftz.f32", "max.ftz.f32 %r#, %r#, 0f3E800000;"},
    {Kind::floating, "max.NaN.f32", "max.NaN.f32 %r#, %r#, 0f3E800000;"},
    {Kind::floating, "max.f32 of three", "max.f32 %r#, %r#, 0f3E800000, 0f3F800000;"},
    {Kind::floating, "min.xorsign.abs.f32", "min.xorsign.abs.f32 %r#, %r#, 0f3E800000;"},
    {Kind::floating, "neg.f32", "neg.f32 %r#, %r#;"},
    {Kind::floating, "abs.f32", "abs.f32 %r#, %r#;"},
    {Kind::floating, "copysign.f32", "copysign.f32 %r#, %lane, %r#;"},
    {Kind::floating, "testp.finite.f32", "testp.finite.f32 %q#, %r#;"},
    {Kind::floating, "setp.gt.f32", "setp.gt.f32 %q#, %r#, 0f3F800000;"},
    {Kind::floating, "set.gt.f32.f32", "set.gt.f32.f32 %r#, %r#, 0f3F800000;"},
    {Kind::floating, "ex2.approx.ftz.f32", "ex2.approx.ftz.f32 %r#, 0f3EAAAAAB;"},
    {Kind::floating, "ex2.approx.f32", "ex2.approx.f32 %r#, %odd;"},
    {Kind::floating, "lg2.approx.ftz.f32", "lg2.approx.ftz.f32 %r#, %r#;"},
    {Kind::floating, "sin.approx.ftz.f32", "sin.approx.ftz.f32 %r#, 0f40400000;"},
    {Kind::floating, "cos.approx.ftz.f32", "cos.approx.ftz.f32 %r#, 0f40400000;"},
    {Kind::floating, "tanh.approx.f32", "tanh.approx.f32 %r#, 0f3EAAAAAB;"},
    {Kind::floating, "rsqrt.approx.ftz.f32", "rsqrt.approx.ftz.f32 %r#, 0f40400000;"},
    {Kind::floating, "sqrt.approx.ftz.f32", "sqrt.approx.ftz.f32 %r#, 0f40400000;"},
    {Kind::floating, "rcp.approx.ftz.f32", "rcp.approx.ftz.f32 %r#, 0f40400000;"},
    {Kind::floating, "div.full.ftz.f32", "div.full.ftz.f32 %r#, 0f3F800000, 0f40400000;"},
    {Kind::floating, "div.rn.f32", "div.rn.f32 %r#, 0f3F800000, 0f40400000;"},
    {Kind::floating, "rcp.rn.f32", "rcp.rn.f32 %r#, 0f40400000;"},
    {Kind::floating, "sqrt.rn.f32", "sqrt.rn.f32 %r#, 0f40400000;"},
    {Kind::floating, "cvt.rn.f32.s32", "cvt.rn.f32.s32 %r#, %odd;"},
    {Kind::floating, "cvt.rn.f32.u32", "cvt.rn.f32.u32 %r#, %odd;"},
    {Kind::floating, "cvt.f64.f32", "cvt.f64.f32 %w#, %r#;"},
    {Kind::floating, "cvt.rn.f32.f64", "cvt.rn.f32.f64 %r#, %pair;"},
    {Kind::floating, "cvt.rzi.s32.f32", "cvt.rzi.s32.f32 %r#, 0f42C8CCCD;"},
    {Kind::floating, "cvt.rzi.u32.f32", "cvt.rzi.u32.f32 %r#, 0f42C8CCCD;"},
    {Kind::floating, "cvt.rni.s32.f32", "cvt.rni.s32.f32 %r#, 0f42C8CCCD;"},
    {Kind::floating, "cvt.rmi.f32.f32", "cvt.rmi.f32.f32 %r#, 0f42C8CCCD;"},
    {Kind::floating, "cvt.sat.f32.f32", "cvt.sat.f32.f32 %r#, %r#;"},
    {Kind::floating, "cvt.rn.f16.f32", "cvt.rn.f16.f32 %h#, %r#;"},
    {Kind::floating, "cvt.f32.f16", "cvt.f32.f16 %r#, %h#;"},
    {Kind::floating, "cvt.rn.bf16.f32", "cvt.rn.bf16.f32 %h#, %r#;"},
    {Kind::floating, "cvt.f32.bf16", "cvt.f32.bf16 %r#, %h#;"},
    {Kind::floating, "cvt.rna.tf32.f32", "cvt.rna.tf32.f32 %r#, 0f3F8CCCCD;"},
    {Kind::floating, "cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 %r#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 %r#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "cvt.rn.relu.f16x2.f32", "cvt.rn.relu.f16x2.f32 %r#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "cvt.rn.satfinite.e4m3x2.f32",
     "cvt.rn.satfinite.e4m3x2.f32 %h#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "cvt.rn.satfinite.e5m2x2.f32",
     "cvt.rn.satfinite.e5m2x2.f32 %h#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "cvt.rn.f16x2.e4m3x2", "cvt.rn.f16x2.e4m3x2 %r#, %h#;"},
    {Kind::floating, "cvt.rn.satfinite.e4m3x2.f16x2", "cvt.rn.satfinite.e4m3x2.f16x2 %h#, %r#;"},
    {Kind::floating, "cvt.rn.satfinite.e2m1x2.f32",
     "cvt.rn.satfinite.e2m1x2.f32 %b#, 0f3F8CCCCD, 0f3EAAAAAB;"},
    {Kind::floating, "add.f16x2", "add.rn.f16x2 %r#, %r#, %half;"},
    {Kind::floating, "add.f16", "add.rn.f16 %h#, %h#, %h#;"},
    {Kind::floating, "add.bf16x2", "add.rn.bf16x2 %r#, %r#, %half;"},
    {Kind::floating, "sub.f16x2", "sub.rn.f16x2 %r#, %r#, %half;"},
    {Kind::floating, "mul.f16x2", "mul.rn.f16x2 %r#, %r#, %half;"},
    {Kind::floating, "mul.bf16x2", "mul.rn.bf16x2 %r#, %r#, %half;"},
    {Kind::floating, "fma.f16x2", "fma.rn.f16x2 %r#, %r#, %half, %half;"},
    {Kind::floating, "fma.relu.f16x2", "fma.rn.relu.f16x2 %r#, %r#, %half, %half;"},
    {Kind::floating, "fma.ftz.f16x2", "fma.rn.ftz.f16x2 %r#, %r#, %half, %half;"},
    {Kind::floating, "fma.f16", "fma.rn.f16 %h#, %h#, %h#, %h#;"},
    {Kind::floating, "fma.bf16x2", "fma.rn.bf16x2 %r#, %r#, %half, %half;"},
    {Kind::floating, "max.f16x2", "max.f16x2 %r#, %r#, %half;"},
    {Kind::floating, "max.NaN.bf16x2", "max.NaN.bf16x2 %r#, %r#, %half;"},
    {Kind::floating, "neg.f16x2", "neg.f16x2 %r#, %r#;"},
    {Kind::floating, "setp.gt.f16", "setp.gt.f16 %q#, %h#, %h#;"},
    {Kind::floating, "ex2.approx.f16x2", "ex2.approx.f16x2 %r#, %half;"},
    {Kind::floating, "tanh.approx.f16x2", "tanh.approx.f16x2 %r#, %half;"},
    {Kind::floating, "tanh.approx.bf16x2", "tanh.approx.bf16x2 %r#, %half;"},
    {Kind::memory, "ld.shared.b32", "ld.shared.b32 %r#, [%word];"},
    {Kind::memory, "ld.shared.v4.b32", "ld.shared.v4.b32 {%r#, %x, %y, %z}, [%smem];"},
    {Kind::memory, "st.shared.b32", "st.shared.b32 [%word], %r#;"},
    {Kind::memory, "st.shared.v4.b32", "st.shared.v4.b32 [%smem], {%r#, %lane, %odd, %r#};"},
    {Kind::memory, "ld.global.v4.b32", "ld.global.v4.b32 {%r#, %x, %y, %z}, [%gmem];"},
    {Kind::memory, "st.global.v4.b32", "st.global.v4.b32 [%gmem], {%r#, %lane, %odd, %r#};"},
};

// The three instructions of loop control, which are cheap ones, are a twentieth of what is measured.
constexpr int iterations = 400, unrolled = 64, accumulators = 16;

std::string loop_ptx(std::string_view instruction) {
  std::string text =
      ".version 8.7\n.target sm_100a\n.address_size 64\n"
      ".visible .entry loop(.param .u64 out) {\n"
      "  .shared .align 16 .b8 buffer[512];\n"
      "  .reg .pred %more, %q<16>;\n  .reg .b16 %h<16>;\n  .reg .b8 %b<16>;\n  .reg .b32 %r<16>, %i, %lane, "
      "%odd, %half, %smem, "
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
  for (int i = 0; i < accumulators; ++i)
    text += format(
        "  cvt.rn.f32.u32 %r{0}, %lane;\n  mov.b64 %w{0}, %pair;\n  mov.b16 %h{0}, 0x3C00;\n"
        "  setp.lt.u32 %q{0}, %lane, {0};\n",
        i);
  text += "again:\n";
  for (int i = 0; i < unrolled; ++i) {
    std::string body(instruction);
    for (size_t at; (at = body.find('#')) != std::string::npos;)
      body.replace(at, 1, std::to_string(i % accumulators));
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
