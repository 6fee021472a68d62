#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/lower/compiled.h"
#include "tilewright/sim/simulator.h"
#include "tilewright/sim/tensor_map.h"

// One interface for a GPU and for the simulator: open a device, make tensors, launch a compiled kernel.
namespace tw {

class Device;

// A dense row-major array on a device; an extent may be 0, then it has no address. Cheap to copy: copies
// share the storage, which is freed with the last one.
class Tensor {
 public:
  DType dtype() const;
  const std::vector<int64_t>& shape() const;
  int64_t elements() const;
  uint64_t bytes() const;
  uint64_t address() const;  // device address, 256-byte aligned
  const std::string& name() const;
  Device& device() const;

  // Whole contents, in storage format; sizes must match.
  void upload(std::span<const std::byte> data);
  std::vector<std::byte> download() const;
  // Values converted to and from the storage format (round to nearest even).
  void upload(std::span<const float> values);
  std::vector<float> download_f32() const;

  // Makes every byte unwritten: the simulator reports a read; on a GPU the bytes become a NaN pattern.
  void poison();
  // How many bytes no kernel wrote since poison(). On a GPU: how many still hold the pattern.
  uint64_t unwritten() const;
  uint64_t first_unwritten() const;  // offset of the first such byte; bytes() if there is none

  struct Storage;
  explicit Tensor(std::shared_ptr<Storage> storage) : storage_(std::move(storage)) {}

 private:
  std::shared_ptr<Storage> storage_;
};

// A kernel argument: a tensor for a pointer parameter, a number for a scalar one.
using Argument = std::variant<Tensor, int64_t, double>;

// Programmatic dependent launch: the kernel may start before the one that was launched before it has ended.
// Before it touches what that one uses it waits for that end, by griddepcontrol.wait, and the checker holds
// it to that.
struct DependentLaunch {
  std::vector<Tensor> written_before;  // by the kernel before
  std::vector<Tensor> read_before;     // and what that one only reads
};

struct LaunchOptions {
  sim::RunOptions sim;  // ignored on a GPU
  // Of launch_ptx on the simulator: what the module's author called things. A compiled kernel brings its own.
  std::shared_ptr<const ptx::DebugMap> names = nullptr;
  bool timed = false;  // on a GPU: measure with events
  // On a GPU: a launch with programmatic stream serialization. Simulated kernels run one after the other.
  std::optional<DependentLaunch> dependent = std::nullopt;
};

struct LaunchResult {
  double seconds = 0;  // sim: host time of the simulation; cuda: event time when timed, else 0
  sim::RunStats sim;
};

// A launch that was checked and bound once. It keeps its tensors and its device alive.
class PreparedLaunch {
 public:
  virtual ~PreparedLaunch() = default;
  // Launches without waiting (the simulator runs it to its end).
  virtual void enqueue() = 0;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = default;

  // "sim:b200", "sim:b300", "sim:h200", "sim:h100", "cuda:0". User errors: an unknown name (lists what
  // exists), no driver on this machine (says what was looked for), no such GPU.
  static std::shared_ptr<Device> open(std::string_view name);

  virtual std::string_view name() const = 0;    // "sim:b200"
  virtual std::string_view target() const = 0;  // "sm_100a": what kernels are compiled for
  virtual std::string product() const = 0;      // "NVIDIA H200", "simulated b200"
  virtual uint32_t sm_count() const = 0;
  virtual bool simulated() const = 0;

  virtual Tensor tensor(DType dtype, std::vector<int64_t> shape, std::string_view name = "") = 0;
  // The device's 128-byte tensor map object for these arguments of cuTensorMapEncodeTiled. User errors name
  // the rule that is broken.
  virtual sim::TensorMapObject tensor_map(const sim::TensorMapSpec& spec) const = 0;

  // Checks everything before anything runs: number, type and shape of arguments (a run-time size takes its
  // value from the first tensor that has it), alignment, launch limits; messages name the kernel, the
  // parameter and the rule. A grid without CTAs, as an empty problem's is, runs nothing.
  virtual LaunchResult launch(const Compiled& kernel, std::span<const Argument> arguments,
                              const LaunchOptions& options = {}) = 0;
  LaunchResult launch(const Compiled& kernel, std::initializer_list<Argument> arguments,
                      const LaunchOptions& options = {}) {
    return launch(kernel, std::span<const Argument>(arguments.begin(), arguments.size()), options);
  }

  // Foreign PTX: an entry of a module, its launch and its packed parameter block.
  virtual LaunchResult launch_ptx(const ptx::Module& module, std::string_view entry,
                                  const sim::Launch& launch, const LaunchOptions& options = {}) = 0;

  // The checks and the binding of launch(), for a launch that is to be repeated: enqueueing costs what the
  // driver's launch costs.
  virtual std::unique_ptr<PreparedLaunch> prepare(const Compiled& kernel,
                                                  std::span<const Argument> arguments);
  // Seconds that the device spends on what `work` enqueues, after waiting for it: between two events on a
  // GPU, host time on the simulator.
  virtual double time(const std::function<void()>& work);

  virtual void synchronize() = 0;
};

}  // namespace tw
