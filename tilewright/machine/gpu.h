#pragma once
#include <cstdint>
#include <span>
#include <string_view>

// GPUs as plain data. Sources: docs/hardware.md, vendor data sheets, the CUDA
// Programming Guide's table of technical specifications.
namespace tw::machine {

struct Gpu {
  std::string_view name;  // "b200"
  std::string_view arch;  // "sm_100a"
  uint32_t sms;
  double clock_hz;  // boost
  double memory_bytes_per_second;
  double memory_bytes;
  double l2_bytes;
  // Dense FLOP per clock and SM of the tensor cores.
  double flop_per_clock_f16, flop_per_clock_tf32, flop_per_clock_f8, flop_per_clock_f4;
  double fma_per_clock;     // fp32 FMA lanes per SM
  double ex2_per_clock;     // MUFU results per SM
  uint32_t shared_per_sm;   // bytes
  uint32_t shared_per_cta;  // bytes a CTA can opt into
  uint32_t registers_per_sm;
  uint32_t threads_per_sm;
  uint32_t ctas_per_sm;
  uint32_t tensor_memory_columns;  // 0 before Blackwell
  uint32_t max_cluster;            // with the non-portable opt-in
};

std::span<const Gpu> gpus();
const Gpu& gpu(std::string_view name);  // user error that lists the names

}  // namespace tw::machine
