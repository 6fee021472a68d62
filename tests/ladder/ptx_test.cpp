// What the ladder's PTX looks like: it assembles without spills, and its main loop holds no expensive
// arithmetic.
#include <gtest/gtest.h>

#include <map>

#include "kernels/registry.h"
#include "tilewright/lower/lower.h"

namespace tw {
namespace {

using kernels::GemmKernel;

Compiled compile(const GemmKernel& k, std::string_view arch, DType dtype = DType::f16) {
  kernels::GemmShape s = k.demo;
  s.dtype = dtype;
  return lower(k.build(s, arch));
}

// Instructions between a label and the last branch back to it.
std::vector<const ptx::Instruction*> loop_body(const ptx::Module& m, std::string_view stem) {
  std::vector<const ptx::Instruction*> all, body;
  std::string label;
  for (const ptx::Statement& s : m.entries().at(0)->body) {
    if (auto* l = std::get_if<ptx::Label>(&s); l && l->name.starts_with(stem)) {
      label = l->name;
      all.clear();
    }
    auto* i = std::get_if<ptx::Instruction>(&s);
    if (!i) continue;
    all.push_back(i);
    if (i->opcode() == "bra" && i->operands[0].as<ptx::Symbol>()->name == label) body = all;
  }
  return body;
}

TEST(LadderPtx, MainLoopHasNoExpensiveArithmetic) {
  for (const char* arch : {"sm_90a", "sm_100a"}) {
    Compiled c = compile(kernels::gemm_kernel("gemm.step3"), arch);
    auto body = loop_body(*c.module, "$loop");
    ASSERT_GT(body.size(), 30u) << *c.text;
    for (const ptx::Instruction* i : body) {
      std::string text = i->text();
      EXPECT_FALSE(i->opcode() == "div" || i->opcode() == "rem") << text;
      bool multiplies = i->opcode() == "mul" || i->opcode() == "mad";
      EXPECT_FALSE(multiplies && (i->has("wide") || i->has("s64") || i->has("u64"))) << text;
    }
  }
}

// Per chunk of K: the wait for it, the products, their commit, two words for each descriptor and the loop.
// Nothing synchronises or is elected there.
TEST(LadderPtx, MmaLoopsOnBlackwellHoldTheirWorkAlone) {
  for (const char* kernel : {"gemm.step7", "gemm.step8", "gemm.step9", "gemm.step9_clc", "gemm"}) {
    Compiled c = compile(kernels::gemm_kernel(kernel), "sm_100a");
    std::vector<const ptx::Instruction*> since_label, loop;
    std::string label;
    bool products = false;
    for (const ptx::Statement& s : c.module->entries().at(0)->body) {
      if (auto* l = std::get_if<ptx::Label>(&s); l && l->name.starts_with("$loop")) {
        label = l->name;
        since_label.clear();
        products = false;
      }
      auto* i = std::get_if<ptx::Instruction>(&s);
      if (!i) continue;
      since_label.push_back(i);
      products |= i->opcode() == "tcgen05" && i->has("mma");
      if (i->opcode() == "bra" && products && i->operands[0].as<ptx::Symbol>()->name == label)
        loop = since_label;
    }
    ASSERT_FALSE(loop.empty()) << kernel;
    std::map<std::string, int> count;
    for (const ptx::Instruction* i : loop) {
      const std::string text = i->text();
      for (const char* part : {"tcgen05.mma.", "tcgen05.commit.", "mbarrier.try_wait", "mbarrier.arrive"})
        count[part] += text.find(part) != std::string::npos;
      for (const char* part : {"fence", "elect.sync", "barrier.sync", "bar.warp", "shfl", ".s64", ".wide"})
        EXPECT_EQ(text.find(part), std::string::npos) << kernel << ": " << text;
    }
    EXPECT_EQ(count["tcgen05.mma."], 4) << kernel;
    EXPECT_EQ(count["tcgen05.commit."], 1) << kernel;
    EXPECT_EQ(count["mbarrier.try_wait"], 1) << kernel;
    EXPECT_EQ(count["mbarrier.arrive"], 0) << kernel;
    EXPECT_LE(loop.size(), 45u) << kernel;
  }
}

TEST(LadderPtx, IsTheSameEveryTimeAndParsesBack) {
  for (const GemmKernel& k : kernels::gemm_kernels()) {
    for (const std::string& arch : k.archs) {
      Compiled a = compile(k, arch), b = compile(k, arch);
      EXPECT_EQ(*a.text, *b.text);
      EXPECT_EQ(ptx::print(ptx::parse(*a.text, k.name)), *a.text);
    }
  }
}

// Each line of a kernel that becomes instructions is named by some of them.
TEST(LadderPtx, InstructionsKnowTheirSourceLines) {
  Compiled c = compile(kernels::gemm_kernel("gemm.step3"), "sm_100a");
  for (const ptx::Statement& s : c.module->entries().at(0)->body) {
    if (auto* i = std::get_if<ptx::Instruction>(&s)) {
      EXPECT_TRUE(i->loc.file.ends_with("kernels/gemm/sm_100a/step3.cpp")) << i->text();
      EXPECT_GT(i->loc.line, 0u);
      EXPECT_GT(i->line, 0u);
    }
  }
}

}  // namespace
}  // namespace tw
