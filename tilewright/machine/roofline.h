#pragma once
#include <cstdint>
#include <string_view>

#include "tilewright/base/dtype.h"
#include "tilewright/machine/gpu.h"

// The roofline model (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009): the work of a kernel
// against the two ceilings of a machine. Bytes are compulsory traffic: every operand read once, the result
// written once.
namespace tw::machine {

struct Work {
  double flops = 0;
  double bytes = 0;
  double intensity() const { return flops / bytes; }  // FLOP/byte
};

// D[m,n] = sum_k A[m,k] * B[n,k]: 2*m*n*k FLOP.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  DType input = DType::f16, output = DType::f16;
};
Work work(const GemmShape& shape);  // user error unless every extent is positive

// Forward attention: softmax(Q K^T) V with Q and O of batch x q_heads x q_length x head_dim, K and V of
// batch x kv_heads x kv_length x head_dim. 4*head_dim FLOP per visible pair of query and key. A causal mask
// is anchored bottom-right and hides the triangle above the diagonal: half of all pairs when both lengths are
// equal.
struct AttentionShape {
  int64_t batch = 1, q_heads = 0, kv_heads = 0, q_length = 0, kv_length = 0, head_dim = 0;
  bool causal = false;
  DType dtype = DType::f16;
};
Work work(
    const AttentionShape& shape);  // user error unless extents are positive and kv_heads divides q_heads

struct Peak {
  double flops_per_second = 0;
  double bytes_per_second = 0;
  double ridge() const { return flops_per_second / bytes_per_second; }  // FLOP/byte where both ceilings meet
};
// The dense peak for products of `input` elements: tensor cores, or the FMA units for f32. A user error when
// the machine has no such path.
Peak peak(const Gpu& gpu, DType input);
// A peak the caller states, in the units of data sheets.
Peak peak(double tflops, double terabytes_per_second);

enum class Bound { memory, compute };
std::string_view name(Bound bound);

struct Roofline {
  Work work;
  Peak peak;
  Bound bound = Bound::memory;  // which ceiling is met first; compute at the ridge itself
  double flops_per_second = 0;  // attainable: min(peak, intensity * bandwidth)
  double seconds = 0;           // ideal time: max(flops / peak, bytes / bandwidth)
};
Roofline roofline(const Work& work, const Peak& peak);

}  // namespace tw::machine
