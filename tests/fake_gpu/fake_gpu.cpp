// A GPU for tests of programs: libcuda and libcublas in one library, with memory of the host and a clock of
// its own. Every kernel is taken for a bf16 product D = A B^T whose first parameters point at A, B and D and
// whose extents come from TW_FAKE_SHAPE ("256x128x64"). A launch takes 1 ms, a product of cuBLAS half of
// that. With TW_FAKE_FAULT=element a kernel leaves one element of D as it was. Functions, values and
// layouts: tilewright/runtime/cuda_driver.h, cublas.h.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

struct Event {
  double milliseconds;
};

double now = 0;  // milliseconds

struct Shape {
  int m = 0, n = 0, k = 0;
  Shape() {
    const char* text = std::getenv("TW_FAKE_SHAPE");
    if (!text || std::sscanf(text, "%dx%dx%d", &m, &n, &k) != 3) std::abort();
  }
};

float value(uint16_t code) {
  const uint32_t bits = uint32_t{code} << 16;
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
}

uint16_t nearest(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Row-major: d[m, n] = sum over k of a[m, k] b[n, k].
void multiply(const uint16_t* a, const uint16_t* b, uint16_t* d, int m, int n, int k) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += value(a[i * k + l]) * value(b[j * k + l]);
      d[i * n + j] = nearest(sum);
    }
}

int set(void* to, uint64_t handle) {
  std::memcpy(to, &handle, sizeof handle);
  return 0;
}

}  // namespace

extern "C" {

// --- the driver ---

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorName(int, const char** text) { return *text = "CUDA_ERROR_UNKNOWN", 0; }
int cuGetErrorString(int, const char** text) { return *text = "unknown error", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "Fake H200");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 1: *value = 1024; return 0;  // threads per block
    case 16: *value = 132; return 0;  // multiprocessors
    case 75: *value = 9; return 0;    // compute capability
    case 76: *value = 0; return 0;
    case 97: *value = 232448; return 0;  // shared memory per block, opt-in
    default: return 1;
  }
}
int cuDevicePrimaryCtxRetain(void* context, int) { return set(context, 1); }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuCtxSynchronize() { return 0; }

int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *pointer = reinterpret_cast<unsigned long long>(memory), memory ? 0 : 2;
}
int cuMemFree_v2(unsigned long long pointer) { return std::free(reinterpret_cast<void*>(pointer)), 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, size_t bytes) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t bytes) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuMemsetD8_v2(unsigned long long to, unsigned char v, size_t count) {
  return std::memset(reinterpret_cast<void*>(to), v, count), 0;
}
int cuMemsetD16_v2(unsigned long long to, unsigned short v, size_t count) {
  for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned short*>(to)[i] = v;
  return 0;
}
int cuMemsetD32_v2(unsigned long long, unsigned, size_t) { return 0; }  // only time would pass

int cuModuleLoadDataEx(void* module, const void*, unsigned, void*, void**) { return set(module, 1); }
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void* function, void*, const char*) { return set(function, 1); }
int cuFuncGetAttribute(int* value, int attribute, void*) { return *value = attribute == 0 ? 1024 : 0, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuLaunchKernelEx(const void*, void*, void** params, void**) {
  const Shape s;
  uint16_t* matrix[3];
  for (int i = 0; i < 3; ++i) std::memcpy(static_cast<void*>(&matrix[i]), params[i], sizeof(void*));
  const uint16_t last = matrix[2][s.m * s.n - 1];
  multiply(matrix[0], matrix[1], matrix[2], s.m, s.n, s.k);
  const char* fault = std::getenv("TW_FAKE_FAULT");
  if (fault && std::string_view(fault) == "element") matrix[2][s.m * s.n - 1] = last;
  now += 1;
  return 0;
}
int cuTensorMapEncodeTiled() { return 1; }

int cuEventCreate(void* event, unsigned) { return set(event, reinterpret_cast<uint64_t>(new Event{})); }
int cuEventDestroy_v2(Event* event) {
  delete event;
  return 0;
}
int cuEventRecord(Event* event, void*) { return event->milliseconds = now, 0; }
int cuEventSynchronize(Event*) { return 0; }
int cuEventElapsedTime(float* milliseconds, const Event* start, const Event* end) {
  return *milliseconds = static_cast<float>(end->milliseconds - start->milliseconds), 0;
}

// --- cuBLAS ---

int cublasCreate_v2(void* handle) { return set(handle, 1); }
int cublasDestroy_v2(void*) { return 0; }
int cublasGetVersion_v2(void*, int* version) { return *version = 130102, 0; }
int cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
const char* cublasGetStatusString(int) { return "CUBLAS_STATUS_NOT_SUPPORTED"; }
// Column-major C = op(A) op(B), here for A transposed, B not and dense bf16 matrices alone.
int cublasGemmEx(void*, int op_a, int op_b, int m, int n, int k, const void*, const void* a, int type,
                 int lda, const void* b, int, int ldb, const void*, void* c, int, int ldc, int, int) {
  if (op_a != 1 || op_b != 0 || type != 14 || lda != k || ldb != k || ldc != m) return 15;
  multiply(static_cast<const uint16_t*>(b), static_cast<const uint16_t*>(a), static_cast<uint16_t*>(c), n, m,
           k);
  now += 0.5;
  return 0;
}

}  // extern "C"
