#include "tilewright/runtime/cuda_module.h"

#include <array>
#include <cstring>

#include "tilewright/base/error.h"

namespace tw::cuda {

ModuleCache::~ModuleCache() {
  for (auto& [text, loaded] : modules_)
    if (loaded.module) driver_.cuModuleUnload(loaded.module);
}

LoadedFunction& ModuleCache::function(const std::string& text, const std::string& entry,
                                      std::string_view kernel) {
  std::lock_guard lock(mutex_);
  Loaded& loaded = modules_[text];
  if (!loaded.module) loaded.module = load(text, kernel);
  LoadedFunction& f = loaded.functions[entry];
  if (f.handle) return f;

  LoadedFunction made;
  driver_.check(driver_.cuModuleGetFunction(&made.handle, loaded.module, entry.c_str()),
                "{}: finding entry {}", kernel, entry);
  auto attribute = [&](FunctionAttribute a) {
    int value = 0;
    driver_.check(driver_.cuFuncGetAttribute(&value, a, made.handle), "{}: asking for a function attribute",
                  kernel);
    return static_cast<uint32_t>(value);
  };
  made.static_shared = attribute(FunctionAttribute::shared_size_bytes);
  made.registers = attribute(FunctionAttribute::num_regs);
  made.local_bytes = attribute(FunctionAttribute::local_size_bytes);
  made.threads_per_cta = attribute(FunctionAttribute::max_threads_per_block);
  return f = made;
}

Module ModuleCache::load(const std::string& text, std::string_view kernel) const {
  std::string info(16384, '\0'), error(16384, '\0');
  auto number = [](size_t n) { return reinterpret_cast<void*>(static_cast<uintptr_t>(n)); };
  std::array options{JitOption::info_log_buffer, JitOption::info_log_buffer_size_bytes,
                     JitOption::error_log_buffer, JitOption::error_log_buffer_size_bytes};
  std::array values{static_cast<void*>(info.data()), number(info.size()), static_cast<void*>(error.data()),
                    number(error.size())};
  Module module = nullptr;
  Result result =
      driver_.cuModuleLoadDataEx(&module, text.c_str(), options.size(), options.data(), values.data());
  if (result == 0) return module;
  std::string log;
  for (const std::string* part : {&error, &info})
    if ((*part)[0] != '\0') log += format("\n{}", part->c_str());
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
  throw Error(
      ErrorKind::driver, {},
      format("{}: the driver's compiler refuses the PTX: {}{}", kernel, driver_.describe(result), log));
}

}  // namespace tw::cuda
