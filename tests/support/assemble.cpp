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
#include <utility>

#include "tilewright/base/error.h"

namespace tw::testing {

namespace fs = std::filesystem;

namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tw_ptxas.XXXXXX").string();
    require(mkdtemp(pattern.data()) != nullptr, "a temporary folder can be made");
    path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

std::pair<int, std::string> run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  require(pipe != nullptr, "a shell can be started");
  std::string out;
  std::array<char, 4096> buffer{};
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

std::optional<std::string> search_ptxas() {
  if (const char* named = std::getenv("TW_PTXAS")) return std::string(named);
  std::istringstream folders(std::string(std::getenv("PATH") ? std::getenv("PATH") : "") +
                             ":/usr/local/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/ptxas";
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

// Every number that `pattern` captures in `text`.
std::vector<int64_t> numbers(const std::string& text, const char* pattern) {
  std::vector<int64_t> out;
  const std::regex re(pattern);
  for (auto m = std::sregex_iterator(text.begin(), text.end(), re); m != std::sregex_iterator(); ++m)
    out.push_back(std::stoll((*m)[1]));
  return out;
}

}  // namespace

std::optional<std::string> find_ptxas() {
  static const std::optional<std::string> path = search_ptxas();
  return path;
}

Assembly assemble(std::string_view ptx, std::string_view arch) {
  const auto ptxas = find_ptxas();
  require(ptxas.has_value(), "there is a ptxas to assemble with");
  const TemporaryFolder folder;
  const fs::path in = folder.path / "module.ptx", out = folder.path / "module.cubin";
  std::ofstream(in, std::ios::binary) << ptx;

  Assembly result;
  const auto [code, log] = run("'" + *ptxas + "' -v -arch=" + std::string(arch) + " '" + in.string() +
                               "' -o '" + out.string() + "'");
  result.ok = code == 0 && fs::exists(out);
  result.log = log;
  for (const int64_t n : numbers(log, "Used ([0-9]+) registers"))
    result.registers = std::max(result.registers, static_cast<int>(n));
  for (const int64_t n : numbers(log, "([0-9]+) bytes spill (?:stores|loads)")) result.spilled_bytes += n;
  return result;
}

::testing::AssertionResult assembles(std::string_view ptx, std::string_view arch) {
  if (!find_ptxas()) return ::testing::AssertionSuccess();
  const Assembly a = assemble(ptx, arch);
  if (a.ok) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "ptxas for " << arch << " refuses the module:\n"
                                       << a.log << "\n"
                                       << ptx;
}

}  // namespace tw::testing
