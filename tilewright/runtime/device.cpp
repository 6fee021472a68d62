#include "tilewright/runtime/device.h"

#include <charconv>
#include <chrono>

#include "tilewright/base/error.h"
#include "tilewright/runtime/backends.h"
#include "tilewright/runtime/launch.h"

namespace tw {
namespace {

[[noreturn]] void unknown_device(std::string_view name) {
  std::string known;
  for (const machine::Gpu& gpu : machine::gpus()) known += format("sim:{}, ", gpu.name);
  user_error({}, "unknown device '{}'; known: {}and cuda:N for GPU number N", name, known);
}

// For devices on which a launch costs nothing beside what it runs.
class RepeatedLaunch : public PreparedLaunch {
 public:
  RepeatedLaunch(std::shared_ptr<Device> device, const Compiled& kernel, std::span<const Argument> arguments)
      : device_(std::move(device)), kernel_(kernel), arguments_(arguments.begin(), arguments.end()) {}
  void enqueue() override { device_->launch(kernel_, std::span<const Argument>(arguments_)); }

 private:
  std::shared_ptr<Device> device_;
  Compiled kernel_;
  std::vector<Argument> arguments_;
};

}  // namespace

std::unique_ptr<PreparedLaunch> Device::prepare(const Compiled& kernel, std::span<const Argument> arguments) {
  bind_arguments(kernel, arguments, *this);  // the checks
  return std::make_unique<RepeatedLaunch>(shared_from_this(), kernel, arguments);
}

double Device::time(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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
