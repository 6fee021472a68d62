#include <gtest/gtest.h>

#include <random>

#include "tilewright/base/error.h"
#include "tilewright/ptx/labels.h"
#include "tilewright/ptx/opcode.h"
#include "tilewright/ptx/verify.h"

namespace tw::ptx {
namespace {

// `body` inside of a kernel with a few registers; its first line is line 8.
std::string kernel(std::string_view body) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n"
         ".visible .entry k(.param .u64 p0, .param .align 8 .b8 p1[16]) {\n"
         ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n"
         ".reg .f64 %fd<2>; .reg .b128 %q; .reg .s16 %s<2>; .reg .u32 %u<2>;\n" +
         std::string(body) + "\n}\n";
}

const Function& function(const Module& m) { return *m.function("k"); }
std::vector<const Instruction*> instructions(const Module& m) {
  std::vector<const Instruction*> out;
  for (const Statement& s : function(m).body)
    if (const auto* i = std::get_if<Instruction>(&s)) out.push_back(i);
  return out;
}
Instruction one(std::string_view text) {
  const Module m = parse(kernel(text), "one.ptx");
  const auto all = instructions(m);
  EXPECT_EQ(all.size(), 1u);
  return *all.at(0);
}

// The message of the user error that `text` gives, "no error" if none.
std::string error_of(std::string_view text, void (*then)(const Module&) = nullptr) {
  try {
    const Module m = parse(text, "bad.ptx");
    if (then) then(m);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    return to_string(e.loc()) + ": " + e.message();
  }
  return "no error";
}
std::string body_error(std::string_view body) { return error_of(kernel(body)); }
std::string verify_error(std::string_view body) { return error_of(kernel(body), verify); }

TEST(Parse, Instruction) {
  const Instruction i =
      one("@!%p1 ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%r0, %r1, %r2, %r3}, [%rd1+-16];");
  EXPECT_EQ(i.opcode(), "ld");
  EXPECT_EQ(i.text(), "ld.global.nc.L1::no_allocate.L2::128B.v4.b32");
  EXPECT_TRUE(i.has("nc"));
  EXPECT_EQ(modifier(i, "space"), "global");
  EXPECT_EQ(modifier(i, "l1"), "L1::no_allocate");
  EXPECT_EQ(modifier(i, "vec"), "v4");
  EXPECT_EQ(modifier(i, "cop"), "");
  ASSERT_TRUE(i.guard);
  EXPECT_TRUE(i.guard->negated);
  EXPECT_EQ(i.operands[1].as<Address>()->offset, -16);
  EXPECT_EQ(i.line, 8u);
  EXPECT_EQ(to_string(i.loc), "one.ptx:8:1");
}

TEST(Parse,
     ConstantsFollowTheIsa) {  // "Integer Constants", "Floating-Point Constants", "Constant Expressions"
  const auto bits = [](std::string_view text) {
    return one("mov.b64 %rd1, " + std::string(text) + ";").operands[1].as<Immediate>()->bits;
  };
  EXPECT_EQ(bits("0x1F"), 31u);
  EXPECT_EQ(bits("0b101"), 5u);
  EXPECT_EQ(bits("017"), 15u);
  EXPECT_EQ(bits("-1"), ~uint64_t(0));
  EXPECT_EQ(bits("0xFFFFFFFFFFFFFFFFU"), ~uint64_t(0));
  EXPECT_EQ(bits("(1 << 4) + 3 * 2 - -1"), 23u);
  EXPECT_EQ(bits("-7 / 2"), uint64_t(-3));
  EXPECT_EQ(bits("~0 & 0xF0 | 3"), 0xF3u);
  EXPECT_EQ(bits("WARP_SZ * 2"), 64u);
  EXPECT_EQ(one("mov.f32 %f1, 0fBF800000;").operands[1].as<Immediate>()->kind, Immediate::Kind::f32);
  EXPECT_EQ(one("mov.f32 %f1, 0fBF800000;").operands[1].as<Immediate>()->bits, 0xBF800000u);
  EXPECT_EQ(one("mov.f64 %fd1, 1.5;").operands[1].as<Immediate>()->bits, 0x3FF8000000000000u);
}

TEST(Parse, ModifiersMayBePermuted) {
  // ptxas takes them in any order; libraries write "atom.add.release.gpu.global.s32".
  EXPECT_EQ(modifier(one("atom.add.release.gpu.global.s32 %r1, [%rd1], 1;"), "sem"), "release");
  EXPECT_EQ(modifier(one("ld.v2.global.b32 {%r1, _}, [%rd1];"), "space"), "global");
  // The order of the types still counts.
  EXPECT_EQ(modifier(one("cvt.f32.rn.s32 %f1, %r1;"), "dtype"), "f32");
}

TEST(Parse, ScopesShadow) {
  const Module m = parse(
      kernel(
          "mov.b32 %r1, 1;\n{ .reg .b64 %r1; mov.b64 %r1, 2; { .reg .pred q<2>; setp.eq.u32 q1, %u1, 0; } }\n"
          "mov.b32 %r1, 3;"),
      "scopes.ptx");
  const auto all = instructions(m);
  const auto type_of = [&](size_t i) { return function(m)[all[i]->operands[0].as<RegOperand>()->reg].type; };
  EXPECT_EQ(type_of(0), Type::b32);
  EXPECT_EQ(type_of(1), Type::b64);
  EXPECT_EQ(type_of(2), Type::pred);
  EXPECT_EQ(all[0]->operands[0], all[3]->operands[0]);
}

TEST(Parse, LabelsOfScopes) {
  const Module m = parse(kernel("{ L: bra L; }\n{ L: @%p1 bra D; bra L; D: }\nts: .branchtargets A, B;\n"
                                "brx.idx %r1, ts;\nA: { bra B; } B: ret;"),
                         "labels.ptx");
  const Function& f = function(m);
  const Labels labels(f);
  std::vector<std::vector<size_t>> targets;
  for (size_t i = 0; i < f.body.size(); ++i)
    if (const auto* inst = std::get_if<Instruction>(&f.body[i]); inst && inst->form->branches)
      targets.push_back(labels.targets(i));
  ASSERT_EQ(targets.size(), 5u);
  const auto label = [&](size_t statement) { return std::get<Label>(f.body[statement]).name; };
  EXPECT_EQ(label(targets[0][0]), "L");
  EXPECT_EQ(label(targets[2][0]), "L");
  EXPECT_NE(targets[0][0], targets[2][0]);  // each scope has its own
  EXPECT_EQ(label(targets[1][0]), "D");
  ASSERT_EQ(targets[3].size(), 2u);
  EXPECT_EQ(label(targets[3][0]), "A");
  EXPECT_EQ(label(targets[3][1]), "B");
  EXPECT_EQ(targets[4][0], targets[3][1]);
}

TEST(Parse, ModuleParts) {
  const Module m = parse(R"(// a header
.version 8.7
.target sm_90a, debug
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.visible .global .attribute(.managed) .align 8 .f64 x = 0d3FD0000000000000;
.global .align 4 .f32 m[2][3] = {{1.0, 2.0}, {0f40800000}};
.const .align 8 .u64 t[2] = {generic(x)+8, m};
/* a block
   comment */
.visible .entry __launch(.param .u64 .ptr .global .align 16 p, .param .b32 n)
.maxntid 128, 1, 1
.minnctapersm 2
.reqnctapercluster 2
.noreturn
{
  .reg .b32 %r<3>; // counted
  .local .align 8 .b8 depot[16];
  .loc 2 7 3
  ld.param.b32 %r1, [n];
  .loc 1 9 1, function_name $L__info+4, inlined_at 2 8 5
  { .param .b64 a; st.param.b64 [a], 1; call.uni vprintf, (a, a); }
  ret;
}
.file 1 "inner.h"
.file 2 "kernel.cu", 1700000000, 42
.section .debug_str {
s: .b8 1, 2
}
)",
                         "parts.ptx");
  EXPECT_EQ(m.version_minor, 7);
  EXPECT_EQ(m.target, (std::vector<std::string>{"sm_90a", "debug"}));
  ASSERT_EQ(m.entries().size(), 1u);
  const Function& f = *m.entries()[0];
  EXPECT_EQ(f.directive("maxntid"), (std::vector<int64_t>{128, 1, 1}));
  EXPECT_EQ(f.directive("reqnctapercluster"), std::vector<int64_t>{2});
  EXPECT_TRUE(f.directive("max").empty());
  EXPECT_EQ(f.params[0].attributes, std::vector<std::string>{".ptr .global .align 16"});
  EXPECT_FALSE(m.function("vprintf")->has_body);
  EXPECT_EQ(m.function("vprintf")->results.size(), 1u);
  const auto& matrix = std::get<Variable>(m.items[3]);
  EXPECT_EQ(matrix.size_bytes(), 24u);
  ASSERT_EQ(matrix.init.size(), 6u);
  EXPECT_EQ(matrix.init[2], f64(0));  // inner lists are filled up
  const auto& t = std::get<Variable>(m.items[4]);
  EXPECT_TRUE(t.init[0].as<Symbol>()->generic);
  EXPECT_EQ(t.init[0].as<Symbol>()->offset, 8);
  std::vector<std::string> locs;
  for (const Statement& s : f.body)
    if (const auto* i = std::get_if<Instruction>(&s)) locs.push_back(to_string(i->loc));
  EXPECT_EQ(locs, (std::vector<std::string>{"kernel.cu:7:3", "inner.h:9:1", "inner.h:9:1", "inner.h:9:1"}));
  const std::string text = print(m);
  EXPECT_EQ(print(parse(text, "again.ptx")), text);
}

TEST(Parse, AccessesOfOperands) {
  const auto accesses = [](std::string_view text) {
    const Module m = parse(kernel(text), "a.ptx");
    std::string out;
    visit_registers(*instructions(m).at(0), [&](RegId r, Access a) {
      out += function(m)[r].name + (a == Access::read ? "r " : a == Access::write ? "w " : "rw ");
    });
    return out;
  };
  EXPECT_EQ(accesses("@%p1 add.s32 %r1, %r2, 3;"), "%p1r %r1w %r2r ");
  EXPECT_EQ(accesses("st.shared.v2.b32 [%r1+4], {%r2, %r3};"), "%r1r %r2r %r3r ");
  EXPECT_EQ(accesses("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;"), "%p1w %p2w %r1r %r2r %p3r ");
  EXPECT_EQ(accesses("atom.global.add.u32 %r1, [%rd1], %r2;"), "%r1w %rd1r %r2r ");
  EXPECT_EQ(
      accesses("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd1, %rd2, %p1, 1, 1, 0, 0;"),
      "%r1rw %r2rw %rd1r %rd2r %p1r ");
  EXPECT_EQ(accesses("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];"), "%r1w %r2w %r3r ");
}

TEST(Parse,
     FragmentSizes) {  // PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and others
  const auto counts = [](std::string_view text) {
    const OpcodeText* t = find_opcode(text);
    EXPECT_NE(t, nullptr) << text;
    std::vector<int> out;
    for (const auto& r : t->candidates.front().operands)
      if (r.count != 0) out.push_back(r.count);
    return out;
  };
  using V = std::vector<int>;
  EXPECT_EQ(counts("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), (V{4, 4, 2, 4}));
  EXPECT_EQ(counts("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"), (V{2, 2, 1, 2}));
  EXPECT_EQ(counts("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"), (V{4, 2, 1, 4}));
  EXPECT_EQ(counts("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"), (V{2, 1, 1, 2}));
  EXPECT_EQ(counts("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"), (V{4, 8, 4, 4}));
  EXPECT_EQ(counts("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"), (V{2, 1, 1, 2}));
  EXPECT_EQ(counts("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
            (V{4, 4, 4, 4}));
  EXPECT_EQ(counts("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16").front(), 128);
  EXPECT_EQ(counts("wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16").front(), 64);
  EXPECT_EQ(counts("tcgen05.ld.sync.aligned.16x256b.x32.b32"), V{128});
  EXPECT_EQ(counts("tcgen05.ld.sync.aligned.16x128b.x4.b32"), V{8});
  EXPECT_EQ(counts("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16"), V{8});
  EXPECT_EQ(counts("wmma.load.b.sync.aligned.row.m8n32k16.shared.s8"), V{4});
  EXPECT_EQ(counts("wmma.load.a.sync.aligned.row.m16n16k8.tf32"), V{4});
}

TEST(ParseErrors, AtTheExactToken) {
  EXPECT_EQ(body_error("adds.s32 %r1, %r2, %r3;"),
            "bad.ptx:8:1: unknown opcode 'adds'; did you mean 'add', 'addc'?");
  const std::string misfit = body_error("add.s33 %r1, %r2, %r3;");
  EXPECT_TRUE(misfit.starts_with(
      "bad.ptx:8:4: '.s33' does not fit here in 'add.s33'; expected .u16 .u32 .u64 .s16 .s32 "))
      << misfit;
  EXPECT_NE(misfit.find("nearest: add.type d, a, b; add.sat.type d, a, b;"), std::string::npos) << misfit;
  EXPECT_TRUE(body_error("ld.global %r1, [%rd1];")
                  .starts_with("bad.ptx:8:10: 'ld.global' lacks a modifier; expected "));
  EXPECT_EQ(body_error("add.s32 %r1, %r2;"),
            "bad.ptx:8:17: 'add.s32': expected a register or constant of type s32 (b) here");
  EXPECT_EQ(body_error("add.s32 %r1, %r2, %r3, %r4;"),
            "bad.ptx:8:24: 'add.s32': expected the end of the instruction here");
  EXPECT_EQ(body_error("add.s32 1, %r2, %r3;"),
            "bad.ptx:8:9: 'add.s32': expected a register of type s32 (d) here");
  EXPECT_EQ(body_error("add.s32 %r1, %tid.x, %r3;").substr(0, 13), "bad.ptx:8:14:");
  EXPECT_EQ(body_error("ld.shared.v4.b32 {%r1, %r2}, [%r3];"),
            "bad.ptx:8:18: 'ld.shared.v4.b32': expected a vector of 4 elements, each a register of type b32 "
            "(d) here");
  EXPECT_EQ(body_error("ld.shared.b32 %r1, %r2;"),
            "bad.ptx:8:20: 'ld.shared.b32': expected an address [a] here");
  EXPECT_EQ(body_error("add.s32 %r1, %r2, %r3"),
            "bad.ptx:9:1: expected an operator, a comma or ; in the instruction, found '}'");
  EXPECT_EQ(body_error("mov.b32 %r9, 1;"), "bad.ptx:8:9: register '%r9' is not declared");
  EXPECT_EQ(body_error("mov.b32 %r01, 1;"), "bad.ptx:8:9: register '%r01' is not declared");
  EXPECT_EQ(body_error("mov.b64 %rd1, nothing;"), "bad.ptx:8:15: 'nothing' is not declared");
  EXPECT_EQ(body_error("@%r1 ret;"), "bad.ptx:8:2: '%r1' is of type .b32, a guard needs .pred");
  EXPECT_EQ(body_error("@%p1 bra nowhere;"), "bad.ptx:8:10: there is no label 'nowhere' in this function");
  EXPECT_EQ(body_error("bra L; { L: ret; }"), "bad.ptx:8:5: there is no label 'L' in this function");
  EXPECT_EQ(body_error("L: ret; L: ret;"), "bad.ptx:8:9: label 'L' stands twice in this scope");
  EXPECT_EQ(body_error(".reg .b32 %r1;"), "bad.ptx:8:11: '%r1' is declared already in this scope");
  EXPECT_EQ(body_error(".reg .b32 %r<2>;"),
            "bad.ptx:8:11: a register of '%r<2>' is declared already in this scope");
  EXPECT_EQ(body_error("mov.b32 %r1, 0f3F80;"),
            "bad.ptx:8:14: a constant 0f needs exactly 8 hexadecimal digits");
  EXPECT_EQ(body_error("mov.b32 %r1, 5 / 0;"), "bad.ptx:8:16: division by zero in a constant expression");
  EXPECT_EQ(body_error("mov.b64 %rd1, 99999999999999999999;"),
            "bad.ptx:8:15: this integer does not fit 64 bits");
  EXPECT_EQ(body_error("/* no end"), "bad.ptx:8:1: this comment has no end");
  EXPECT_EQ(body_error("tex.1d.v4.f32.s32 {%f1, %f1, %f1, %f1}, [smem, {%r1}];"),
            "bad.ptx:8:1: 'tex': textures and surfaces are not supported");
  EXPECT_EQ(body_error("vadd.s32.s32.s32 %r1, %r2, %r3;"),
            "bad.ptx:8:1: 'vadd': video instructions are not supported");
  EXPECT_EQ(body_error("setp.eq.f16x2 %p1, %r1, %r2;"),
            "bad.ptx:8:15: 'setp.eq.f16x2': expected a pair p|predicate (p) here");
  EXPECT_EQ(body_error("{ ret;"),
            "bad.ptx:10:1: expected an instruction, a label, a declaration or }, but the text ends here");
  EXPECT_EQ(error_of(""), "bad.ptx:1:1: expected .version, but the text ends here");
  EXPECT_EQ(error_of("hello"), "bad.ptx:1:1: expected .version, found 'hello'");
  EXPECT_EQ(error_of(".version 9.0\n.target sm_90a\n.address_size 32"),
            "bad.ptx:3:15: only 64-bit addresses are supported");
  EXPECT_EQ(error_of(".version 9.0\n.target sm_90a\n.global .b32 x = {1};"),
            "bad.ptx:3:18: expected an operand, found '{'");
  EXPECT_EQ(error_of(".version 9.0\n.target sm_90a\n.global .b32 x[2] = {1, 2, 3};"),
            "bad.ptx:3:28: more elements than the extent 2");
  EXPECT_EQ(error_of(".version 9.0\n.target sm_90a\n\x01"),
            "bad.ptx:3:1: byte 0x01 is not a character of PTX");
  EXPECT_EQ(error_of(".version 9.0\n.target sm_90a\n.global .texref t;"),
            "bad.ptx:3:9: textures and surfaces are not supported");
}

TEST(Make, MismatchShowsTheForms) {
  try {
    make("add.s32", {integer(1)});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    EXPECT_NE(e.message().find("operand 1 should be a register of type s32 (d)"), std::string::npos)
        << e.message();
    EXPECT_NE(e.message().find("\n  add.type d, a, b"), std::string::npos) << e.message();
  }
  EXPECT_THROW(make("add.s33", {}), Error);
}

TEST(Verify, RegisterTypes) {  // PTX ISA, "Operand Type Checking"; each case agrees with ptxas 13.0
  for (const char* good :
       {"add.f32 %r1, %r2, %r3;", "add.u32 %u1, %r1, 3;", "add.f32 %f1, %f2, 0d3ff0000000000000;",
        "ld.global.b32 %rd1, [%rd2];", "ld.global.b32 %f1, [%rd2];", "cvt.u32.u8 %r1, %r2;",
        "cvt.u64.u8 %rd1, %r2;", "mul.wide.u16 %r1, %h1, %h2;", "mov.b64 %rd1, {%r1, %r2};",
        "mov.b64 {%h1, %h2, %h3, _}, %rd1;", "shl.b64 %rd1, %rd2, %r1;", "add.bf16 %h1, %h2, %h3;",
        "mov.pred %p1, 1;", "mov.u32 %r1, %laneid;"})
    EXPECT_EQ(verify_error(good), "no error") << good;
  EXPECT_EQ(verify_error("mul.lo.s32 %r1, %rd1, 2;"),
            "bad.ptx:8:1: 'mul.lo.s32': operand a is of type s32, register %rd1 is .b64");
  for (const char* bad :
       {"add.u32 %f1, %f2, 3;", "add.f32 %f1, %f2, 3;", "ld.global.u32 %f1, [%rd2];", "mov.b32 %r1, %h1;",
        "mov.f32 %f1, 1;", "shl.b64 %rd1, %rd2, %rd3;", "add.s16 %r1, %r1, 1;", "mov.b64 %rd1, {%r1, %h1};",
        "mul.wide.u16 %h1, %h1, %h2;", "ld.shared.b32 %r1, [%h1];", "add.s32 %r1, %r2, 0f3F800000;",
        "wgmma.fence.sync.aligned;"})
    EXPECT_NE(verify_error(bad), "no error") << bad;
}

// Whatever the text, the parser answers with a module or an error that has a place in it.
TEST(ParseErrors, MutationsNeverCrash) {
  const std::string seed = kernel(R"(
  .loc 1 2 3
  ld.param.b64 %rd1, [p0];
  setp.lt.and.s32 %p1|%p2, %r1, (1 << 4), !%p3;
  @%p1 bra L;
  { .reg .pred P; W: mbarrier.try_wait.parity.shared::cta.b64 P, [%r1+8], 0, 0x989680; @!P bra W; }
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
  tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {%r1, %r2, %r3, %r4}, %p1;
  mov.b64 {%r1, _}, %rd1; // comment
  fma.rn.f32 %f1, %f2, 0f3F800000, %f3; /* more */
L:
  ret;)");
  ASSERT_EQ(error_of(seed), "no error");
  std::mt19937 random(20240229);
  const auto below = [&](size_t n) { return size_t(random() % n); };
  const std::string letters = "{}[]()<>,;:|!@._%$\"/*-+~0123456789abfrxUS \n\t\x80";
  size_t accepted = 0, rejected = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed;
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size());
      switch (below(5)) {
        case 0: text.resize(at); break;
        case 1: text.erase(at, 1 + below(12)); break;
        case 2: text.insert(at, 1, letters[below(letters.size())]); break;
        case 3: text[at] = letters[below(letters.size())]; break;
        default: text.insert(at, seed, below(seed.size()), below(30)); break;
      }
    }
    try {
      const Module m = parse(text, "mutant.ptx");
      ++accepted;
      const std::string printed = print(m);
      ASSERT_EQ(print(parse(printed, "again.ptx")), printed) << text;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::user) << e.what() << "\n" << text;
      ASSERT_TRUE(e.loc()) << e.what();
      ++rejected;
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(rejected, 10000u);
}

TEST(ParseErrors, NestingIsLimited) {
  const auto repeat = [](std::string_view s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  EXPECT_NE(body_error(repeat("{", 100000)).find("nested"), std::string::npos);
  EXPECT_NE(body_error("mov.b32 %r1, " + repeat("(", 100000)).find("nested"), std::string::npos);
  EXPECT_NE(body_error("mov.b32 %r1, " + repeat("-", 100000)).find("nested"), std::string::npos);
  EXPECT_NE(body_error(".reg .b32 %x<4000000000>;").find("not a number of registers"), std::string::npos);
  EXPECT_NE(body_error("add" + repeat(".rn", 100000)), "no error");
  EXPECT_NE(error_of(".version 9.0\n.target sm_90a\n.global .b32 x" + repeat("[2]", 100)).find("dimensions"),
            std::string::npos);
}

}  // namespace
}  // namespace tw::ptx
