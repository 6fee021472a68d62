// D = 0: what the ladder computes when K = 0. Each CTA writes a part of one row.
#include "kernels/gemm/ladder.h"

namespace tw::kernels {
using namespace dsl;

Kernel gemm_zero(std::string_view name, const GemmShape& s, Arch arch) {
  constexpr int THREADS = 256, ROUNDS = 4;
  KernelBuilder k(name, arch);
  const Expr M = rows(k, s);
  k.launch({.grid = {M, ceil_div(s.n, int64_t{THREADS * ROUNDS})}, .threads = THREADS});
  k.global(s.dtype, {M, s.k}, "A");
  k.global(s.dtype, {s.n, s.k}, "B");
  auto D = k.global(s.dtype, {M, s.n}, "D");
  for (int i = 0; i < ROUNDS; ++i) {
    const Expr n = (cta_id.y * ROUNDS + i) * THREADS + thread_id;
    if_(n < s.n, [&] { D.store({cta_id.x, n}, ir::constant(s.dtype, 0)); });
  }
  return k.finish();
}

}  // namespace tw::kernels
