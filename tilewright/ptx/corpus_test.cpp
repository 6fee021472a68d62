#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "tests/support/assemble.h"
#include "tilewright/base/error.h"
#include "tilewright/ptx/verify.h"

// Everything that nvcc emits for tests/ptx_corpus parses, verifies, survives print -> parse -> print, and the
// printed text assembles. Compiled PTX is kept beside the test binary and made again when a source or a flag
// changes.
namespace tw::ptx {
namespace {
namespace fs = std::filesystem;

struct Job {
  fs::path source;
  std::string arch, flags;
  fs::path output;
  std::string failure;
};

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<Job> jobs() {
  std::vector<Job> out;
  const fs::path cache = fs::current_path() / "ptx_corpus";
  fs::create_directories(cache);
  const auto add = [&](const fs::path& source, std::string arch, std::string flags) {
    const size_t key = std::hash<std::string>()(read(source) + arch + flags);
    out.push_back(
        {source, arch, flags, cache / tw::format("{}.{}.{:x}.ptx", source.stem().string(), arch, key), {}});
  };
  for (const auto& entry : fs::directory_iterator(fs::path(TW_SOURCE_DIR) / "tests/ptx_corpus")) {
    if (entry.path().extension() != ".cu") continue;
    for (const char* arch : {"sm_90a", "sm_100a"}) add(entry.path(), arch, "");
    const std::string name = entry.path().stem().string();
    if (name == "control" || name == "memory") add(entry.path(), "sm_90a", "-G");
    if (name == "cpp" || name == "math") add(entry.path(), "sm_100a", "-lineinfo");
  }
  return out;
}

// Runs `work` on every job, two at a time.
void each(std::vector<Job>& all, const std::function<void(Job&)>& work) {
  std::atomic<size_t> next = 0;
  const auto worker = [&] {
    for (size_t i; (i = next++) < all.size();) work(all[i]);
  };
  std::thread second(worker);
  worker();
  second.join();
}

void compile(Job& job, const std::string& nvcc) {
  if (fs::exists(job.output)) return;
  const fs::path log = job.output.string() + ".log", part = job.output.string() + ".part";
  const std::string command =
      tw::format("'{}' -std=c++20 --extended-lambda -arch={} {} -ptx '{}' -o '{}' > '{}' 2>&1", nvcc,
                 job.arch, job.flags, job.source.string(), part.string(), log.string());
  if (std::system(command.c_str()) == 0) fs::rename(part, job.output);
  else job.failure = "nvcc: " + read(log);
}

void examine(Job& job) {
  if (!job.failure.empty()) return;
  try {
    const Module m = parse(read(job.output), job.output.string());
    verify(m);
    const std::string first = print(m);
    if (const std::string second = print(parse(first, "printed.ptx")); first != second)
      job.failure = "print -> parse -> print differs";
    const auto assembly = testing::assemble(first, job.arch);
    if (assembly && !assembly->ok) job.failure = "ptxas refuses the printed text: " + assembly->log;
  } catch (const Error& e) {
    job.failure = e.what();
  }
}

TEST(Corpus, EverythingThatNvccEmits) {
  const std::string nvcc = testing::find_cuda_tool("nvcc");
  if (nvcc.empty()) GTEST_SKIP() << "nvcc is not installed";
  auto all = jobs();
  ASSERT_GE(all.size(), 36u);
  each(all, [&](Job& job) { compile(job, nvcc); });
  each(all, examine);
  for (const Job& job : all)
    EXPECT_EQ(job.failure, "") << job.source.filename() << " " << job.arch << " " << job.flags;
}

}  // namespace
}  // namespace tw::ptx
