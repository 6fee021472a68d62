#include "tilewright/runtime/device.h"

#include <charconv>

#include "tilewright/base/error.h"
#include "tilewright/runtime/backends.h"

namespace tw {
namespace {

[[noreturn]] void unknown_device(std::string_view name) {
  std::string known;
  for (const machine::Gpu& gpu : machine::gpus()) known += format("sim:{}, ", gpu.name);
  user_error({}, "unknown device '{}'; known: {}and cuda:N for GPU number N", name, known);
}

}  // namespace

std::shared_ptr<Device> Device::open(std::string_view name) {
  size_t colon = name.find(':');
  if (colon == std::string_view::npos) unknown_device(name);
  std::string_view kind = name.substr(0, colon), which = name.substr(colon + 1);
  if (kind == "sim") {
    for (const machine::Gpu& gpu : machine::gpus())
      if (gpu.name == which) return open_sim(gpu);
  } else if (kind == "cuda") {
    int ordinal = -1;
    auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), ordinal);
    if (error == std::errc() && end == which.data() + which.size() && ordinal >= 0) return open_cuda(ordinal);
  }
  unknown_device(name);
}

}  // namespace tw
