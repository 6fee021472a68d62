#include "tilewright/machine/gpu.h"

#include <array>
#include <string>

#include "tilewright/base/error.h"

// Evidence marks: [S] vendor specification, [M] measured on hardware, [P] CUDA Programming Guide, table of
// technical specifications per compute capability, [D] derived from the others, [?] one weak source.
namespace tw::machine {
namespace {

// Compute capabilities 9.0, 10.0 and 10.3 share these limits [P]. A CTA can opt into 1 KB less than the SM
// has.
constexpr uint32_t kSharedPerSm = 228 * 1024, kSharedPerCta = 227 * 1024;
constexpr uint32_t kRegistersPerSm = 64 * 1024;
constexpr uint32_t kThreadsPerSm = 2048, kCtasPerSm = 32;
constexpr uint32_t kMaxCluster = 16;  // 8 is portable; cudaFuncAttributeNonPortableClusterSizeAllowed

constexpr Gpu hopper(std::string_view name, double bytes_per_second, double bytes, double l2) {
  return {
      .name = name,
      .arch = "sm_90a",
      .sms = 132,          // [S], SXM
      .clock_hz = 1.98e9,  // [S]; sustained GEMMs run lower, limited by power [M]
      .memory_bytes_per_second = bytes_per_second,
      .memory_bytes = bytes,
      .l2_bytes = l2,
      .flop_per_clock_f16 = 4096,  // [S]; m64n256k16 every 128 cycles, arXiv 2402.13499 [M]
      .flop_per_clock_tf32 = 2048,
      .flop_per_clock_f8 = 8192,
      .flop_per_clock_f4 = 0,  // no such path
      .fma_per_clock = 128,    // [S]
      .ex2_per_clock = 16,     // FlashAttention-4 paper, arXiv 2603.05451 [M]
      .shared_per_sm = kSharedPerSm,
      .shared_per_cta = kSharedPerCta,
      .registers_per_sm = kRegistersPerSm,
      .threads_per_sm = kThreadsPerSm,
      .ctas_per_sm = kCtasPerSm,
      .tensor_memory_columns = 0,
      .max_cluster = kMaxCluster,
  };
}

constexpr Gpu blackwell(std::string_view name, std::string_view arch, double clock, double bytes,
                        double flop_f4, double ex2) {
  return {
      .name = name,
      .arch = arch,
      .sms = 148,  // 74 a die; B200 [S], B300 as its driver reports [M]
      .clock_hz = clock,
      .memory_bytes_per_second = 8e12,  // [S]; TMA reaches 7.1 to 7.3 TB/s on a B200 [M]
      .memory_bytes = bytes,
      .l2_bytes = 126e6,            // CUDA Blackwell Tuning Guide [S]; B300 equal [M]
      .flop_per_clock_f16 = 8192,   // M128 N256 K16 every 128.6 cycles, microbench-blackwell [M]
      .flop_per_clock_tf32 = 4096,  // half of f16 [?]
      .flop_per_clock_f8 = 16384,   // same cycles at K32 [M]
      .flop_per_clock_f4 = flop_f4,
      .fma_per_clock = 128,  // [S]
      .ex2_per_clock = ex2,
      .shared_per_sm = kSharedPerSm,
      .shared_per_cta = kSharedPerCta,
      .registers_per_sm = kRegistersPerSm,
      .threads_per_sm = kThreadsPerSm,
      .ctas_per_sm = kCtasPerSm,
      .tensor_memory_columns = 512,  // PTX ISA, "Tensor Memory": 128 lanes x 512 columns of 32 bits
      .max_cluster = kMaxCluster,
  };
}

constexpr std::array kGpus{
    // 989 TFLOPS f16 in the data sheet stands for 1.83 GHz; 3.24 TB/s reached [M].
    hopper("h100", 3.35e12, 80e9, 50e6),
    // 60 MB L2 as the driver reports it; copies reach 4.24 TB/s, a main loop alone 1073 TFLOPS [M].
    hopper("h200", 4.8e12, 141e9, 60e6),
    // Clock: Chips and Cheese [M]; 2250 TFLOPS f16 in the data sheet stands for 1.86 GHz. f4: same cycles at
    // K64 [M].
    blackwell("b200", "sm_100a", 1.965e9, 180e9, 32768, 16),
    // Clock as its driver reports, 1.92 GHz sustained [?]. 15 PFLOPS NVFP4 [S] is 1.5 times the B200's rate
    // per SM and
    // clock [D]; MUFU twice as wide, NVIDIA blog [M/S]. The full die has 160 SMs.
    blackwell("b300", "sm_103a", 2.032e9, 288e9, 49152, 32),
};

}  // namespace

std::span<const Gpu> gpus() { return kGpus; }

const Gpu& gpu(std::string_view name) {
  std::string known;
  for (const Gpu& g : kGpus) {
    if (g.name == name) return g;
    known += known.empty() ? "" : ", ";
    known += g.name;
  }
  user_error({}, "unknown GPU '{}'; known: {}", name, known);
}

}  // namespace tw::machine
