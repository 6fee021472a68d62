#include "tests/faults/gemm.h"

#include <algorithm>
#include <random>

#include "tilewright/lower/lower.h"

namespace tw::faults {
namespace {

Tensor integers(Device& device, DType type, std::vector<int64_t> shape, std::string_view name,
                uint32_t seed) {
  Tensor t = device.tensor(type, std::move(shape), name);
  std::minstd_rand random(seed);
  std::vector<float> values(static_cast<size_t>(t.elements()));
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 5) - 2);
  t.upload(values);
  return t;
}

kernels::GemmShape on_two_workers(kernels::GemmShape s) {
  s.sms = 2;
  return s;
}

}  // namespace

void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " on " << c.device; }

std::string test_name(const Case& c) {
  std::string name = c.kernel + "_" + c.device.substr(4);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::vector<Case> ladder_cases() {
  std::vector<Case> out;
  for (const char* step :
       {"gemm.step4", "gemm.step5", "gemm.step6", "gemm.step7", "gemm.step8", "gemm.step9"})
    for (const char* device : {"sim:b200", "sim:h200"}) out.push_back({step, device});
  return out;
}

Gemm::Gemm(const Case& c, kernels::GemmShape s)
    : device(Device::open(c.device)),
      kernel(lower(kernels::gemm_kernel(c.kernel).build(on_two_workers(s), device->target()))),
      a(integers(*device, s.dtype, {s.m, s.k}, "A", 1)),
      b(integers(*device, s.dtype, {s.n, s.k}, "B", 2)),
      d(device->tensor(s.dtype, {s.m, s.n}, "D")) {}

void Gemm::launch(const Compiled& k, const sim::RunOptions& sim) const {
  Tensor out = d;
  out.poison();
  LaunchOptions options;
  options.sim = sim;
  device->launch(k, {a, b, d}, options);
}

}  // namespace tw::faults
