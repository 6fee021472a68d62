#include "tilewright/ptx/assemble.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tilewright/base/error.h"

namespace tw::ptx {
namespace fs = std::filesystem;

std::string find_cuda_tool(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string rest = std::string(path ? path : "") + ":/usr/local/cuda/bin";
  for (size_t start = 0; start <= rest.size();) {
    const size_t end = std::min(rest.find(':', start), rest.size());
    const fs::path candidate = fs::path(rest.substr(start, end - start)) / name;
    if (end > start && access(candidate.c_str(), X_OK) == 0) return candidate.string();
    start = end + 1;
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

}  // namespace

std::optional<Assembly> assemble(std::string_view ptx, std::string_view arch) {
  const std::string ptxas = find_cuda_tool("ptxas");
  if (ptxas.empty()) return std::nullopt;
  const bool plain =
      std::all_of(arch.begin(), arch.end(), [](char c) { return c == '_' || std::isalnum(uint8_t(c)); });
  if (arch.empty() || !plain) user_error({}, "'{}' is not an architecture", arch);
  const Scratch scratch;
  const fs::path source = scratch.path() / "module.ptx";
  std::ofstream(source) << ptx;
  const size_t target = ptx.find(".target");
  const bool debug =
      target != ptx.npos && ptx.substr(target, ptx.find('\n', target) - target).find("debug") != ptx.npos;
  const std::string command = tw::format("'{}' {} -v -arch={} '{}' -o /dev/null 2>&1", ptxas,
                                         debug ? "-g" : "", arch, source.string());
  FILE* pipe = popen(command.c_str(), "r");
  require(pipe != nullptr, "cannot start ptxas");
  Assembly out;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.log.append(buffer.data(), n);
  const int status = pclose(pipe);
  out.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return out;
}

}  // namespace tw::ptx
