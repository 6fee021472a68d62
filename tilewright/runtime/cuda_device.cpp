#include <array>
#include <map>
#include <mutex>

#include "tilewright/base/error.h"
#include "tilewright/runtime/backends.h"
#include "tilewright/runtime/cuda_driver.h"
#include "tilewright/runtime/cuda_module.h"
#include "tilewright/runtime/launch.h"
#include "tilewright/runtime/poison.h"
#include "tilewright/runtime/storage.h"

namespace tw {
namespace {

using namespace cuda;

// After these a context is unusable until the process ends ("CUresult": "leaves the process in an
// inconsistent state").
bool loses_context(Result result) {
  constexpr Result kContained = 226, kIllegalAddress = 700, kLaunchTimeout = 702, kAssert = 710;
  constexpr Result kHardwareStackError = 714,
                   kLaunchFailed = 719;  // in between: instruction, alignment, space, pc
  return result == kContained || result == kIllegalAddress || result == kLaunchTimeout || result == kAssert ||
         (result >= kHardwareStackError && result <= kLaunchFailed);
}

class CudaDevice : public Device {
 public:
  CudaDevice(const Driver& driver, int ordinal);
  ~CudaDevice() override;

  std::string_view name() const override { return name_; }
  std::string_view target() const override { return limits_.arch; }
  std::string product() const override { return product_; }
  uint32_t sm_count() const override { return sms_; }
  bool simulated() const override { return false; }
  Tensor tensor(DType dtype, std::vector<int64_t> shape, std::string_view name) override;
  sim::TensorMapObject tensor_map(const sim::TensorMapSpec& spec) const override;
  LaunchResult launch(const Compiled& kernel, std::span<const Argument> arguments,
                      const LaunchOptions& options) override;
  LaunchResult launch_ptx(const ptx::Module& module, std::string_view entry, const sim::Launch& launch,
                          const LaunchOptions& options) override;
  std::unique_ptr<PreparedLaunch> prepare(const Compiled& kernel,
                                          std::span<const Argument> arguments) override;
  double time(const std::function<void()>& work) override;
  void synchronize() override;

  const Driver& api() const { return api_; }
  bool try_make_current() const noexcept { return api_.cuCtxSetCurrent(context_) == 0; }
  void make_current() const {
    api_.check(api_.cuCtxSetCurrent(context_), "{}: making the context current", name_);
  }

  // Like Driver::check, for calls that may also report a failure of an earlier launch.
  template <class... Args>
  void check(Result result, fmt::format_string<Args...> what, Args&&... args) const {
    if (result != 0) fail(result, tw::vformat(what, fmt::make_format_args(args...)));
  }

 private:
  friend class CudaLaunch;

  // A launch and what it needs, checked.
  struct Bound {
    LoadedFunction* function = nullptr;  // null: the grid is empty, there is nothing to launch
    sim::Launch launch;
    std::string description;
  };
  Bound bind(const Compiled& kernel, std::span<const Argument> arguments);
  [[noreturn]] void fail(Result result, const std::string& what) const;
  LaunchResult start(LoadedFunction& function, std::string_view kernel, const sim::Launch& launch,
                     const ptx::Function* entry, const LaunchOptions& options, std::string description);
  void opt_in(LoadedFunction& function, std::string_view kernel, const sim::Launch& launch) const;
  double timed(std::string_view kernel, const LaunchConfig& config, Function function, void** params);
  int attribute(DeviceAttribute a) const;

  const Driver& api_;
  std::string name_;     // "cuda:0"
  std::string product_;  // "NVIDIA H200"
  DeviceId id_ = 0;
  Context context_ = nullptr;
  LaunchLimits limits_;
  uint32_t sms_ = 0;
  Event start_ = nullptr, stop_ = nullptr;
  std::unique_ptr<ModuleCache> modules_;
  mutable std::mutex mutex_;
  std::string last_launch_;  // what an asynchronous failure most likely comes from
};

class CudaStorage : public Tensor::Storage {
 public:
  ~CudaStorage() override {
    // Not checked: freeing after a lost context fails, and a destructor has nobody to tell.
    if (address != 0 && owner().try_make_current()) owner().api().cuMemFree(address);
  }
  void write(std::span<const std::byte> data) override {
    owner().make_current();
    owner().check(owner().api().cuMemcpyHtoD(address, data.data(), data.size()),
                  "copying {} bytes to tensor '{}'", data.size(), name);
  }
  void read(std::span<std::byte> data) const override {
    owner().make_current();
    owner().check(owner().api().cuMemcpyDtoH(data.data(), address, data.size()),
                  "copying {} bytes from tensor '{}'", data.size(), name);
  }
  void poison() override {
    const Driver& api = owner().api();
    owner().make_current();
    PoisonPattern p = poison_pattern(dtype);
    Result result = p.bytes == 1   ? api.cuMemsetD8(address, static_cast<unsigned char>(p.value), bytes)
                    : p.bytes == 2 ? api.cuMemsetD16(address, static_cast<unsigned short>(p.value), bytes / 2)
                                   : api.cuMemsetD32(address, p.value, bytes / 4);
    owner().check(result, "poisoning tensor '{}'", name);
  }
  uint64_t unwritten() const override {
    std::vector<std::byte> data(bytes);
    read(data);
    return count_poison(data, dtype);
  }
  uint64_t first_unwritten() const override {
    std::vector<std::byte> data(bytes);
    read(data);
    return first_poison(data, dtype);
  }

 private:
  const CudaDevice& owner() const { return static_cast<const CudaDevice&>(*device); }
};

class CudaLaunch : public PreparedLaunch {
 public:
  CudaLaunch(std::shared_ptr<CudaDevice> device, const Compiled& kernel, CudaDevice::Bound bound,
             std::span<const Argument> arguments)
      : device_(std::move(device)),
        kernel_(kernel),
        bound_(std::move(bound)),
        arguments_(arguments.begin(), arguments.end()) {}
  void enqueue() override {
    if (!bound_.function) return;
    device_->start(*bound_.function, kernel_.name, bound_.launch, kernel_.module->function(kernel_.entry), {},
                   bound_.description);
  }

 private:
  std::shared_ptr<CudaDevice> device_;
  Compiled kernel_;
  CudaDevice::Bound bound_;
  std::vector<Argument> arguments_;  // keeps the tensors
};

CudaDevice::CudaDevice(const Driver& driver, int ordinal) : api_(driver), name_(format("cuda:{}", ordinal)) {
  int count = 0;
  api_.check(api_.cuDeviceGetCount(&count), "counting GPUs");
  if (ordinal >= count)
    user_error({}, "no GPU {}: the CUDA driver of this machine shows {} GPU{}", name_, count,
               count == 1 ? "" : "s");
  api_.check(api_.cuDeviceGet(&id_, ordinal), "opening {}", name_);
  char product[256] = "";
  api_.check(api_.cuDeviceGetName(product, sizeof product, id_), "asking for the name of {}", name_);
  product_ = product;
  int capability = attribute(DeviceAttribute::compute_capability_major) * 10 +
                   attribute(DeviceAttribute::compute_capability_minor);
  // Architecture-specific targets exist from 9.0 on (PTX ISA, ".target"), and so do clusters.
  bool hopper_or_later = capability >= 90;
  limits_ = {
      .device = format("{} ({})", name_, product),
      .arch = format("sm_{}{}", capability, hopper_or_later ? "a" : ""),
      .shared_per_cta = static_cast<uint32_t>(attribute(DeviceAttribute::max_shared_memory_per_block_optin)),
      .max_cluster = hopper_or_later ? 16u : 1u,
      .threads_per_cta = static_cast<uint32_t>(attribute(DeviceAttribute::max_threads_per_block))};
  sms_ = static_cast<uint32_t>(attribute(DeviceAttribute::multiprocessor_count));
  api_.check(api_.cuDevicePrimaryCtxRetain(&context_, id_), "creating a context on {}", name_);
  make_current();
  api_.check(api_.cuEventCreate(&start_, 0), "creating an event on {}", name_);
  api_.check(api_.cuEventCreate(&stop_, 0), "creating an event on {}", name_);
  modules_ = std::make_unique<ModuleCache>(api_);
}

CudaDevice::~CudaDevice() {
  if (!try_make_current()) return;  // the driver is shutting down
  modules_.reset();
  api_.cuEventDestroy(start_);
  api_.cuEventDestroy(stop_);
  api_.cuDevicePrimaryCtxRelease(id_);
}

int CudaDevice::attribute(DeviceAttribute a) const {
  int value = 0;
  api_.check(api_.cuDeviceGetAttribute(&value, a, id_), "asking {} for attribute {}", name_,
             static_cast<int>(a));
  return value;
}

Tensor CudaDevice::tensor(DType dtype, std::vector<int64_t> shape, std::string_view name) {
  auto storage = std::make_shared<CudaStorage>();
  describe_storage(*storage, shared_from_this(), dtype, std::move(shape), name);
  if (storage->bytes == 0) return Tensor(std::move(storage));  // cuMemAlloc refuses it
  make_current();
  DevicePointer address = 0;
  check(api_.cuMemAlloc(&address, storage->bytes), "allocating {} bytes for tensor '{}' on {}",
        storage->bytes, storage->name, limits_.device);
  storage->address = address;
  storage->poison();
  return Tensor(std::move(storage));
}

sim::TensorMapObject CudaDevice::tensor_map(const sim::TensorMapSpec& spec) const {
  if (const std::string broken = sim::broken_rule(spec); !broken.empty())
    user_error({}, "tensor map: {}", broken);
  struct alignas(sim::kTensorMapAlign) {
    sim::TensorMapObject object{};
  } map;
  make_current();
  api_.check(
      api_.cuTensorMapEncodeTiled(map.object.data(), static_cast<int>(spec.type), spec.rank, spec.address,
                                  spec.dims.data(), spec.strides.data() + 1, spec.box.data(),
                                  spec.element_strides.data(), static_cast<int>(spec.interleave),
                                  static_cast<int>(spec.swizzle), static_cast<int>(spec.l2), spec.nan_fill),
      "encoding a tensor map on {}", limits_.device);
  return map.object;
}

CudaDevice::Bound CudaDevice::bind(const Compiled& kernel, std::span<const Argument> arguments) {
  check_target(kernel.name, kernel.module->arch(), limits_);
  Binding binding = bind_arguments(kernel, arguments, *this);
  if (binding.empty()) return {};
  check_extents(kernel.name, binding.launch, limits_);
  make_current();
  return {&modules_->function(*kernel.text, kernel.entry, kernel.name), binding.launch,
          describe_launch(kernel, arguments, binding)};
}

LaunchResult CudaDevice::launch(const Compiled& kernel, std::span<const Argument> arguments,
                                const LaunchOptions& options) {
  Bound b = bind(kernel, arguments);
  if (!b.function) return {};
  return start(*b.function, kernel.name, b.launch, kernel.module->function(kernel.entry), options,
               std::move(b.description));
}

std::unique_ptr<PreparedLaunch> CudaDevice::prepare(const Compiled& kernel,
                                                    std::span<const Argument> arguments) {
  return std::make_unique<CudaLaunch>(std::static_pointer_cast<CudaDevice>(shared_from_this()), kernel,
                                      bind(kernel, arguments), arguments);
}

double CudaDevice::time(const std::function<void()>& work) {
  make_current();
  check(api_.cuEventRecord(start_, nullptr), "timing on {}", name_);
  work();
  check(api_.cuEventRecord(stop_, nullptr), "timing on {}", name_);
  check(api_.cuEventSynchronize(stop_), "waiting for {}", limits_.device);
  float milliseconds = 0;
  check(api_.cuEventElapsedTime(&milliseconds, start_, stop_), "timing on {}", name_);
  return milliseconds * 1e-3;
}

LaunchResult CudaDevice::launch_ptx(const ptx::Module& module, std::string_view entry,
                                    const sim::Launch& launch, const LaunchOptions& options) {
  check_target(entry, module.arch(), limits_);
  check_extents(entry, launch, limits_);
  make_current();
  LoadedFunction& function = modules_->function(ptx::print(module), std::string(entry), entry);
  return start(function, entry, launch, module.function(entry), options, describe_launch(entry, launch));
}

void CudaDevice::synchronize() {
  make_current();
  check(api_.cuCtxSynchronize(), "waiting for {}", limits_.device);
}

void CudaDevice::fail(Result result, const std::string& what) const {
  std::string text = format("{}: {}", what, api_.describe(result));
  std::vector<Note> notes;
  std::lock_guard lock(mutex_);
  if (!last_launch_.empty()) notes.push_back({{}, "the last launch was " + last_launch_});
  if (loses_context(result))
    notes.push_back({{}, "the driver will refuse all further work of this process; start it again"});
  throw Error(ErrorKind::driver, {}, std::move(text), std::move(notes));
}

void CudaDevice::opt_in(LoadedFunction& f, std::string_view kernel, const sim::Launch& launch) const {
  check_shared(kernel, f.static_shared, launch.dynamic_shared, limits_);
  if (launch.block.count() > f.threads_per_cta)
    user_error({}, "{}: a CTA has {} threads, but at {} registers a thread no more than {} fit on {}", kernel,
               launch.block.count(), f.registers, f.threads_per_cta, limits_.device);
  if (launch.dynamic_shared > f.dynamic_shared_opt_in) {
    check(api_.cuFuncSetAttribute(f.handle, FunctionAttribute::max_dynamic_shared_size_bytes,
                                  static_cast<int>(launch.dynamic_shared)),
          "{}: opting in to {} bytes of dynamic shared memory", kernel, launch.dynamic_shared);
    f.dynamic_shared_opt_in = launch.dynamic_shared;
  }
  constexpr uint64_t kPortableCluster = 8;  // CUDA Programming Guide, "Thread Block Clusters"
  if (launch.cluster.count() > kPortableCluster && !f.any_cluster) {
    check(api_.cuFuncSetAttribute(f.handle, FunctionAttribute::non_portable_cluster_size_allowed, 1),
          "{}: opting in to clusters of more than {} CTAs", kernel, kPortableCluster);
    f.any_cluster = true;
  }
}

LaunchResult CudaDevice::start(LoadedFunction& function, std::string_view kernel, const sim::Launch& launch,
                               const ptx::Function* entry, const LaunchOptions& options,
                               std::string description) {
  if (!entry) internal_error({}, "{}: the module has no such entry", kernel);
  opt_in(function, kernel, launch);
  LaunchConfig config{.grid_x = launch.grid.x,
                      .grid_y = launch.grid.y,
                      .grid_z = launch.grid.z,
                      .block_x = launch.block.x,
                      .block_y = launch.block.y,
                      .block_z = launch.block.z,
                      .dynamic_shared_bytes = launch.dynamic_shared};
  std::array<LaunchAttribute, 2> attributes;
  config.attributes = attributes.data();
  if (launch.cluster.count() > 1) {
    LaunchAttribute& cluster = attributes[config.attribute_count++];
    cluster.id = LaunchAttribute::cluster_dimension;
    cluster.value.cluster = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  }
  if (options.dependent) {
    LaunchAttribute& dependent = attributes[config.attribute_count++];
    dependent.id = LaunchAttribute::programmatic_stream_serialization;
    dependent.value.programmatic_stream_serialization_allowed = 1;
  }
  // One by one: the driver aligns parameters by their address in the constant bank, where the block does not
  // start at a multiple of 64.
  std::vector<void*> params;
  for (uint32_t offset : ptx::parameter_offsets(*entry))
    params.push_back(const_cast<std::byte*>(launch.params.data() + offset));
  {
    std::lock_guard lock(mutex_);
    last_launch_ = std::move(description);
  }
  if (options.timed) return {.seconds = timed(kernel, config, function.handle, params.data()), .sim = {}};
  check(api_.cuLaunchKernelEx(&config, function.handle, params.data(), nullptr), "launching {}", kernel);
  return {};
}

double CudaDevice::timed(std::string_view kernel, const LaunchConfig& config, Function function,
                         void** params) {
  check(api_.cuEventRecord(start_, nullptr), "timing {}", kernel);
  check(api_.cuLaunchKernelEx(&config, function, params, nullptr), "launching {}", kernel);
  check(api_.cuEventRecord(stop_, nullptr), "timing {}", kernel);
  check(api_.cuEventSynchronize(stop_), "waiting for {}", kernel);
  float milliseconds = 0;
  check(api_.cuEventElapsedTime(&milliseconds, start_, stop_), "timing {}", kernel);
  return milliseconds * 1e-3;
}

}  // namespace

std::shared_ptr<Device> make_cuda_device(const Driver& driver, int ordinal) {
  return std::make_shared<CudaDevice>(driver, ordinal);
}

std::shared_ptr<Device> open_cuda(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Device>> open;
  std::lock_guard lock(mutex);
  std::weak_ptr<Device>& slot = open[ordinal];
  if (std::shared_ptr<Device> device = slot.lock()) return device;
  auto device = make_cuda_device(cuda::driver(), ordinal);
  slot = device;
  return device;
}

}  // namespace tw
