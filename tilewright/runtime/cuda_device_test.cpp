#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tilewright/runtime/backends.h"
#include "tilewright/runtime/testing.h"

// The CUDA device against a driver that records what it is asked and fails where a test tells it to. What a
// real driver makes of the same calls is in device_test.cpp.
namespace tw {
namespace {

using testing::message_of;

constexpr int kInvalidPtx = 218, kOutOfMemory = 2, kIllegalAddress = 700;

struct Record {
  int modules_loaded = 0, modules_unloaded = 0, contexts = 0, launches = 0;
  std::string text;                                   // of the last module
  cuda::LaunchConfig config;                          // of the last launch
  std::vector<unsigned> cluster;                      // its cluster attribute, if any
  std::vector<int> dependent;                         // of programmatic stream serialization, likewise
  std::vector<size_t> param_bytes = {8};              // of the entry that a test launches
  std::vector<std::vector<std::byte>> params;         // of the last launch
  std::map<int, int> function_attributes;             // set ones
  std::map<cuda::DevicePointer, size_t> allocations;  // alive ones
  std::vector<std::pair<unsigned, size_t>> fills;     // value and count of every memset
  int load_result = 0, alloc_result = 0, synchronize_result = 0;
};
Record* record;  // of the running test; the driver's functions carry no state of their own

cuda::Result launch(const cuda::LaunchConfig* config, cuda::Function, void** params, void**) {
  ++record->launches;
  record->config = *config;
  record->cluster.clear();
  record->dependent.clear();
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const cuda::LaunchAttribute& a = config->attributes[i];
    if (a.id == cuda::LaunchAttribute::cluster_dimension)
      record->cluster = {a.value.cluster.x, a.value.cluster.y, a.value.cluster.z};
    if (a.id == 6)  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
      record->dependent.push_back(a.value.programmatic_stream_serialization_allowed);
  }
  record->params.clear();
  for (size_t i = 0; i < record->param_bytes.size(); ++i) {
    const auto* data = static_cast<const std::byte*>(params[i]);
    record->params.emplace_back(data, data + record->param_bytes[i]);
  }
  return 0;
}

cuda::Result load(cuda::Module* module, const void* image, unsigned count, cuda::JitOption* options,
                  void** values) {
  ++record->modules_loaded;
  record->text = static_cast<const char*>(image);
  for (unsigned i = 0; i < count && record->load_result; ++i)
    if (options[i] == cuda::JitOption::error_log_buffer)
      std::strcpy(static_cast<char*>(values[i]),
                  "ptxas application ptx input, line 3; fatal: Parsing error near 'mvo'\n");
  *module = reinterpret_cast<cuda::Module>(uintptr_t{1});
  return record->load_result;
}

cuda::Result device_attribute(int* value, cuda::DeviceAttribute attribute, cuda::DeviceId) {
  switch (attribute) {
    case cuda::DeviceAttribute::max_threads_per_block: *value = 1024; return 0;
    case cuda::DeviceAttribute::multiprocessor_count: *value = 132; return 0;
    case cuda::DeviceAttribute::compute_capability_major: *value = 9; return 0;
    case cuda::DeviceAttribute::compute_capability_minor: *value = 0; return 0;
    case cuda::DeviceAttribute::max_shared_memory_per_block_optin: *value = 232448; return 0;
  }
  return 1;
}

cuda::Result function_attribute(int* value, cuda::FunctionAttribute attribute, cuda::Function) {
  switch (attribute) {
    case cuda::FunctionAttribute::max_threads_per_block: *value = 384; return 0;
    case cuda::FunctionAttribute::shared_size_bytes: *value = 1024; return 0;
    case cuda::FunctionAttribute::num_regs: *value = 168; return 0;
    default: *value = 0; return 0;
  }
}

template <class T>
T handle() {
  return reinterpret_cast<T>(uintptr_t{1});
}

cuda::Driver recording_driver() {
  using namespace cuda;
  Driver d{};
  d.cuGetErrorName = [](Result r, const char** text) {
    *text = r == kInvalidPtx    ? "CUDA_ERROR_INVALID_PTX"
            : r == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
                                : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return 0;
  };
  d.cuGetErrorString = [](Result r, const char** text) {
    *text = r == kInvalidPtx    ? "a PTX JIT compilation failed"
            : r == kOutOfMemory ? "out of memory"
                                : "an illegal memory access was encountered";
    return 0;
  };
  d.cuDeviceGetCount = [](int* count) { return *count = 1, 0; };
  d.cuDeviceGet = [](DeviceId* id, int ordinal) { return *id = ordinal, 0; };
  d.cuDeviceGetName = [](char* name, int, DeviceId) { return std::strcpy(name, "NVIDIA H200"), 0; };
  d.cuDeviceGetAttribute = device_attribute;
  d.cuDevicePrimaryCtxRetain = [](Context* c, DeviceId) {
    return *c = handle<Context>(), ++record->contexts, 0;
  };
  d.cuDevicePrimaryCtxRelease = [](DeviceId) { return --record->contexts, 0; };
  d.cuCtxSetCurrent = [](Context) { return 0; };
  d.cuCtxSynchronize = [] { return record->synchronize_result; };
  d.cuMemAlloc = [](DevicePointer* p, size_t bytes) {
    *p = 0x7f0000000000 + 0x100000 * record->allocations.size();
    if (record->alloc_result == 0) record->allocations[*p] = bytes;
    return record->alloc_result;
  };
  d.cuMemFree = [](DevicePointer p) { return record->allocations.erase(p) == 1 ? 0 : 1; };
  d.cuMemsetD8 = [](DevicePointer, unsigned char v, size_t n) { return record->fills.emplace_back(v, n), 0; };
  d.cuMemsetD16 = [](DevicePointer, unsigned short v, size_t n) {
    return record->fills.emplace_back(v, n), 0;
  };
  d.cuMemsetD32 = [](DevicePointer, unsigned v, size_t n) { return record->fills.emplace_back(v, n), 0; };
  d.cuModuleLoadDataEx = load;
  d.cuModuleUnload = [](Module) { return ++record->modules_unloaded, 0; };
  d.cuModuleGetFunction = [](Function* f, Module, const char*) { return *f = handle<Function>(), 0; };
  d.cuFuncGetAttribute = function_attribute;
  d.cuFuncSetAttribute = [](Function, FunctionAttribute a, int value) {
    return record->function_attributes[static_cast<int>(a)] = value, 0;
  };
  d.cuLaunchKernelEx = launch;
  d.cuEventCreate = [](Event* e, unsigned) { return *e = handle<Event>(), 0; };
  d.cuEventDestroy = [](Event) { return 0; };
  d.cuEventRecord = [](Event, Stream) { return 0; };
  d.cuEventSynchronize = [](Event) { return record->synchronize_result; };
  d.cuEventElapsedTime = [](float* milliseconds, Event, Event) { return *milliseconds = 2.5f, 0; };
  return d;
}

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    record = &record_;
    device = make_cuda_device(driver_, 0);
  }

  Compiled kernel(std::string_view target = "sm_90a") {
    auto module = std::make_shared<ptx::Module>();
    module->target = {std::string(target)};
    ptx::Variable x;
    x.space = ptx::Space::param;
    x.type = ptx::Type::u64;
    x.name = "x";
    ptx::Function entry;
    entry.name = "copy_step1";
    entry.params = {x};
    module->items.push_back(entry);
    Compiled k;
    k.name = "copy.step1";
    k.entry = "copy_step1";
    k.module = module;
    k.text = std::make_shared<const std::string>("the text");
    k.params = {{.kind = Param::Kind::tensor,
                 .name = "X",
                 .dtype = DType::f16,
                 .shape = {{.value = 64, .symbol = ""}},
                 .align = 16,
                 .loc = {"copy.cpp", 4, 3}}};
    k.block[0] = 128;
    return k;
  }

  Record record_;
  const cuda::Driver driver_ = recording_driver();
  std::shared_ptr<Device> device;
};

TEST_F(CudaDevice, DescribesTheGpu) {
  EXPECT_EQ(device->name(), "cuda:0");
  EXPECT_EQ(device->product(), "NVIDIA H200");
  EXPECT_EQ(device->target(), "sm_90a");
  EXPECT_EQ(device->sm_count(), 132u);
  EXPECT_FALSE(device->simulated());
  EXPECT_EQ(message_of([&] { make_cuda_device(driver_, 3); }),
            "error: no GPU cuda:3: the CUDA driver of this machine shows 1 GPU");
}

TEST_F(CudaDevice, PassesTheLaunchOn) {
  Tensor x = device->tensor(DType::f16, {64}, "x");
  Compiled k = kernel();
  k.grid[0] = [](const auto&) { return 32; };
  k.cluster[0] = 16;
  k.dynamic_shared = 200000;
  device->launch(k, {x});
  EXPECT_EQ(record_.text, "the text");
  EXPECT_EQ(record_.config.grid_x, 32u);
  EXPECT_EQ(record_.config.block_x, 128u);
  EXPECT_EQ(record_.config.dynamic_shared_bytes, 200000u);
  EXPECT_EQ(record_.cluster, (std::vector<unsigned>{16, 1, 1}));
  uint64_t address = x.address();
  EXPECT_EQ(std::memcmp(record_.params[0].data(), &address, 8), 0);
  // CUfunction_attribute: 8 dynamic shared memory, 14 non-portable cluster sizes.
  EXPECT_EQ(record_.function_attributes, (std::map<int, int>{{8, 200000}, {14, 1}}));
}

TEST_F(CudaDevice, ADependentLaunchSaysSo) {
  Tensor x = device->tensor(DType::f16, {64}, "x");
  Compiled k = kernel();
  device->launch(k, {x}, {.sim = {}, .dependent = DependentLaunch{}});
  EXPECT_EQ(record_.dependent, std::vector<int>{1});
  EXPECT_TRUE(record_.cluster.empty());
  k.cluster[0] = 2;
  k.grid[0] = [](const auto&) { return 2; };
  device->launch(k, {x}, {.sim = {}, .dependent = DependentLaunch{{x}, {}}});
  EXPECT_EQ(record_.dependent, std::vector<int>{1});
  EXPECT_EQ(record_.cluster, (std::vector<unsigned>{2, 1, 1}));
  device->launch(k, {x});
  EXPECT_TRUE(record_.dependent.empty());
}

// cuLaunchKernel refuses a grid without CTAs, cuMemAlloc an allocation without bytes.
TEST_F(CudaDevice, AnEmptyGridLaunchesNothing) {
  Compiled k = kernel();
  k.params.clear();
  k.grid[0] = [](const auto&) { return 0; };
  device->launch(k, {}, {.sim = {}, .timed = true});
  device->prepare(k, {})->enqueue();
  EXPECT_TRUE(record_.text.empty());  // not even compiled
  size_t before = record_.allocations.size();
  Tensor none = device->tensor(DType::f16, {0, 64}, "none");
  EXPECT_EQ(record_.allocations.size(), before);
  EXPECT_TRUE(none.download().empty());
}

TEST_F(CudaDevice, APortableLaunchNeedsNoOptIn) {
  Compiled k = kernel();
  k.params.clear();
  k.module = [] {
    auto module = std::make_shared<ptx::Module>();
    module->target = {"sm_90a"};
    ptx::Function entry;
    entry.name = "copy_step1";
    module->items.push_back(entry);
    return module;
  }();
  record_.param_bytes.clear();
  k.grid[0] = [](const auto&) { return 8; };
  k.cluster[0] = 8;
  device->launch(k, {});
  EXPECT_TRUE(record_.function_attributes.empty());
  k.cluster[0] = 1;
  device->launch(k, {});
  EXPECT_TRUE(record_.cluster.empty());  // a kernel may fix its cluster itself, with .reqnctapercluster
}

TEST_F(CudaDevice, EachParameterIsPassedByItself) {
  ptx::Module module = ptx::parse(
      ".version 8.6\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128]) { ret; }",
      "k.ptx");
  sim::Launch launch;
  launch.grid = launch.cluster = {1, 1, 1};
  launch.block = {32, 1, 1};
  for (int i = 0; i < 192; ++i) launch.params.push_back(std::byte(i));
  record_.param_bytes = {8, 4, 128};
  device->launch_ptx(module, "k", launch, {});
  // "Kernel Function Parameters": each at its alignment in the block.
  EXPECT_EQ(record_.params[0].front(), std::byte(0));
  EXPECT_EQ(record_.params[1].front(), std::byte(8));
  EXPECT_EQ(record_.params[2].front(), std::byte(64));
  EXPECT_EQ(record_.params[2].back(), std::byte(191));
}

TEST_F(CudaDevice, CompilesEachTextOnce) {
  Tensor x = device->tensor(DType::f16, {64}, "x");
  device->launch(kernel(), {x});
  device->launch(kernel(), {x});
  EXPECT_EQ(record_.modules_loaded, 1);
  Compiled other = kernel();
  other.text = std::make_shared<const std::string>("another text");
  device->launch(other, {x});
  EXPECT_EQ(record_.modules_loaded, 2);
}

TEST_F(CudaDevice, GivesEverythingBack) {
  {
    Tensor x = device->tensor(DType::f16, {64}, "x");
    device->launch(kernel(), {x});
    device.reset();
    EXPECT_EQ(record_.contexts, 1);  // the tensor holds it
  }
  EXPECT_TRUE(record_.allocations.empty());
  EXPECT_EQ(record_.modules_unloaded, 1);
  EXPECT_EQ(record_.contexts, 0);
}

TEST_F(CudaDevice, TimesByEvents) {
  LaunchResult result =
      device->launch(kernel(), {device->tensor(DType::f16, {64})}, {.sim = {}, .timed = true});
  EXPECT_DOUBLE_EQ(result.seconds, 2.5e-3);
}

TEST_F(CudaDevice, APreparedLaunchIsRepeatedAndTimedAsAWhole) {
  std::unique_ptr<PreparedLaunch> prepared;
  {
    const Argument x[] = {device->tensor(DType::f16, {64}, "x")};
    prepared = device->prepare(kernel(), x);
  }
  EXPECT_EQ(record_.launches, 0);
  EXPECT_EQ(record_.allocations.size(), 1u);  // it keeps the tensor
  const double seconds = device->time([&] {
    for (int i = 0; i < 3; ++i) prepared->enqueue();
  });
  EXPECT_DOUBLE_EQ(seconds, 2.5e-3);
  EXPECT_EQ(record_.launches, 3);
  EXPECT_EQ(record_.modules_loaded, 1);
  prepared.reset();
  EXPECT_TRUE(record_.allocations.empty());
}

TEST_F(CudaDevice, PreparingChecksLikeLaunching) {
  const Argument wrong[] = {device->tensor(DType::f16, {65}, "x")};
  EXPECT_NE(message_of([&] { device->prepare(kernel(), wrong); }), "");
  EXPECT_EQ(record_.modules_loaded, 0);
}

TEST_F(CudaDevice, FreshTensorsArePoisoned) {
  device->tensor(DType::e4m3, {10});
  device->tensor(DType::bf16, {10});
  device->tensor(DType::f64, {10});
  EXPECT_EQ(record_.fills,
            (std::vector<std::pair<unsigned, size_t>>{{0xff, 10}, {0x7fad, 10}, {0x7ffadead, 20}}));
}

TEST_F(CudaDevice, AnotherArchitectureIsRefusedBeforeLoading) {
  EXPECT_EQ(message_of([&] { device->launch(kernel("sm_100a"), {device->tensor(DType::f16, {64})}); }),
            "error: copy.step1 cannot run on cuda:0 (NVIDIA H200): sm_100a is architecture-specific: it runs "
            "on that "
            "architecture alone, not on sm_90a; compile it for sm_90a");
  EXPECT_EQ(record_.modules_loaded, 0);
}

TEST_F(CudaDevice, LimitsOfTheFunction) {
  Tensor x = device->tensor(DType::f16, {64}, "x");
  Compiled k = kernel();
  k.block[0] = 512;
  EXPECT_EQ(message_of([&] { device->launch(k, {x}); }),
            "error: copy.step1: a CTA has 512 threads, but at 168 registers a thread no more than 384 fit on "
            "cuda:0 "
            "(NVIDIA H200)");
  k.block[0] = 128;
  k.dynamic_shared = 232448;
  EXPECT_EQ(message_of([&] { device->launch(k, {x}); }),
            "error: copy.step1: a CTA needs 233472 bytes of shared memory (1024 static, 232448 dynamic), "
            "cuda:0 (NVIDIA "
            "H200) allows 232448");
}

TEST_F(CudaDevice, ARefusedTextShowsTheCompilersLog) {
  record_.load_result = kInvalidPtx;
  EXPECT_EQ(message_of([&] { device->launch(kernel(), {device->tensor(DType::f16, {64})}); }),
            "driver error: copy.step1: the driver's compiler refuses the PTX: CUDA_ERROR_INVALID_PTX (a PTX "
            "JIT compilation "
            "failed)\nptxas application ptx input, line 3; fatal: Parsing error near 'mvo'");
}

TEST_F(CudaDevice, OutOfMemory) {
  record_.alloc_result = kOutOfMemory;
  EXPECT_EQ(message_of([&] {
              device->tensor(DType::f16, {1 << 20, 1 << 20}, "big");
            }),
            "driver error: allocating 2199023255552 bytes for tensor 'big' on cuda:0 (NVIDIA H200): "
            "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

TEST_F(CudaDevice, AFailureNamesTheLaunchItComesFrom) {
  Tensor x = device->tensor(DType::f16, {64}, "x");
  device->launch(kernel(), {x});
  record_.synchronize_result = kIllegalAddress;
  const std::string notes =
      "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)\n"
      "note: the last launch was copy.step1(X = f16 [64] at 0x7f0000000000), grid [1, 1, 1], block [128, 1, "
      "1], cluster "
      "[1, 1, 1], 0 bytes of dynamic shared memory\n"
      "note: the driver will refuse all further work of this process; start it again";
  EXPECT_EQ(message_of([&] { device->synchronize(); }),
            "driver error: waiting for cuda:0 (NVIDIA H200): " + notes);
  EXPECT_EQ(message_of([&] { device->launch(kernel(), {x}, {.sim = {}, .timed = true}); }),
            "driver error: waiting for copy.step1: " + notes);
}

}  // namespace
}  // namespace tw
