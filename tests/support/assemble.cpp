#include "tests/support/assemble.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tilewright/base/error.h"

namespace tw::testing {
namespace fs = std::filesystem;

std::string find_cuda_tool(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path ? path : "") + ":/usr/local/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder) / name;
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return {};
}

namespace {

// A folder that goes away with its contents.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "tilewright-XXXXXX").string();
    require(mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Finished {
  bool ok = false;
  std::string log;
};

Finished run_ptxas(const std::string& ptxas, std::string_view ptx, std::string_view arch) {
  const bool plain =
      std::all_of(arch.begin(), arch.end(), [](char c) { return c == '_' || std::isalnum(uint8_t(c)); });
  if (arch.empty() || !plain) user_error({}, "'{}' is not an architecture", arch);
  const Scratch scratch;
  const fs::path source = scratch.path() / "module.ptx";
  std::ofstream(source, std::ios::binary) << ptx;
  const size_t target = ptx.find(".target");
  const bool debug =
      target != ptx.npos && ptx.substr(target, ptx.find('\n', target) - target).find("debug") != ptx.npos;
  const std::string command =
      format("'{}' {} -v -arch={} '{}' -o /dev/null 2>&1", ptxas, debug ? "-g" : "", arch, source.string());
  FILE* pipe = popen(command.c_str(), "r");
  require(pipe != nullptr, "cannot start ptxas");
  Finished out;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.log.append(buffer.data(), n);
  const int status = pclose(pipe);
  out.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return out;
}

// What ptxas said about texts it took, one file each. Tests run in processes of their own, so this is a
// folder.
class Memory {
 public:
  Memory(const std::string& ptxas, std::string_view ptx, std::string_view arch) {
    const auto tool = fs::last_write_time(ptxas).time_since_epoch().count();
    const size_t key = std::hash<std::string>()(format("{} {} {} {}", ptxas, tool, arch, ptx));
    file_ = fs::path(TW_ASSEMBLED) / format("{}.{}.{:016x}.log", arch, ptx.size(), key);
  }
  std::optional<std::string> recall() const {
    std::ifstream in(file_, std::ios::binary);
    if (!in) return std::nullopt;
    std::ostringstream log;
    log << in.rdbuf();
    return log.str();
  }
  void keep(const std::string& log) const {
    fs::create_directories(file_.parent_path());
    const fs::path part = format("{}.{}", file_.string(), getpid());
    std::ofstream(part, std::ios::binary) << log;
    fs::rename(part, file_);
  }

 private:
  fs::path file_;
};

// Every number that `pattern` captures in `text`.
std::vector<int64_t> numbers(const std::string& text, const char* pattern) {
  std::vector<int64_t> out;
  const std::regex re(pattern);
  for (auto m = std::sregex_iterator(text.begin(), text.end(), re); m != std::sregex_iterator(); ++m)
    out.push_back(std::stoll((*m)[1]));
  return out;
}

Assembly read(Finished finished) {
  Assembly a;
  a.ok = finished.ok;
  a.log = std::move(finished.log);
  for (const int64_t n : numbers(a.log, "Used ([0-9]+) registers"))
    a.registers = std::max(a.registers, static_cast<int>(n));
  for (const int64_t n : numbers(a.log, "([0-9]+) bytes spill (?:stores|loads)")) a.spilled_bytes += n;
  for (const char* note : {"wgmma.mma_async instructions are serialized", "warpgroup.wait is injected"})
    a.serialised = a.serialised || a.log.find(note) != std::string::npos;
  return a;
}

::testing::AssertionResult failure(std::string_view what, const Assembly& a, std::string_view ptx) {
  return ::testing::AssertionFailure() << what << "\n" << a.log << "\n" << ptx;
}

}  // namespace

std::optional<Assembly> assemble(std::string_view ptx, std::string_view arch) {
  const std::string ptxas = find_cuda_tool("ptxas");
  if (ptxas.empty()) return std::nullopt;
  const Memory memory(ptxas, ptx, arch);
  if (const auto log = memory.recall()) return read({true, *log});
  Finished finished = run_ptxas(ptxas, ptx, arch);
  if (finished.ok) memory.keep(finished.log);
  return read(std::move(finished));
}

::testing::AssertionResult assembles(std::string_view ptx, std::string_view arch) {
  const auto a = assemble(ptx, arch);
  if (!a || a->ok) return ::testing::AssertionSuccess();
  return failure(format("ptxas for {} refuses the module:", arch), *a, ptx);
}

::testing::AssertionResult assembles_well(std::string_view ptx, std::string_view arch) {
  const auto a = assemble(ptx, arch);
  if (!a) return ::testing::AssertionSuccess();
  if (!a->ok) return failure(format("ptxas for {} refuses the module:", arch), *a, ptx);
  if (a->spilled_bytes != 0) return failure("registers are spilled:", *a, ptx);
  if (a->serialised) return failure("wgmma instructions are serialised:", *a, ptx);
  return ::testing::AssertionSuccess();
}

}  // namespace tw::testing
