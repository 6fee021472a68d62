#pragma once
#include "kernels/registry.h"

// The GEMM ladder: each step is one file that differs from the one before by its idea.
namespace tw::kernels {

// The rows of A and D: a number, or the kernel's size "M".
dsl::Expr rows(dsl::KernelBuilder& k, const GemmShape& s);
// SMs that a persistent kernel takes.
int sms(const GemmShape& s, dsl::Arch arch);
// A demand of the kernel: rows of A and B begin at multiples of 16 bytes, so that the copy engine can read
// them.
void require_aligned_operands(dsl::KernelBuilder& k, const GemmShape& s,
                              dsl::Where where = dsl::Where::current());
// Rows of D begin at multiples of 16 bytes, so that the copy engine can write them.
inline bool aligned_rows(const GemmShape& s) { return s.n % 8 == 0; }

// The product when K = 0, a sum of nothing; and that of no rows or columns, which no CTA computes.
ir::Kernel gemm_zero(std::string_view name, const GemmShape& s, dsl::Arch arch);

namespace sm_100a {
ir::Kernel gemm_step1(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step2(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step3(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step4(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step5(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step6(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step7(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step8(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step9(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step9_clc(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm(const GemmShape& s, dsl::Arch arch);
}  // namespace sm_100a

namespace sm_90a {
ir::Kernel gemm_step1(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step2(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step3(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step4(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step5(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step6(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step7(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step8(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step9(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm(const GemmShape& s, dsl::Arch arch);
}  // namespace sm_90a

}  // namespace tw::kernels
