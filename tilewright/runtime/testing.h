#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/runtime/launch.h"
#include "tilewright/runtime/poison.h"
#include "tilewright/runtime/storage.h"

// For tests of what happens before a launch: a device whose tensors lie in host memory, at addresses the test
// chooses.
namespace tw::testing {

class HostStorage : public Tensor::Storage {
 public:
  void write(std::span<const std::byte> from) override { data.assign(from.begin(), from.end()); }
  void read(std::span<std::byte> to) const override { std::memcpy(to.data(), data.data(), to.size()); }
  void poison() override {
    PoisonPattern pattern = poison_pattern(dtype);
    data.resize(bytes);
    for (size_t i = 0; i < bytes; i += static_cast<size_t>(pattern.bytes))
      std::memcpy(&data[i], &pattern.value, static_cast<size_t>(pattern.bytes));
  }
  uint64_t unwritten() const override { return count_poison(data, dtype); }
  uint64_t first_unwritten() const override { return first_poison(data, dtype); }

  std::vector<std::byte> data;
};

class HostDevice : public Device {
 public:
  explicit HostDevice(std::string name = "host:0") : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  std::string_view target() const override { return "sm_90a"; }
  std::string product() const override { return "host memory"; }
  uint32_t sm_count() const override { return 1; }
  bool simulated() const override { return false; }
  Tensor tensor(DType dtype, std::vector<int64_t> shape, std::string_view name) override {
    auto storage = std::make_shared<HostStorage>();
    describe_storage(*storage, shared_from_this(), dtype, std::move(shape), name);
    storage->address = next_address;
    storage->poison();
    next_address += 0x10000;
    return Tensor(std::move(storage));
  }
  sim::TensorMapObject tensor_map(const sim::TensorMapSpec& spec) const override { return sim::encode(spec); }
  LaunchResult launch(const Compiled&, std::span<const Argument>, const LaunchOptions&) override {
    internal_error({}, "a host device runs nothing");
  }
  LaunchResult launch_ptx(const ptx::Module&, std::string_view, const sim::Launch&,
                          const LaunchOptions&) override {
    internal_error({}, "a host device runs nothing");
  }
  void synchronize() override {}

  uint64_t next_address = 0x10000;

 private:
  std::string name_;
};

// The whole message of the error `action` ends with.
std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace tw::testing
