#include "bench/blas.h"

#include <cblas.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace tw::bench {

namespace {

// The OpenBLAS name of the newest kernels this CPU can run; empty where OpenBLAS's own choice has to do.
std::string best_core() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void run_blas_at_its_best(char** argv) {
  const std::string best = best_core();
  if (environment("OPENBLAS_CORETYPE") == best && environment("OPENBLAS_L2_SIZE").empty()) return;
  unsetenv("OPENBLAS_L2_SIZE");
  unsetenv("OPENBLAS_CORETYPE");
  if (!best.empty()) setenv("OPENBLAS_CORETYPE", best.c_str(), 1);
  execv("/proc/self/exe", argv);
  throw std::runtime_error("cannot start again with OPENBLAS_CORETYPE=" + best);
}

std::string blas_description() {
  std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const size_t second = config.find(' ', config.find(' ') + 1);
  return config.substr(0, second) + ", " + openblas_get_corename() + " kernels";
}

void sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int threads) {
  openblas_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<blasint>(m), static_cast<blasint>(n),
              static_cast<blasint>(k), 1.0f, a, static_cast<blasint>(k), b, static_cast<blasint>(k), 0.0f, c,
              static_cast<blasint>(n));
}

}  // namespace tw::bench
