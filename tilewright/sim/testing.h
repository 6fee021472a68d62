#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/sim/simulator.h"

// For tests: PTX text run on the simulator.
namespace tw::sim::testing {

inline Machine small_machine(std::string arch = "sm_90a", uint32_t sms = 4) {
  Machine m;
  m.name = "test";
  m.arch = std::move(arch);
  m.sms = sms;
  return m;
}

// A module with one entry "k"; `params` and `body` are PTX text.
inline std::string module_text(std::string_view params, std::string_view body,
                               std::string_view arch = "sm_90a", std::string_view before = "",
                               std::string_view directives = "") {
  return tw::format(".version 9.0\n.target {}\n.address_size 64\n{}\n.visible .entry k({}) {}\n{{\n{}\n}}\n",
                    arch, before, params, directives, body);
}

inline Program compile(std::string_view text, Machine machine = small_machine()) {
  return Program(std::make_shared<const ptx::Module>(ptx::parse(text, "test.ptx")), "k", std::move(machine));
}

// A buffer of the simulated device.
template <class T>
struct Buffer {
  Buffer(GlobalMemory& m, size_t count, std::string_view name)
      : memory(&m), size(count), address(m.allocate(count * sizeof(T), name)) {}
  Buffer(GlobalMemory& m, const std::vector<T>& values, std::string_view name)
      : Buffer(m, values.size(), name) {
    m.write(address, std::as_bytes(std::span(values)));
  }
  std::vector<T> get() const {
    std::vector<T> values(size);
    memory->read(address, std::as_writable_bytes(std::span(values)));
    return values;
  }
  GlobalMemory* memory;
  size_t size;
  uint64_t address;
};

// A parameter block of values in order, each aligned to its size.
class Params {
 public:
  template <class T>
  Params& add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
    return *this;
  }
  std::vector<std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Runs `text` for each element: inputs are in %a, %b, %c (of `in_bytes` 2, 4 or 8), the result is taken from
// %d (of `out_bytes`). Predicates %p, %q and 32-bit temporaries %t<8>, 64-bit %l<8>, 16-bit %h<8> may be
// used.
inline std::vector<uint64_t> evaluate(std::string_view text, int out_bytes, int in_bytes,
                                      const std::vector<std::vector<uint64_t>>& inputs,
                                      std::string arch = "sm_90a") {
  const size_t n = inputs.empty() ? 32 : inputs.front().size();
  std::string body = tw::format(
      ".reg .pred %p, %q; .reg .b16 %h<8>; .reg .b32 %t<8>, %who, %n; .reg .b64 %l<8>, %at, %in, %out;\n"
      ".reg .b{} %a, %b, %c; .reg .b{} %d;\n"
      "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n"
      "mov.u32 %who, %ctaid.x; mad.lo.u32 %who, %who, 256, 0; mov.u32 %n, %tid.x; add.u32 %who, %who, %n;\n"
      "setp.ge.u32 %p, %who, {};\n@%p exit;\n",
      8 * in_bytes, 8 * out_bytes, n);
  const char* names[] = {"%a", "%b", "%c"};
  for (size_t k = 0; k < inputs.size(); ++k) {
    body += tw::format("mad.wide.u32 %at, %who, {}, %in;\nld.global.b{} {}, [%at+{}];\n", in_bytes,
                       8 * in_bytes, names[k], k * n * static_cast<size_t>(in_bytes));
  }
  body += std::string(text) + "\n";
  body += tw::format("mad.wide.u32 %at, %who, {}, %out;\nst.global.b{} [%at], %d;\nexit;\n", out_bytes,
                     8 * out_bytes);
  Program program = compile(module_text(".param .u64 in, .param .u64 out", body, arch), small_machine(arch));
  GlobalMemory memory;
  const uint64_t in =
      memory.allocate(std::max<size_t>(1, inputs.size() * n * static_cast<size_t>(in_bytes)), "in");
  const uint64_t out = memory.allocate(n * static_cast<size_t>(out_bytes), "out");
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (size_t e = 0; e < n; ++e) {
      memory.write(in + (k * n + e) * static_cast<size_t>(in_bytes),
                   std::as_bytes(std::span(&inputs[k][e], 1)).subspan(0, static_cast<size_t>(in_bytes)));
    }
  }
  Launch launch;
  launch.grid = {static_cast<uint32_t>((n + 255) / 256), 1, 1};
  launch.block = {256, 1, 1};
  launch.params = Params().add(in).add(out).bytes();
  program.run(launch, memory, {});
  std::vector<uint64_t> result(n, 0);
  for (size_t e = 0; e < n; ++e) {
    memory.read(out + e * static_cast<size_t>(out_bytes),
                std::as_writable_bytes(std::span(&result[e], 1)).subspan(0, static_cast<size_t>(out_bytes)));
  }
  return result;
}

// All pairs of two lists, as two columns.
inline std::vector<std::vector<uint64_t>> pairs(const std::vector<uint64_t>& a,
                                                const std::vector<uint64_t>& b) {
  std::vector<std::vector<uint64_t>> columns(2);
  for (uint64_t x : a) {
    for (uint64_t y : b) {
      columns[0].push_back(x);
      columns[1].push_back(y);
    }
  }
  return columns;
}

}  // namespace tw::sim::testing
