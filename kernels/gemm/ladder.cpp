#include "kernels/gemm/ladder.h"

#include "tilewright/dsl/schedule.h"

namespace tw::kernels {

dsl::Expr rows(dsl::KernelBuilder& k, const GemmShape& s) {
  return s.runtime_m ? k.size("M") : dsl::Expr(s.m);
}

void require_aligned_operands(dsl::KernelBuilder& k, const GemmShape& s, dsl::Where where) {
  k.require(s.k % 8 == 0, "K is a multiple of 8: rows of A and B are multiples of 16 bytes", where);
}

int sms(const GemmShape& s, dsl::Arch arch) { return s.sms > 0 ? s.sms : dsl::sm_count(arch); }

}  // namespace tw::kernels
