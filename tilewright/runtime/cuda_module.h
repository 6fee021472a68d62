#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tilewright/runtime/cuda_driver.h"

namespace tw::cuda {

// An entry of a loaded module, with what the driver's compiler made of it.
struct LoadedFunction {
  Function handle = nullptr;
  uint32_t static_shared = 0;    // bytes
  uint32_t registers = 0;        // per thread
  uint32_t local_bytes = 0;      // per thread: spills and local arrays
  uint32_t threads_per_cta = 0;  // the most that fit with these registers
  uint32_t dynamic_shared_opt_in = 0;
  bool any_cluster = false;  // opted in to clusters above the portable size
};

// Modules by the text they were compiled from: a text is compiled once a device. The context must be current.
class ModuleCache {
 public:
  explicit ModuleCache(const Driver& driver) : driver_(driver) {}
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  // Driver errors: the compiler refuses the text (with its log), no such entry. `kernel` is for messages. The
  // reference stays valid as long as the cache.
  LoadedFunction& function(const std::string& text, const std::string& entry, std::string_view kernel);

 private:
  struct Loaded {
    Module module = nullptr;
    std::unordered_map<std::string, LoadedFunction> functions;
  };
  Module load(const std::string& text, std::string_view kernel) const;

  const Driver& driver_;
  std::mutex mutex_;
  std::unordered_map<std::string, Loaded> modules_;
};

}  // namespace tw::cuda
