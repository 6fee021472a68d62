#include "kernels/gemm/ladder.h"

#include "tilewright/dsl/schedule.h"

namespace tw::kernels {

dsl::Expr rows(dsl::KernelBuilder& k, const GemmShape& s) {
  return s.runtime_m ? k.size("M") : dsl::Expr(s.m);
}

int sms(const GemmShape& s, dsl::Arch arch) { return s.sms > 0 ? s.sms : dsl::sm_count(arch); }

}  // namespace tw::kernels
