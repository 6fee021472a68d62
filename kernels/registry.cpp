#include "kernels/registry.h"

#include "kernels/gemm/ladder.h"
#include "tilewright/base/error.h"

namespace tw::kernels {
namespace {

using Build = ir::Kernel (*)(const GemmShape&, dsl::Arch);

// Steps 1 to 3 show an idea on whole tiles; the others serve every M and N.
constexpr int kFirstOfAnyShape = 4;

// hopper, blackwell: null where the kernel is not written for that architecture.
GemmKernel entry(const std::string& kernel, std::string idea, Build hopper, Build blackwell, GemmShape demo,
                 bool any_shape) {
  auto build = [=](const GemmShape& s, std::string_view arch) {
    dsl::Arch a = ir::arch_from_name(arch);
    const Build chosen = ir::is_blackwell(a) ? blackwell : hopper;
    if (!chosen) user_error({}, "{} is not written for {}", kernel, arch);
    if (s.m < 0 || s.n < 0 || s.k < 0)
      user_error({}, "a GEMM has extents of at least 0, got {} x {} x {}", s.m, s.n, s.k);
    if (s.dtype != DType::f16 && s.dtype != DType::bf16)
      user_error({}, "the GEMM ladder computes f16 and bf16, not {}", name(s.dtype));
    if (s.runtime_m && !any_shape)
      user_error({}, "{}: M may be a run-time size from gemm.step{} on", kernel, kFirstOfAnyShape);
    const bool nothing = s.n == 0 || s.k == 0 || (s.m == 0 && !s.runtime_m);
    return nothing && any_shape ? gemm_zero(kernel, s, a) : chosen(s, a);
  };
  std::vector<std::string> archs;
  if (hopper) archs.push_back("sm_90a");
  if (blackwell) archs.insert(archs.end(), {"sm_100a", "sm_103a"});
  return {kernel, std::move(idea), std::move(archs), build, demo};
}

GemmKernel step(int number, std::string idea, Build hopper, Build blackwell, GemmShape demo) {
  return entry(format("gemm.step{}", number), std::move(idea), hopper, blackwell, demo,
               number >= kFirstOfAnyShape);
}

}  // namespace

std::span<const GemmKernel> gemm_kernels() {
  static const std::vector<GemmKernel> kernels{
      step(1, "one CTA, one tile: global to shared to tensor core and back", sm_90a::gemm_step1,
           sm_100a::gemm_step1, {128, 128, 64}),
      step(2, "a loop over K; one pair of shared tiles, one accumulator", sm_90a::gemm_step2,
           sm_100a::gemm_step2, {128, 128, 512}),
      step(3, "a grid: one CTA for each tile of D", sm_90a::gemm_step3, sm_100a::gemm_step3, {384, 256, 512}),
      step(4, "TMA moves tiles; a barrier counts the bytes; a TMA store", sm_90a::gemm_step4,
           sm_100a::gemm_step4, {300, 200, 520}),
      step(5, "two stages: load one while the other is multiplied", sm_90a::gemm_step5, sm_100a::gemm_step5,
           {300, 200, 520}),
      step(6, "a fixed pool of CTAs and an order of tiles that keeps operands in L2", sm_90a::gemm_step6,
           sm_100a::gemm_step6, {1300, 1800, 200}),
      step(7, "roles: load, multiply and write back at the same time", sm_90a::gemm_step7,
           sm_100a::gemm_step7, {1300, 1800, 200}),
      step(8, "a cluster of two CTAs shares what both need", sm_90a::gemm_step8, sm_100a::gemm_step8,
           {1300, 1800, 200}),
      step(9, "a second consumer, a larger tile", sm_90a::gemm_step9, sm_100a::gemm_step9, {1300, 1800, 200}),
      entry("gemm.step9_clc", "step 9 whose tiles cluster launch control deals out", nullptr,
            sm_100a::gemm_step9_clc, {1300, 1800, 200}, true),
      entry("gemm", "the one to call: chooses the tile for the shape", sm_90a::gemm, sm_100a::gemm,
            {1300, 1800, 200}, true),
  };
  return kernels;
}

const GemmKernel& gemm_kernel(std::string_view name) {
  std::string known;
  for (const GemmKernel& k : gemm_kernels()) {
    if (k.name == name) return k;
    known += (known.empty() ? "" : ", ") + k.name;
  }
  user_error({}, "unknown kernel '{}'; known: {}", name, known);
}

}  // namespace tw::kernels
