#pragma once
#include "kernels/registry.h"

// The GEMM ladder: each step is one file that differs from the one before by its idea.
namespace tw::kernels {

namespace sm_100a {
ir::Kernel gemm_step1(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step2(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step3(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step4(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step5(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step6(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step7(const GemmShape& s, dsl::Arch arch);
}  // namespace sm_100a

namespace sm_90a {
ir::Kernel gemm_step1(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step2(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step3(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step4(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step5(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step6(const GemmShape& s, dsl::Arch arch);
ir::Kernel gemm_step7(const GemmShape& s, dsl::Arch arch);
}  // namespace sm_90a

}  // namespace tw::kernels
