#include <mutex>
#include <new>
#include <unordered_map>

#include "tilewright/base/error.h"
#include "tilewright/runtime/backends.h"
#include "tilewright/runtime/launch.h"
#include "tilewright/runtime/storage.h"
#include "tilewright/sim/global_memory.h"
#include "tilewright/sim/simulator.h"

namespace tw {
namespace {

class SimStorage : public Tensor::Storage {
 public:
  SimStorage(sim::GlobalMemory& memory) : memory_(memory) {}
  ~SimStorage() override {
    if (address != 0) memory_.free(address);
  }
  void write(std::span<const std::byte> data) override { memory_.write(address, data); }
  void read(std::span<std::byte> data) const override { memory_.read(address, data); }
  void poison() override { memory_.poison(address, bytes); }
  uint64_t unwritten() const override { return memory_.unwritten(address, bytes); }
  uint64_t first_unwritten() const override { return memory_.first_unwritten(address, bytes); }

 private:
  sim::GlobalMemory& memory_;  // of `device`, which this storage keeps alive
};

sim::Machine machine_of(const machine::Gpu& gpu) {
  return {.name = std::string(gpu.name),
          .arch = std::string(gpu.arch),
          .sms = gpu.sms,
          .shared_per_cta = gpu.shared_per_cta,
          .shared_per_sm = gpu.shared_per_sm,
          .registers_per_sm = gpu.registers_per_sm,
          .threads_per_sm = gpu.threads_per_sm,
          .tensor_memory_columns = gpu.tensor_memory_columns,
          .max_cluster = gpu.max_cluster};
}

sim::GridBefore grid_before(const DependentLaunch& dependent, const Device& device) {
  sim::GridBefore before;
  const auto add = [&](const Tensor& t, bool writes) {
    if (&t.device() != &device)
      user_error({}, "dependent launch: tensor '{}' is on {}, the kernel runs on {}", t.name(),
                 t.device().name(), device.name());
    if (t.bytes() != 0) before.uses.push_back({t.address(), t.address() + t.bytes(), writes});
  };
  for (const Tensor& t : dependent.written_before) add(t, true);
  for (const Tensor& t : dependent.read_before) add(t, false);
  return before;
}

class SimDevice : public Device {
 public:
  explicit SimDevice(const machine::Gpu& gpu)
      : gpu_(gpu),
        limits_{.device = format("sim:{}", gpu.name),
                .arch = std::string(gpu.arch),
                .shared_per_cta = gpu.shared_per_cta,
                .max_cluster = gpu.max_cluster} {}

  std::string_view name() const override { return limits_.device; }
  std::string_view target() const override { return gpu_.arch; }
  std::string product() const override { return format("simulated {}", gpu_.name); }
  uint32_t sm_count() const override { return gpu_.sms; }
  bool simulated() const override { return true; }
  void synchronize() override {}  // a launch returns when it is done

  Tensor tensor(DType dtype, std::vector<int64_t> shape, std::string_view name) override {
    auto storage = std::make_shared<SimStorage>(memory_);
    describe_storage(*storage, shared_from_this(), dtype, std::move(shape), name);
    if (storage->bytes == 0) return Tensor(std::move(storage));
    try {
      storage->address = memory_.allocate(storage->bytes, storage->name);
    } catch (const std::bad_alloc&) {
      user_error({}, "tensor '{}' of {} bytes does not fit into this machine's memory", storage->name,
                 storage->bytes);
    }
    return Tensor(std::move(storage));
  }

  sim::TensorMapObject tensor_map(const sim::TensorMapSpec& spec) const override { return sim::encode(spec); }

  LaunchResult launch(const Compiled& kernel, std::span<const Argument> arguments,
                      const LaunchOptions& options) override {
    check_target(kernel.name, kernel.module->arch(), limits_);
    Binding binding = bind_arguments(kernel, arguments, *this);
    if (binding.empty()) return {};
    check_extents(kernel.name, binding.launch, limits_);
    std::shared_ptr<const sim::Program> program = decoded(
        *kernel.text, kernel.entry, [&] { return kernel.module; }, kernel.names);
    check_shared(kernel.name, program->static_shared(), binding.launch.dynamic_shared, limits_);
    if (program->param_bytes() != binding.launch.params.size())
      internal_error({}, "{}: entry {} has a parameter block of {} bytes, its description makes {}",
                     kernel.name, kernel.entry, program->param_bytes(), binding.launch.params.size());
    return run(*program, binding.launch, options,
               [&] { return describe_launch(kernel, arguments, binding); });
  }

  LaunchResult launch_ptx(const ptx::Module& module, std::string_view entry, const sim::Launch& launch,
                          const LaunchOptions& options) override {
    check_target(entry, module.arch(), limits_);
    check_extents(entry, launch, limits_);
    // With the names' address: the same text may come with others. A kept program keeps its names too.
    const std::string text =
        format("{}\n{}", ptx::print(module), static_cast<const void*>(options.names.get()));
    std::shared_ptr<const sim::Program> program = decoded(
        text, entry, [&] { return std::make_shared<ptx::Module>(module); }, options.names);
    check_shared(entry, program->static_shared(), launch.dynamic_shared, limits_);
    return run(*program, launch, options, [&] { return describe_launch(entry, launch); });
  }

 private:
  // Programs are kept by the text they were decoded from.
  std::shared_ptr<const sim::Program> decoded(const std::string& text, std::string_view entry, auto module,
                                              std::shared_ptr<const ptx::DebugMap> names) {
    std::string key = text;
    key.append("\n").append(entry);
    std::lock_guard lock(mutex_);
    std::shared_ptr<const sim::Program>& program = programs_[std::move(key)];
    if (!program)
      program = std::make_shared<sim::Program>(module(), entry, machine_of(gpu_), std::move(names));
    return program;
  }

  LaunchResult run(const sim::Program& program, const sim::Launch& launch, const LaunchOptions& options,
                   auto describe) {
    sim::Launch described = launch;
    if (options.dependent) described.grid_before = grid_before(*options.dependent, *this);
    try {
      sim::RunStats stats = program.run(described, memory_, options.sim);
      return {.seconds = stats.seconds, .sim = stats};
    } catch (const Error& e) {
      throw e.with_note({}, "in " + describe());
    }
  }

  const machine::Gpu& gpu_;
  LaunchLimits limits_;
  sim::GlobalMemory memory_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const sim::Program>> programs_;
};

}  // namespace

std::shared_ptr<Device> open_sim(const machine::Gpu& gpu) { return std::make_shared<SimDevice>(gpu); }

}  // namespace tw
