// What a user reads about PTX that is wrong, or right but not modelled. The parser stops at the exact token,
// the simulator before anything runs.
#include <gtest/gtest.h>

#include "tests/error/message.h"
#include "tilewright/base/format.h"
#include "tilewright/ptx/module.h"
#include "tilewright/runtime/device.h"

namespace {

using tw::testing::text_of;

constexpr std::string_view head = ".version 8.7\n.target sm_100a\n.address_size 64\n";

std::string parse(const std::string& text) {
  return text_of([&] { tw::ptx::parse(text, "user.ptx"); });
}
std::string kernel(std::string_view body) {  // `body` is line 9
  return tw::format(
      "{}.visible .entry k()\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n{}\nret;\n}}\n",
      head, body);
}

TEST(PtxError, Truncated) {
  const std::string whole = kernel("add.s32 %r0, %r1, %r2;");
  EXPECT_EQ(parse(whole), "no error");
  EXPECT_EQ(parse(whole.substr(0, whole.find("%r2;"))),
            "user.ptx:9:19: error: expected an operand, but the text ends here");
  EXPECT_EQ(
      parse(whole.substr(0, whole.find("ret;"))),
      "user.ptx:10:1: error: expected an instruction, a label, a declaration or }, but the text ends here");
  EXPECT_EQ(parse(std::string(head.substr(0, 8))), "user.ptx:1:9: error: expected a version such as 9.0");
  EXPECT_EQ(parse(""), "user.ptx:1:1: error: expected .version, but the text ends here");
}

TEST(PtxError, Garbage) {
  EXPECT_EQ(parse("\x7f\x45LF\x02\x01"), "user.ptx:1:1: error: byte 0x7F is not a character of PTX");
  EXPECT_EQ(parse("#include <cuda.h>\n"), "user.ptx:1:1: error: expected .version, found '#'");
  EXPECT_EQ(parse(std::string(head) + "int main() { return 0; }\n"),
            "user.ptx:4:1: error: expected a function, a variable or a directive, found 'int'");
}

TEST(PtxError, UnknownOpcode) {
  EXPECT_EQ(parse(kernel("fmaa.rn.f32 %f0, %f1, %f2, %f3;")),
            "user.ptx:9:1: error: unknown opcode 'fmaa'; did you mean 'fma'?");
}

TEST(PtxError, ModifierThatDoesNotFit) {
  EXPECT_EQ(parse(kernel("cvt.rn.f16.q32 %r0, %f1;")),
            "user.ptx:9:11: error: '.q32' does not fit here in 'cvt.rn.f16.q32'; expected .u8 .u16 .u32 .u64 "
            ".s8 .s16 .s32 .s64 .bf16 .f16 .f32 .f64; nearest: cvt{.rnd}{.ftz}{.sat}.dtype.atype d, a; "
            "cvt.rnd{.relu}{.satfinite}.dtype.atype d, a");
}

TEST(PtxError, UndeclaredRegister) {
  EXPECT_EQ(parse(kernel("add.s32 %r0, %r1, %r9;")), "user.ptx:9:19: error: register '%r9' is not declared");
}

TEST(PtxError, OperandThatDoesNotFit) {
  EXPECT_EQ(parse(kernel("add.s32 %r0, %r1;")),
            "user.ptx:9:17: error: 'add.s32': expected a register or constant of type s32 (b) here\n"
            "note: form: add.type d, a, b");
  EXPECT_EQ(
      parse(kernel("shfl.sync.bfly.b32 %r0, %r1, 1, 31;")),
      "user.ptx:9:35: error: 'shfl.sync.bfly.b32': expected a register or constant of type u32 (membermask) "
      "here\nnote: form: shfl.sync.mode.type d[|q], a, b, c, membermask");
}

TEST(PtxError, LabelThatIsNotThere) {
  EXPECT_EQ(parse(kernel("bra END;")), "user.ptx:9:5: error: there is no label 'END' in this function");
}

TEST(PtxError, TexturesAreOutsideOfTheDialect) {
  EXPECT_EQ(parse(kernel("tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0}];")),
            "user.ptx:9:1: error: 'tex': textures and surfaces are not supported");
}

std::string run(const std::string& text, const char* device = "sim:b200") {
  return text_of([&] {
    const auto module = tw::ptx::parse(text, "user.ptx");
    tw::sim::Launch launch;
    launch.block = {32, 1, 1};
    tw::Device::open(device)->launch_ptx(module, "k", launch);
  });
}

TEST(SimulatedPtxError, InstructionThatIsNotModelled) {
  EXPECT_EQ(run(kernel("multimem.ld_reduce.relaxed.sys.global.add.f32 %f0, [%rd0];")),
            "user.ptx:9:1: not modelled: multimem.ld_reduce.relaxed.sys.global.add.f32 (line 9 of the PTX): "
            "this instruction is not modelled by the simulator");
}

// The engine moves whole 16 bytes of a row: an H200 calls any other coordinate an illegal instruction.
TEST(SimulatedPtxError, TensorCopyThatBeginsInsideOf16Bytes) {
  auto store_at = [](int column) {
    return text_of([&] {
      const auto module = tw::ptx::parse(
          tw::format("{}.visible .entry k(.param .align 64 .b8 map[128])\n{{\n.reg .b64 %rd<4>;\n"
                     ".shared .align 128 .b8 tile[512];\nmov.b64 %rd0, map;\ncvta.param.u64 %rd0, %rd0;\n"
                     "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd0, {{{}, 4}}], [tile];\n"
                     "ret;\n}}\n",
                     head, column),
          "user.ptx");
      auto device = tw::Device::open("sim:b200");
      const tw::Tensor d = device->tensor(tw::DType::f16, {16, 64}, "d");
      const auto map = device->tensor_map({.type = tw::sim::TensorMapSpec::Type::f16,
                                           .rank = 2,
                                           .address = d.address(),
                                           .dims = {64, 16},
                                           .strides = {2, 128},
                                           .box = {32, 8}});
      tw::sim::Launch launch;
      launch.block = {1, 1, 1};
      launch.params.assign(map.begin(), map.end());
      device->launch_ptx(module, "k", launch);
      device->synchronize();
    });
  };
  EXPECT_EQ(
      store_at(13),
      "user.ptx:10:1: fault: coordinate 0 is 13, with elements of f16 26 bytes: the innermost coordinate "
      "of a tensor copy must be a multiple of 16 bytes\n"
      "  at cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group (line 10 of the PTX)\n"
      "  in CTA (0, 0, 0), warp 0, lane 0\n"
      "note: in k, grid [1, 1, 1], block [1, 1, 1], cluster [1, 1, 1], 0 bytes of dynamic shared memory");
}

TEST(SimulatedPtxError, RegisterOfTheWrongSize) {
  EXPECT_EQ(run(kernel("mul.lo.s32 %r0, %rd1, 2;")),
            "user.ptx:9:1: error: mul.lo.s32: register %rd1 has 8 bytes, the operand needs 4");
}

TEST(SimulatedPtxError, ModuleOfAnotherArchitecture) {
  EXPECT_EQ(run(kernel(""), "sim:b200"), "no error");
  EXPECT_EQ(run(kernel(""), "sim:h200"),
            "error: k cannot run on sim:h200: sm_100a is architecture-specific: it runs on that architecture "
            "alone, not on sm_90a; compile it for sm_90a");
  std::string newer = kernel("");
  newer.replace(newer.find("sm_100a"), 7, "sm_120");
  EXPECT_EQ(run(newer),
            "error: k cannot run on sim:b200: sm_120 runs on that architecture and later ones, not on the "
            "older sm_100a; compile it for sm_100a");
}

}  // namespace
