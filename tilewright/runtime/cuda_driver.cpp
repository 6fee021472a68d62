#include "tilewright/runtime/cuda_driver.h"

#include <dlfcn.h>

#include <string>

#include "tilewright/base/error.h"

namespace tw::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";  // the name the display driver installs on Linux

// The process keeps the library until it ends: the driver does not support being unloaded.
void* open_library(const char* library) {
  if (void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* reason = dlerror();
  user_error({},
             "no CUDA driver: looked for {} in the library search path ({}); install the NVIDIA driver, in a "
             "container "
             "pass the GPU through, or run on a simulated device such as sim:h200",
             library, reason ? reason : "no reason given");
}

class Symbols {
 public:
  Symbols(void* handle, const char* library) : handle_(handle), library_(library) {}

  template <class F>
  void resolve(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(dlsym(handle_, symbol));
    if (!function)
      user_error({}, "the CUDA driver {} has no {}; a driver of CUDA 12 or newer (version 525 on) is needed",
                 library_, symbol);
  }

 private:
  void* handle_;
  const char* library_;
};

}  // namespace

std::string Driver::describe(Result result) const {
  const char *error_name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &error_name) != 0 || !error_name) return format("CUDA error {}", result);
  if (cuGetErrorString(result, &text) != 0 || !text) return error_name;
  return format("{} ({})", error_name, text);
}

void Driver::fail(Result result, std::string_view what) const {
  throw Error(ErrorKind::driver, {}, format("{}: {}", what, describe(result)));
}

Driver load_driver(const char* library) {
  Symbols s(open_library(library), library);
  Driver d{};
  s.resolve(d.cuInit, "cuInit");
  s.resolve(d.cuDriverGetVersion, "cuDriverGetVersion");
  s.resolve(d.cuGetErrorName, "cuGetErrorName");
  s.resolve(d.cuGetErrorString, "cuGetErrorString");
  s.resolve(d.cuDeviceGetCount, "cuDeviceGetCount");
  s.resolve(d.cuDeviceGet, "cuDeviceGet");
  s.resolve(d.cuDeviceGetName, "cuDeviceGetName");
  s.resolve(d.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  s.resolve(d.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  s.resolve(d.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  s.resolve(d.cuCtxSetCurrent, "cuCtxSetCurrent");
  s.resolve(d.cuCtxSynchronize, "cuCtxSynchronize");
  s.resolve(d.cuMemAlloc, "cuMemAlloc_v2");
  s.resolve(d.cuMemFree, "cuMemFree_v2");
  s.resolve(d.cuMemcpyHtoD, "cuMemcpyHtoD_v2");
  s.resolve(d.cuMemcpyDtoH, "cuMemcpyDtoH_v2");
  s.resolve(d.cuMemsetD8, "cuMemsetD8_v2");
  s.resolve(d.cuMemsetD16, "cuMemsetD16_v2");
  s.resolve(d.cuMemsetD32, "cuMemsetD32_v2");
  s.resolve(d.cuModuleLoadDataEx, "cuModuleLoadDataEx");
  s.resolve(d.cuModuleUnload, "cuModuleUnload");
  s.resolve(d.cuModuleGetFunction, "cuModuleGetFunction");
  s.resolve(d.cuFuncGetAttribute, "cuFuncGetAttribute");
  s.resolve(d.cuFuncSetAttribute, "cuFuncSetAttribute");
  s.resolve(d.cuLaunchKernelEx, "cuLaunchKernelEx");
  s.resolve(d.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  s.resolve(d.cuEventCreate, "cuEventCreate");
  s.resolve(d.cuEventDestroy, "cuEventDestroy_v2");
  s.resolve(d.cuEventRecord, "cuEventRecord");
  s.resolve(d.cuEventSynchronize, "cuEventSynchronize");
  s.resolve(d.cuEventElapsedTime, "cuEventElapsedTime");  // _v2 exists from CUDA 12.8 on only
  if (Result result = d.cuInit(0); result != 0)
    user_error({}, "the CUDA driver {} finds no usable GPU: {}", library, d.describe(result));
  return d;
}

const Driver& driver() {
  static const Driver loaded = load_driver(kLibrary);
  return loaded;
}

}  // namespace tw::cuda
