#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/assemble.h"
#include "tilewright/base/format.h"

// CUDA kernels as nvcc compiles them, run by `tw ptx` as their launch files say and compared with expected/,
// which references.py computes. The .ptx files are kept, so this runs on machines without nvcc too.
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kFolder = fs::path(TW_SOURCE_DIR) / "tests/ptx";

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome shell(const std::string& command, const fs::path& folder) {
  const auto out = folder / "out", err = folder / "err";
  const int status = std::system((command + " >'" + out.string() + "' 2>'" + err.string() + "'").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out), slurp(err)};
}

std::vector<std::string> kernels() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".cu") names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

std::string arch(const std::string& kernel) { return kernel.starts_with("tcgen05") ? "sm_100a" : "sm_90a"; }

class ForeignPtx : public testing::TestWithParam<std::string> {
 protected:
  ForeignPtx() {
    std::string pattern = (fs::temp_directory_path() / "tw_ptx_test.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~ForeignPtx() override { fs::remove_all(folder_); }

  Outcome run(const fs::path& module, const std::string& schedule) {
    return tw("ptx", module, "--schedule " + schedule);
  }
  Outcome tw(const std::string& command, const fs::path& module, const std::string& options) {
    return shell("'" TW_BINARY "' " + command + " '" + module.string() + "' --launch '" +
                     (kFolder / (GetParam() + ".json")).string() + "' " + options + " --json",
                 folder_);
  }
  void expect_right(const fs::path& module, const std::string& schedule) {
    const Outcome o = run(module, schedule);
    ASSERT_EQ(o.code, 0) << module << " " << schedule << "\n" << o.err << o.out;
    const json report = json::parse(o.out);
    EXPECT_EQ(report["right"], true) << o.out;
    size_t compared = 0;
    for (const auto& [name, buffer] : report["buffers"].items()) compared += buffer.contains("right");
    EXPECT_EQ(compared, 1u) << o.out;  // the launch file has something to compare with
  }

  fs::path folder_;
};

TEST_P(ForeignPtx, RightUnderEverySchedule) {
  for (const char* schedule : {"eager", "late", "random:1", "random:2", "random:3"})
    expect_right(kFolder / (GetParam() + ".ptx"), schedule);
}

TEST_P(ForeignPtx, Assembles) {
  for (const char* variant : {"", "faults"})
    EXPECT_TRUE(tw::testing::assembles(slurp(kFolder / variant / (GetParam() + ".ptx")), arch(GetParam())));
}

struct Planted {
  std::string kind, part;  // of the message
};
// How `tw check` names the fault that each kernel's source plants. Where the schedules run a reader before
// the writer that it should wait for, it reads what nothing has written.
const std::map<std::string, Planted> kPlanted{
    {"bulk_copy", {"race", "tile: cp.async.bulk, 2048 bytes from global memory"}},
    {"cluster_exchange", {"exit too early", "CTA"}},
    {"double_buffer", {"race", "cp.async, 16 bytes x 32 lanes writes it"}},
    {"histogram", {"undefined behaviour", "nothing has written: bins"}},
    {"last_block", {"race", "part: ld.volatile.global.f32 reads it"}},
    {"matrix_product", {"race", "ldmatrix"}},
    {"named_barriers", {"deadlock", "64 of 96 threads have arrived"}},
    {"reduce", {"race", "part"}},
    {"scan", {"race", "totals"}},
    {"softmax", {"race", "tree: "}},
    {"specialised", {"deadlock", "waits for mbarrier full"}},
    {"tcgen05_tile", {"undefined behaviour", "tensor memory lane"}},
    {"tma_pipeline", {"deadlock", "-512 bytes outstanding"}},
    {"transpose", {"undefined behaviour", "nothing has written: tile"}},
    {"wgmma_tile", {"missing proxy fence", "wgmma.mma_async"}},
    {"wmma_tile", {"undefined behaviour", "nothing has written: tile"}},
};

// `tw check` finds nothing in the kernel and names the fault of its twin.
TEST_P(ForeignPtx, ThePlantedFaultIsFound) {
  const Outcome right = tw("check", kFolder / (GetParam() + ".ptx"), "");
  EXPECT_EQ(json::parse(right.out)["verdict"], "clean") << right.out;
  EXPECT_EQ(right.code, 0);
  const Outcome faulty = tw("check", kFolder / "faults" / (GetParam() + ".ptx"), "");
  const json report = json::parse(faulty.out);
  EXPECT_EQ(report["verdict"], "faults") << faulty.out;
  EXPECT_EQ(faulty.code, 1);
  const Planted& planted = kPlanted.at(GetParam());
  bool named = false;
  for (const auto& f : report["faults"])
    named |=
        f["kind"] == planted.kind && f["message"].get<std::string>().find(planted.part) != std::string::npos;
  EXPECT_TRUE(named) << "expected " << planted.kind << ": " << planted.part << "\n" << faulty.out;
}

// The first line of a module that says which nvcc made it.
std::string compiler(const std::string& text) {
  const size_t at = text.find("// Cuda compilation tools"), end = text.find('\n', at);
  return at == text.npos ? "" : text.substr(at, end - at);
}

// Without the names for debuggers at the end, which hold a hash of the source's path.
std::string code(const std::string& text) { return text.substr(0, text.find(".section\t.debug_str")); }

TEST_P(ForeignPtx, AsNvccCompilesItHere) {
  const std::string nvcc = tw::testing::find_cuda_tool("nvcc");
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc";
  for (const std::string variant : {"", "faults"}) {
    const fs::path fresh = folder_ / (GetParam() + ".ptx"), kept = kFolder / variant / (GetParam() + ".ptx");
    const Outcome compiled = shell(tw::format("TW_PTX_OUT='{}' NVCC='{}' '{}' {} {}", folder_.string(), nvcc,
                                              (kFolder / "build.sh").string(), GetParam(), variant),
                                   folder_);
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    const std::string text = slurp(fresh);
    // The same nvcc makes the same text: what is kept is up to date.
    if (compiler(text) == compiler(slurp(kept))) {
      EXPECT_EQ(code(text), code(slurp(kept))) << "run tests/ptx/build.sh";
    }
    if (variant.empty()) expect_right(fresh, "eager");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ForeignPtx, testing::ValuesIn(kernels()),
                         [](const auto& test) { return test.param; });

}  // namespace
