#include "tilewright/runtime/cublas.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>

#include "tilewright/base/error.h"

namespace tw::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries[] = {"libcublas.so.13", "libcublas.so.12"};

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Where Python installations have their lib folder: that of every python3 on PATH, followed link by link (a
// virtual environment is a link into another installation), and the usual ones.
std::vector<std::string> python_prefixes() {
  std::vector<std::string> prefixes;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (std::string prefix = environment(variable); !prefix.empty()) prefixes.push_back(prefix);
  std::stringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    fs::path python = fs::path(folder) / "python3";
    std::error_code error;
    for (int links = 0; links < 8 && fs::exists(python, error); ++links) {
      prefixes.push_back(python.parent_path().parent_path());
      if (!fs::is_symlink(python, error)) break;
      python = (python.parent_path() / fs::read_symlink(python, error)).lexically_normal();
    }
  }
  if (std::string home = environment("HOME"); !home.empty()) prefixes.push_back(home + "/.local");
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr", "/opt/*", "/opt/*/.venv"});
  return prefixes;
}

// NVIDIA's wheels for CUDA 13 share a folder, those for CUDA 12 have one each.
std::vector<std::string> in_python_packages(const std::string& library) {
  std::vector<std::string> files;
  for (const std::string& prefix : python_prefixes())
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const char* folder : {"nvidia/cu13/lib", "nvidia/cublas/lib"})
        for (std::string& file :
             matches(format("{}/lib/python3*/{}/{}/{}", prefix, packages, folder, library)))
          files.push_back(std::move(file));
  return files;
}

// libcublas needs its sibling libcublasLt, which it does not find by itself in a folder that is not on the
// search path: opened first, it is found by its name.
void open_sibling(const fs::path& library) {
  const std::string file = library.filename();
  constexpr std::string_view stem = "libcublas.so";
  if (!library.has_parent_path() || !file.starts_with(stem)) return;
  const fs::path sibling = library.parent_path() / ("libcublasLt.so" + file.substr(stem.size()));
  dlopen(sibling.c_str(), RTLD_NOW | RTLD_GLOBAL);  // a failure shows when the library itself is opened
}

template <class F>
void resolve(void* handle, const std::string& library, F*& function, const char* symbol) {
  function = reinterpret_cast<F*>(dlsym(handle, symbol));
  if (!function) user_error({}, "{} has no {}; a cuBLAS of CUDA 12 or newer is needed", library, symbol);
}

CublasApi resolve_all(void* handle, const std::string& library) {
  CublasApi api{};
  resolve(handle, library, api.cublasCreate, "cublasCreate_v2");
  resolve(handle, library, api.cublasDestroy, "cublasDestroy_v2");
  resolve(handle, library, api.cublasGetVersion, "cublasGetVersion_v2");
  resolve(handle, library, api.cublasSetWorkspace, "cublasSetWorkspace_v2");
  resolve(handle, library, api.cublasGetStatusString, "cublasGetStatusString");
  resolve(handle, library, api.cublasGemmEx, "cublasGemmEx");
  return api;
}

}  // namespace

std::vector<std::string> cublas_candidates(const std::string& where) {
  const std::string given = where.empty() ? environment("TW_CUBLAS") : where;
  std::vector<std::string> files;
  if (!given.empty()) {
    if (!fs::is_directory(given)) return {given};
    for (const char* library : kLibraries)
      if (fs::exists(fs::path(given) / library)) files.push_back(fs::path(given) / library);
    if (files.empty())
      user_error({}, "no cuBLAS in {}: it holds neither {} nor {}", given, kLibraries[0], kLibraries[1]);
    return files;
  }
  for (const char* library : kLibraries) {
    files.push_back(library);
    for (std::string& file : in_python_packages(library)) files.push_back(std::move(file));
    for (std::string& file : matches(format("/usr/local/cuda*/lib64/{}", library)))
      files.push_back(std::move(file));
  }
  return files;
}

LoadedCublas load_cublas(const std::string& where) {
  std::string tried;
  for (const std::string& file : cublas_candidates(where)) {
    open_sibling(file);
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return {resolve_all(handle, file), file};
    const char* reason = dlerror();
    tried += format("{}{}", tried.empty() ? "" : "; ", reason ? reason : file);
  }
  user_error(
      {},
      "no cuBLAS: {}; give the library or its folder by --cublas or TW_CUBLAS, or measure without it by "
      "--no-cublas",
      tried);
}

Cublas::Cublas(const CublasApi& api, uint64_t workspace) : api_(api) {
  check(api_.cublasCreate(&handle_), "cublasCreate");
  check(api_.cublasSetWorkspace(handle_, reinterpret_cast<void*>(workspace), kCublasWorkspace),
        "cublasSetWorkspace");
}

Cublas::~Cublas() {
  if (handle_) api_.cublasDestroy(handle_);
}

// Row-major D = A B^T is column-major D^T = (B^T)^T A^T: B read column-major is k x n, A is k x m.
void Cublas::gemm(uint64_t a, uint64_t b, uint64_t d, int64_t m, int64_t n, int64_t k, DType dtype) {
  if (dtype != DType::f16 && dtype != DType::bf16)
    user_error({}, "cuBLAS products are taken of f16 and bf16, not of {}", name(dtype));
  constexpr int64_t limit = std::numeric_limits<int>::max();
  if (m < 1 || n < 1 || k < 1 || m > limit || n > limit || k > limit)
    user_error({}, "cuBLAS takes extents from 1 to {}, got {} x {} x {}", limit, m, n, k);
  const CublasType type = dtype == DType::f16 ? CublasType::f16 : CublasType::bf16;
  const int rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
  const float alpha = 1, beta = 0;
  auto at = [](uint64_t address) { return reinterpret_cast<void*>(address); };
  check(api_.cublasGemmEx(handle_, CublasOperation::transpose, CublasOperation::none, rows, columns, depth,
                          &alpha, at(b), type, depth, at(a), type, depth, &beta, at(d), type, rows,
                          kCublasCompute32f, kCublasGemmDefault),
        "cublasGemmEx");
}

std::string Cublas::version() const {
  int version = 0;  // 10000 * major + 100 * minor + patch
  check(api_.cublasGetVersion(handle_, &version), "cublasGetVersion");
  return format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void Cublas::check(CublasStatus status, std::string_view call) const {
  if (status != 0)
    throw Error(ErrorKind::driver, {}, format("{}: {}", call, api_.cublasGetStatusString(status)));
}

}  // namespace tw::cuda
