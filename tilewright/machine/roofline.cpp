#include "tilewright/machine/roofline.h"

#include <algorithm>

#include "tilewright/base/error.h"

namespace tw::machine {
namespace {

double storage_bytes(double elements, DType dtype) { return elements * bits(dtype) / 8; }

// Pairs (query i, key j) with j <= i + kv - q, as an area: the diagonal cuts its cells in half.
double visible_pairs(double q, double kv, bool causal) {
  if (!causal) return q * kv;
  return q <= kv ? q * kv - q * q / 2 : kv * kv / 2;
}

void check_positive(std::string_view what, std::string_view extent, int64_t value) {
  if (value <= 0) user_error({}, "{}: {} must be positive, got {}", what, extent, value);
}

}  // namespace

Work work(const GemmShape& s) {
  check_positive("GEMM", "m", s.m);
  check_positive("GEMM", "n", s.n);
  check_positive("GEMM", "k", s.k);
  double m = s.m, n = s.n, k = s.k;
  return {.flops = 2 * m * n * k,
          .bytes = storage_bytes(m * k + n * k, s.input) + storage_bytes(m * n, s.output)};
}

Work work(const AttentionShape& s) {
  check_positive("attention", "batch", s.batch);
  check_positive("attention", "query heads", s.q_heads);
  check_positive("attention", "KV heads", s.kv_heads);
  check_positive("attention", "query length", s.q_length);
  check_positive("attention", "KV length", s.kv_length);
  check_positive("attention", "head dimension", s.head_dim);
  if (s.q_heads % s.kv_heads != 0)
    user_error({}, "attention: {} query heads do not divide into {} KV heads", s.q_heads, s.kv_heads);
  double b = s.batch, hq = s.q_heads, hkv = s.kv_heads, lq = s.q_length, lk = s.kv_length, d = s.head_dim;
  return {.flops = 4 * b * hq * d * visible_pairs(lq, lk, s.causal),
          .bytes = storage_bytes(2 * b * d * (hq * lq + hkv * lk), s.dtype)};
}

Peak peak(const Gpu& gpu, DType input) {
  double per_clock = 0;
  switch (input) {
    case DType::f16:
    case DType::bf16: per_clock = gpu.flop_per_clock_f16; break;
    case DType::tf32: per_clock = gpu.flop_per_clock_tf32; break;
    case DType::e4m3:
    case DType::e5m2: per_clock = gpu.flop_per_clock_f8; break;
    // kind::f8f6f4 takes the 6-bit types at the 8-bit rate; Hopper has no such kind.
    case DType::e2m3:
    case DType::e3m2: per_clock = gpu.tensor_memory_columns > 0 ? gpu.flop_per_clock_f8 : 0; break;
    case DType::e2m1: per_clock = gpu.flop_per_clock_f4; break;
    case DType::f32: per_clock = 2 * gpu.fma_per_clock; break;
    default: break;
  }
  if (per_clock == 0) user_error({}, "no peak is known for products of {} on {}", name(input), gpu.name);
  return {.flops_per_second = per_clock * gpu.sms * gpu.clock_hz,
          .bytes_per_second = gpu.memory_bytes_per_second};
}

Peak peak(double tflops, double terabytes_per_second) {
  if (!(tflops > 0) || !(terabytes_per_second > 0))
    user_error({}, "a peak needs positive TFLOPS and TB/s, got {} and {}", tflops, terabytes_per_second);
  return {.flops_per_second = tflops * 1e12, .bytes_per_second = terabytes_per_second * 1e12};
}

std::string_view name(Bound bound) { return bound == Bound::memory ? "memory" : "compute"; }

Roofline roofline(const Work& work, const Peak& peak) {
  return {.work = work,
          .peak = peak,
          .bound = work.intensity() < peak.ridge() ? Bound::memory : Bound::compute,
          .flops_per_second = std::min(peak.flops_per_second, work.intensity() * peak.bytes_per_second),
          .seconds = std::max(work.flops / peak.flops_per_second, work.bytes / peak.bytes_per_second)};
}

}  // namespace tw::machine
