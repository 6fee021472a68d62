#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewright/base/format.h"

// The part of the CUDA Driver API (version 12) that a launch needs, declared here so that building needs no
// toolkit. Names, values and layouts are those of the "CUDA Driver API" reference manual; functions whose
// exported symbol carries a version suffix say so in cuda_driver.cpp.
namespace tw::cuda {

using Result = int;  // CUresult; 0: success
using DeviceId = int;
using DevicePointer = unsigned long long;
using Context = struct ContextHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;

// CUdevice_attribute
enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  multiprocessor_count = 16,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_block_optin = 97,
};

// CUfunction_attribute
enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  shared_size_bytes = 1,
  local_size_bytes = 3,
  num_regs = 4,
  max_dynamic_shared_size_bytes = 8,
  non_portable_cluster_size_allowed = 14,
};

// CUjit_option
enum class JitOption : int {
  info_log_buffer = 3,
  info_log_buffer_size_bytes = 4,
  error_log_buffer = 5,
  error_log_buffer_size_bytes = 6,
};

// CUlaunchAttribute: an id, padding to 8 bytes, and a value of 64 bytes.
struct LaunchAttribute {
  static constexpr int cluster_dimension = 4;  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  static constexpr int programmatic_stream_serialization = 6;
  int id = 0;
  int padding = 0;
  union Value {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic_stream_serialization_allowed;
  } value = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

// CUlaunchConfig
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned dynamic_shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

struct Driver {
  Result (*cuInit)(unsigned flags);
  Result (*cuDriverGetVersion)(int* version);
  Result (*cuGetErrorName)(Result error, const char** text);
  Result (*cuGetErrorString)(Result error, const char** text);

  Result (*cuDeviceGetCount)(int* count);
  Result (*cuDeviceGet)(DeviceId* device, int ordinal);
  Result (*cuDeviceGetName)(char* name, int length, DeviceId device);
  Result (*cuDeviceGetAttribute)(int* value, DeviceAttribute attribute, DeviceId device);
  Result (*cuDevicePrimaryCtxRetain)(Context* context, DeviceId device);
  Result (*cuDevicePrimaryCtxRelease)(DeviceId device);
  Result (*cuCtxSetCurrent)(Context context);
  Result (*cuCtxSynchronize)();

  Result (*cuMemAlloc)(DevicePointer* pointer, size_t bytes);
  Result (*cuMemFree)(DevicePointer pointer);
  Result (*cuMemcpyHtoD)(DevicePointer to, const void* from, size_t bytes);
  Result (*cuMemcpyDtoH)(void* to, DevicePointer from, size_t bytes);
  Result (*cuMemsetD8)(DevicePointer to, unsigned char value, size_t count);
  Result (*cuMemsetD16)(DevicePointer to, unsigned short value, size_t count);
  Result (*cuMemsetD32)(DevicePointer to, unsigned value, size_t count);

  Result (*cuModuleLoadDataEx)(Module* module, const void* image, unsigned count, JitOption* options,
                               void** values);
  Result (*cuModuleUnload)(Module module);
  Result (*cuModuleGetFunction)(Function* function, Module module, const char* name);
  Result (*cuFuncGetAttribute)(int* value, FunctionAttribute attribute, Function function);
  Result (*cuFuncSetAttribute)(Function function, FunctionAttribute attribute, int value);
  Result (*cuLaunchKernelEx)(const LaunchConfig* config, Function function, void** params, void** extra);

  // Type, interleave, swizzle, promotion and fill are the enumerators of TensorMapSpec.
  Result (*cuTensorMapEncodeTiled)(void* map, int type, uint32_t rank, DevicePointer address,
                                   const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                                   const uint32_t* element_strides, int interleave, int swizzle,
                                   int l2_promotion, int fill);

  Result (*cuEventCreate)(Event* event, unsigned flags);
  Result (*cuEventDestroy)(Event event);
  Result (*cuEventRecord)(Event event, Stream stream);
  Result (*cuEventSynchronize)(Event event);
  Result (*cuEventElapsedTime)(float* milliseconds, Event start, Event end);

  // "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string describe(Result result) const;

  // Throws ErrorKind::driver unless `result` is success: "WHAT: CUDA_ERROR_... (text)", WHAT being formatted
  // on failure only.
  template <class... Args>
  void check(Result result, fmt::format_string<Args...> what, Args&&... args) const {
    if (result != 0) fail(result, tw::vformat(what, fmt::make_format_args(args...)));
  }
  [[noreturn]] void fail(Result result, std::string_view what) const;
};

// Loads and initialises the driver. User errors: no such library on this machine, a symbol missing in it (an
// older driver), no usable GPU.
Driver load_driver(const char* library);
// The system's driver, loaded once; the error of a failed load repeats on every call.
const Driver& driver();

}  // namespace tw::cuda
