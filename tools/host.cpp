#include "tools/host.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "tilewright/base/format.h"

namespace tw::tools {

namespace {

// The value after `key` in a file of "key : value" lines.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

uint64_t meminfo(std::string_view key) {
  return std::strtoull(proc_value("/proc/meminfo", key).c_str(), nullptr, 10) * 1024;
}

}  // namespace

Cpu host_cpu() {
  Cpu cpu;
  cpu.model = proc_value("/proc/cpuinfo", "model name");
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpu.usable_cores = CPU_COUNT(&set);
  const auto note = [&](const char* feature, bool has) {
    (has ? cpu.simd : cpu.simd_lack).emplace_back(feature);
  };
#if defined(__x86_64__)
  note("avx2", __builtin_cpu_supports("avx2") != 0);
  note("fma", __builtin_cpu_supports("fma") != 0);
  note("avx512f", __builtin_cpu_supports("avx512f") != 0);
  note("avx512bw", __builtin_cpu_supports("avx512bw") != 0);
#endif
  return cpu;
}

uint64_t host_memory_bytes() { return meminfo("MemTotal"); }
uint64_t host_free_memory_bytes() { return meminfo("MemAvailable"); }

std::string nvidia_driver() {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) return "";
  auto* cuda_version = reinterpret_cast<int (*)(int*)>(dlsym(cuda, "cuDriverGetVersion"));
  int version = 0;  // 1000 * major + 10 * minor
  if (cuda_version == nullptr || cuda_version(&version) != 0) return "";
  std::string served = format("CUDA {}.{}", version / 1000, version / 10 % 100);

  // NVML, the management library, comes with the driver ("NVML API Reference", System Queries).
  char driver[80] = "";
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (nvml == nullptr) return served;
  auto* start = reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2"));
  auto* ask = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(nvml, "nvmlSystemGetDriverVersion"));
  if (start == nullptr || ask == nullptr || start() != 0 || ask(driver, sizeof driver) != 0) return served;
  return format("{}, {}", driver, served);
}

std::optional<std::string> find_program(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH")) {
    std::istringstream in(path);
    for (std::string folder; std::getline(in, folder, ':');) folders.push_back(folder);
  }
  folders.insert(folders.end(), more.begin(), more.end());
  for (const std::string& folder : folders) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::string program_version(const std::string& path, const std::string& with) {
  const std::unique_ptr<FILE, int (*)(FILE*)> out(
      popen(("'" + path + "' --version 2>/dev/null").c_str(), "r"), pclose);
  std::array<char, 512> line{};
  while (out && std::fgets(line.data(), line.size(), out.get()) != nullptr) {
    std::string text(line.data());
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.find(with) != std::string::npos) return text;
  }
  return "";
}

}  // namespace tw::tools
