#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

// tw as a user meets it: what it prints, where, and its exit code.
namespace {

using nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out, err;
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Tw : public testing::Test {
 protected:
  Tw() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tw_test.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~Tw() override { std::filesystem::remove_all(folder_); }

  // Arguments as typed in a shell.
  Outcome tw(const std::string& arguments) {
    const auto out = folder_ / "out", err = folder_ / "err";
    const std::string line =
        std::string("'" TW_BINARY "' ") + arguments + " >'" + out.string() + "' 2>'" + err.string() + "'";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out), slurp(err)};
  }

  // A command that must fail on its input: exit code 2, nothing on stdout, and this in the message.
  void expect_misuse(const std::string& arguments, const std::string& message) {
    const Outcome o = tw(arguments);
    EXPECT_EQ(o.code, 2) << arguments;
    EXPECT_EQ(o.out, "") << arguments;
    EXPECT_NE(o.err.find(message), std::string::npos) << arguments << ":\n" << o.err;
    EXPECT_EQ(o.err.find("terminate called"), std::string::npos) << o.err;
  }

  json tw_json(const std::string& arguments, int code = 0) {
    const Outcome o = tw(arguments + " --json");
    EXPECT_EQ(o.code, code) << arguments << ":\n" << o.err;
    return json::parse(o.out);
  }

  std::filesystem::path folder_;
};

TEST_F(Tw, HelpIsRightAndNoCommandIsNot) {
  const Outcome help = tw("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("roofline"), std::string::npos);
  expect_misuse("", "Usage: tw");
  expect_misuse("nonsense", "nonsense");
}

TEST_F(Tw, ErrorsAreJsonWhenAskedFor) {
  const json j = tw_json("roofline --on b999", 2);
  EXPECT_EQ(j["error"]["kind"], "user");
  EXPECT_NE(j["error"]["message"].get<std::string>().find("b999"), std::string::npos);
}

// 2 * 4096^3 FLOP over three 4096^2 matrices of two bytes; 2000 TFLOP/s over 8 TB/s.
TEST_F(Tw, RooflineOfASquareGemm) {
  const json j = tw_json("roofline -m 4096 -n 4096 -k 4096 --tflops 2000 --tbps 8");
  EXPECT_NEAR(j["intensity"].get<double>(), 4096.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(j["ridge"].get<double>(), 250);
  EXPECT_EQ(j["bound"], "compute");
  EXPECT_DOUBLE_EQ(j["attainable_flops_per_second"].get<double>(), 2000e12);
}

TEST_F(Tw, RooflineOfAThinGemmIsMemoryBound) {
  const json j = tw_json("roofline --on b200 -m 1 -n 4096 -k 4096 --tflops 2000 --tbps 8");
  EXPECT_NEAR(j["intensity"].get<double>(), 1, 1e-3);
  EXPECT_EQ(j["bound"], "memory");
  const Outcome text = tw("roofline --on b200 -m 1 -n 4096 -k 4096 --tflops 2000 --tbps 8");
  EXPECT_NE(text.out.find("memory: 250 times below the ridge"), std::string::npos) << text.out;
}

// B=2 Hq=8 L=1024 D=64: 4*B*Hq*Lq*Lk*D FLOP; Q, K, V and O of B*H*L*D two-byte elements, Hkv=2.
TEST_F(Tw, RooflineOfAttention) {
  const json j =
      tw_json("roofline --attention --batch 2 --heads 8 --kv-heads 2 --queries 1024 --head-dim 64");
  EXPECT_DOUBLE_EQ(j["flops"].get<double>(), 4.0 * 2 * 8 * 1024 * 1024 * 64);
  EXPECT_DOUBLE_EQ(j["bytes"].get<double>(), 2.0 * 2 * 1024 * 64 * (8 + 8 + 2 + 2));
}

TEST_F(Tw, RooflineDraws) {
  const auto file = folder_ / "roofline.svg";
  EXPECT_EQ(tw("roofline --svg '" + file.string() + "'").code, 0);
  const std::string svg = slurp(file);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_NE(svg.find("gemm 4096x4096x4096 f16"), std::string::npos);
  expect_misuse("roofline --svg /nonexistent/x.svg", "cannot write /nonexistent/x.svg");
}

TEST_F(Tw, RooflineRefusesBadShapes) {
  expect_misuse("roofline -m 0", "m");
  expect_misuse("roofline -m ten", "-m");
  expect_misuse("roofline --dtype f99", "f99");
  expect_misuse("roofline --attention -m 5", "-m, -n and -k describe a gemm");
  expect_misuse("roofline --attention --heads 8 --kv-heads 3", "8");
  expect_misuse("roofline --tflops -1", "--tflops");
}

// A 128-byte swizzle exchanges the 16-byte chunks of a 128-byte row by the row's number modulo 8 (PTX ISA,
// "Swizzling modes"), so eight lanes down a column meet eight different chunks: four wavefronts for 32 lanes
// of 16 bytes.
TEST_F(Tw, LayoutMapsASwizzledTileWithoutConflicts) {
  const json j = tw_json("layout 'SW(3,3,3) o S[(8, 64) : (64, 1)]'");
  ASSERT_EQ(j["mapping"].size(), 512u);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 64; ++column)
      EXPECT_EQ(j["mapping"][row * 64 + column][0]["m"], row * 64 + (column / 8 ^ row) * 8 + column % 8);
  EXPECT_EQ(j["vector_bytes"], 16);
  for (const json& access : j["banks"]) EXPECT_EQ(access["wavefronts"], 4) << access;
}

// Rows of 128 bytes start in one bank: eight 16-byte lanes down a column need 8 words of each of four banks.
TEST_F(Tw, LayoutNamesBankConflicts) {
  const json j = tw_json("layout 'S[(32, 32) : (32, 1)]' --dtype f32");
  EXPECT_EQ(j["banks"][0]["access"], "rows");
  EXPECT_EQ(j["banks"][0]["wavefronts"], 4);
  EXPECT_EQ(j["banks"][1]["access"], "columns");
  EXPECT_EQ(j["banks"][1]["wavefronts"], 32);
  EXPECT_EQ(j["banks"][1]["conflicts"][0]["words"], 8);
  EXPECT_EQ(j["banks"][1]["conflicts"][0]["lanes"], json({0, 1, 2, 3, 4, 5, 6, 7}));
  const Outcome text = tw("layout 'S[(32, 32) : (32, 1)]' --dtype f32");
  EXPECT_NE(text.out.find("32 wavefronts where 4 would do"), std::string::npos) << text.out;
}

TEST_F(Tw, LayoutShowsReplicas) {
  const json j = tw_json("layout 'S[4 : 1@laneid] + R[2 : 4@laneid]'");
  EXPECT_EQ(j["copies"], 2);
  EXPECT_EQ(j["mapping"][3], json::parse(R"([{"laneid": 3}, {"laneid": 7}])"));
}

TEST_F(Tw, LayoutDraws) {
  const auto file = folder_ / "layout.svg";
  EXPECT_EQ(tw("layout 'S[(4, 8) : (8, 1)]' --svg '" + file.string() + "'").code, 0);
  EXPECT_NE(slurp(file).find("</svg>"), std::string::npos);
}

TEST_F(Tw, LayoutErrorsPointAtTheText) {
  expect_misuse("layout 'S[(8'", "layout:1:5: error: expected ')'");
  expect_misuse("layout 'S[8:1]' --shape 3x3", "shape 3x3 has 9 elements, the layout 8");
  expect_misuse("layout 'S[8:1]' --shape 8x", "got '8x'");
  expect_misuse("layout 'S[8:1]' --shape 0x8", "got '0x8'");
  expect_misuse("layout", "LAYOUT is required");
}

TEST_F(Tw, ListNamesTheLadder) {
  const json j = tw_json("list");
  ASSERT_GE(j.size(), 3u);
  for (int step = 1; step <= 3; ++step) {
    const json& kernel = j[step - 1];
    EXPECT_EQ(kernel["name"], "gemm.step" + std::to_string(step));
    const json& archs = kernel["architectures"];
    for (const char* arch : {"sm_90a", "sm_100a"})
      EXPECT_NE(std::find(archs.begin(), archs.end(), arch), archs.end());
    EXPECT_NE(tw("list").out.find(kernel["shows"].get<std::string>()), std::string::npos);
  }
}

// The hardware path of each architecture is the one thing that its PTX must have and the other's must not.
TEST_F(Tw, ShowPrintsThePtxThatRuns) {
  const std::string blackwell = tw_json("show gemm.step2 --arch sm_100a --ptx")["ptx"];
  EXPECT_NE(blackwell.find(".target sm_100a"), std::string::npos);
  EXPECT_NE(blackwell.find("tcgen05.mma.cta_group::1.kind::f16"), std::string::npos);
  const Outcome hopper = tw("show gemm.step2 --arch sm_90a --ptx");
  EXPECT_EQ(hopper.code, 0);
  EXPECT_NE(hopper.out.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(hopper.out.find("wgmma.mma_async.sync.aligned"), std::string::npos);
  EXPECT_EQ(hopper.out.find("tcgen05"), std::string::npos);
  // Every instruction shows where it comes from.
  std::istringstream lines(hopper.out.substr(hopper.out.find("  ld.param")));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && !line.starts_with("  //")) {
      EXPECT_NE(line.find("// kernels/gemm/"), std::string::npos) << line;
    }
}

TEST_F(Tw, ShowPrintsTileOperationsWithTheirLines) {
  const Outcome ir = tw("show gemm.step1 --arch sm_90a --ir");
  EXPECT_EQ(ir.code, 0);
  EXPECT_NE(ir.out.find("gemm_async"), std::string::npos) << ir.out;
  EXPECT_NE(ir.out.find("kernels/gemm/sm_90a/"), std::string::npos) << ir.out;
  EXPECT_TRUE(tw_json("show gemm.step1 --ir").contains("ir"));
}

TEST_F(Tw, ShowRefusesWhatThereIsNot) {
  expect_misuse("show gemm.step0", "gemm.step1");  // the message lists the names
  expect_misuse("show gemm.step1 --arch sm_80",
                "gemm.step1 is written for sm_90a, sm_100a, sm_103a, not for sm_80");
  expect_misuse("show gemm.step1 -m -4", "-4");
  expect_misuse("show gemm.step3 --dtype f99", "f99");
}

// The fp64 reference in the tool judges the result; the test asks that it was asked, and of a shape that is
// no square.
TEST_F(Tw, RunVerifiesOnBothMachines) {
  for (const char* device : {"sim:b200", "sim:h200"})
    for (const char* dtype : {"f16", "bf16"}) {
      const json j = tw_json(std::string("run gemm.step3 -m 256 -n 384 -k 128 --schedule late --on ") +
                             device + " --dtype " + dtype);
      EXPECT_EQ(j["right"], true) << j;
      EXPECT_EQ(j["verified"], true);
      EXPECT_EQ(j["unwritten_bytes"], 0);
      EXPECT_EQ(j["schedule"], "late");
      EXPECT_EQ(j["ctas"], 2 * 3);
      EXPECT_LT(j["error"].get<double>(), 2e-3);
      EXPECT_GT(j["error"].get<double>(), 0);
    }
}

TEST_F(Tw, GemmTakesTheTileItIsTold) {
  for (const char* tile :
       {"128x256", "256x128", "128x192", "128x128", "64x256", "64x192", "64x128", "128x64", "64x64"}) {
    const json j = tw_json(std::string("run gemm --on sim:h200 -m 300 -n 520 -k 200 --tile ") + tile);
    EXPECT_TRUE(j["right"]) << tile;
  }
  expect_misuse("run gemm --on sim:h200 --tile 3x5", "gemm has no tile of 3x5; there are 128x256, ");
  expect_misuse("run gemm --on sim:h200 --tile 128", "'128' is no tile; write rows x columns of D: 128x256");
}

TEST_F(Tw, CheckFindsTheLadderClean) {
  const Outcome text = tw("check gemm.step7 --on sim:h200 -m 300 -n 260 -k 200 --schedules late,random:3");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, "clean (schedules late, random:3)\n");
  const auto sarif = folder_ / "report.sarif";
  const json j =
      tw_json("check gemm.step9 --on sim:b200 -m 300 -n 260 -k 200 --sarif '" + sarif.string() + "'");
  EXPECT_EQ(j["verdict"], "clean");
  EXPECT_EQ(j["schedules"], json({"eager", "late", "random:1"}));
  EXPECT_EQ(json::parse(slurp(sarif))["version"], "2.1.0");
  const json explored =
      tw_json("check gemm.step6 --on sim:b200 -m 300 -n 260 -k 200 --schedules late --explore 5");
  EXPECT_EQ(explored["exploration"]["complete"], true) << explored;
  EXPECT_EQ(explored["exploration"]["left"], 0) << explored;
  expect_misuse("check gemm.step9 --on sim:b200 --schedules sometimes", "random:SEED");
}

TEST_F(Tw, ARemarkLeavesTheVerdictClean) {
  const auto kernel = folder_ / "k.ptx", launch = folder_ / "l.json", sarif = folder_ / "report.sarif";
  std::ofstream(launch) << R"({"block": [64]})";
  std::ofstream(kernel) << R"(.version 8.7
.target sm_100a
.address_size 64
.visible .entry k() {
  .shared .align 4 .b32 slot;
  .reg .b32 %t, %a;
  .reg .pred %second;
  mov.u32 %t, %tid.x;
  setp.ge.u32 %second, %t, 32;
  @!%second tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %a, [slot];
  @%second tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;
  ret;
}
)";
  const std::string command = "check '" + kernel.string() + "' --launch '" + launch.string() + "'";
  const Outcome text = tw(command + " --schedules late --sarif '" + sarif.string() + "'");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("k.ptx:15:3: remark: freed by another warp: warp 1 gives back"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("see docs/faults/freed-by-another-warp.md\nclean, 1 remark (schedules late)\n"),
            std::string::npos)
      << text.out;
  const json j = tw_json(command);
  EXPECT_EQ(j["verdict"], "clean");
  EXPECT_TRUE(j["faults"].empty());
  ASSERT_EQ(j["remarks"].size(), 1u);
  EXPECT_EQ(j["remarks"][0]["kind"], "freed by another warp");
  const json result = json::parse(slurp(sarif))["runs"][0]["results"][0];
  EXPECT_EQ(result["level"], "note");
  EXPECT_EQ(result["ruleId"], "freed by another warp");
}

TEST_F(Tw, RunSaysWhenItDidNotVerify) {
  const Outcome o = tw("run gemm.step1 --on sim:h200 --no-verify");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("not verified"), std::string::npos) << o.out;
}

TEST_F(Tw, RunRefusesBadInput) {
  expect_misuse("run gemm.step9000 --on sim:b200", "gemm.step1, gemm.step2, gemm.step3");
  expect_misuse("run gemm.step1 --on sim:b999", "unknown device 'sim:b999'; known: sim:h100");
  expect_misuse("run gemm.step1 --schedule sometimes", "random:SEED");
  expect_misuse("run gemm.step1 --dtype f32", "f16 and bf16, not f32");
  expect_misuse("run gemm.step1 --on", "--on");
}

TEST_F(Tw, DemoRunsTheWholeLadder) {
  const json j = tw_json("demo");
  ASSERT_GE(j["runs"].size(), 6u);
  for (const json& run : j["runs"]) {
    EXPECT_EQ(run["right"], true) << run;
    EXPECT_LT(run["error"].get<double>(), j["limit"].get<double>());
    EXPECT_LT(run["error_rounded"].get<double>(), j["limit"].get<double>());
  }
}

TEST_F(Tw, DoctorFindsTheSimulatedMachines) {
  const json j = tw_json("doctor");
  int simulated = 0;
  for (const json& finding : j["findings"]) {
    const std::string what = finding["what"];
    if (what.rfind("sim:", 0) == 0) simulated += finding["present"].get<bool>();
    EXPECT_FALSE(finding["gives"].get<std::string>().empty());
  }
  EXPECT_EQ(simulated, 4);  // h100, h200, b200, b300
}

TEST_F(Tw, BenchMeasuresTheSimulator) {
  const json j = tw_json("bench sim --rounds 1");
  std::set<std::string> names;
  for (const json& result : j["results"]) {
    EXPECT_GT(result["value"].get<double>(), 0) << result;
    EXPECT_TRUE(names.insert(result["name"]).second) << result;
  }
  for (const char* name :
       {"matrix.one_thread", "step3", "compile", "instruction.integer", "instruction.float",
        "instruction.lop3.b32", "instruction.fma.f32", "instruction.ld.shared.v4.b32"})
    EXPECT_TRUE(names.contains(name)) << name;
  expect_misuse("bench", "subcommand is required");
}

// The simulator runs what a GPU would, and is judged like one.
TEST_F(Tw, BenchMeasuresGemms) {
  const auto saved = folder_ / "results.json", page = folder_ / "results.md";
  const json j = tw_json(
      "bench gemm --on sim:h200 --kernel gemm.step1 --kernel gemm.step4 --rounds 1 --shapes "
      "128x128x64,200x128x72 --save '" +
      saved.string() + "' --save '" + page.string() + "'");
  EXPECT_EQ(j["simulated"], true);
  EXPECT_FALSE(j.contains("cublas"));
  ASSERT_EQ(j["results"].size(), 4u);
  const int m[] = {128, 128, 200, 200};
  for (size_t i = 0; i < 4; ++i) {
    const json& r = j["results"][i];
    EXPECT_EQ(r["m"], m[i]);
    EXPECT_EQ(r["kernel"], i % 2 ? "gemm.step4" : "gemm.step1");
    EXPECT_FALSE(r.contains("ratio"));
    if (i == 2) {  // one tile is all that step 1 computes
      EXPECT_NE(r["refusal"].get<std::string>().find("step 1 computes one tile"), std::string::npos) << r;
      continue;
    }
    EXPECT_EQ(r["right"], true) << r;
    EXPECT_EQ(r["sampled_rows"], 64);
    EXPECT_LT(r["error"].get<double>(), 2e-3);
    const double flops = 2.0 * m[i] * 128 * r["k"].get<double>();
    EXPECT_NEAR(r["tflops"].get<double>() * r["seconds"].get<double>() * 1e12, flops, 1e-3 * flops);
  }
  EXPECT_EQ(json::parse(slurp(saved)), j);
  EXPECT_NE(slurp(page).find("| 128x128x64 bf16 | gemm.step4 |"), std::string::npos) << slurp(page);
  EXPECT_NE(slurp(page).find("not of a GPU"), std::string::npos);
  EXPECT_NE(slurp(page).find("- command: `tw bench gemm --on sim:h200 --dtype bf16 --rounds 1 --kernel "
                             "gemm.step1 --kernel gemm.step4 --shapes 128x128x64,200x128x72`"),
            std::string::npos)
      << slurp(page);
}

// A GPU whose launches take 1 ms and whose cuBLAS takes 0.5 ms (tests/fake_gpu).
class TwOnAGpu : public Tw {
 protected:
  const std::string shape_ = " --kernel gemm.step3 -m 256 -n 128 -k 64 --rounds 3 --working-set 1 ";
  TwOnAGpu() {
    environment("LD_LIBRARY_PATH", TW_FAKE_GPU);
    environment("TW_FAKE_SHAPE", "256x128x64");
    environment("TW_FAKE_FAULT", "");
    environment("TW_CUBLAS", "");
  }
  ~TwOnAGpu() override {
    for (const auto& [name, value] : before_)
      if (value) setenv(name.c_str(), value->c_str(), 1);
      else unsetenv(name.c_str());
  }
  void environment(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace(name, old ? std::optional<std::string>(old) : std::nullopt);
    setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(TwOnAGpu, BenchComparesWithCublas) {
  const json j = tw_json("bench gemm" + shape_);
  EXPECT_EQ(j["device"], "Fake H200");
  EXPECT_EQ(j["arch"], "sm_90a");
  EXPECT_TRUE(j["driver"].get<std::string>().ends_with("CUDA 13.0")) << j;
  EXPECT_EQ(j["cublas"], "13.1.2");
  ASSERT_EQ(j["results"].size(), 1u);
  const json& r = j["results"][0];
  EXPECT_DOUBLE_EQ(r["seconds"].get<double>(), 1e-3);
  EXPECT_DOUBLE_EQ(r["cublas_seconds"].get<double>(), 0.5e-3);
  EXPECT_DOUBLE_EQ(r["ratio"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(r["tflops"].get<double>(), 2.0 * 256 * 128 * 64 / 1e-3 / 1e12);
  EXPECT_EQ(r["buffer_sets"], 9);  // 1 MB over 2 * (256 * 64 + 128 * 64 + 256 * 128) bytes
  EXPECT_EQ(r["from_cublas"], 0);
  EXPECT_EQ(r["right"], true);
  EXPECT_DOUBLE_EQ(j["summary"]["gemm.step3"]["geometric_mean"].get<double>(), 0.5);
  const Outcome text = tw("bench gemm" + shape_);
  EXPECT_NE(text.out.find("gemm.step3: geometric mean of the ratios 0.500, the lowest 0.500"),
            std::string::npos)
      << text.out;
}

TEST_F(TwOnAGpu, BenchMeasuresAShapeOnce) {
  environment("TW_FAKE_SHAPE", "128x128x64");
  const json j = tw_json(
      "bench gemm --kernel gemm.step1 --working-set 0 --rounds 1 --shapes 64x64x64,128x128x64,64x64x64");
  ASSERT_EQ(j["results"].size(), 2u);
  EXPECT_TRUE(j["results"][0].contains("refusal"));
  EXPECT_EQ(j["results"][1]["m"], 128);
  EXPECT_EQ(j["results"][1]["right"], true);
}

TEST_F(TwOnAGpu, BenchFindsAnElementThatNothingWrote) {
  environment("TW_FAKE_FAULT", "element");
  const json j = tw_json("bench gemm" + shape_, 1);
  EXPECT_EQ(j["results"][0]["right"], false);
  EXPECT_NE(tw("bench gemm" + shape_).out.find("WRONG"), std::string::npos);
  const json alone = tw_json("bench gemm --no-cublas" + shape_, 1);  // the sample has the last row
  EXPECT_EQ(alone["results"][0]["right"], false);
}

TEST_F(TwOnAGpu, BenchGoesOnWithoutCublas) {
  const json j = tw_json("bench gemm --no-cublas" + shape_);
  EXPECT_FALSE(j.contains("cublas"));
  EXPECT_FALSE(j["results"][0].contains("ratio"));
  EXPECT_EQ(j["results"][0]["right"], true);
  environment("TW_CUBLAS", "/nonexistent/libcublas.so.13");
  const Outcome warned = tw("bench gemm" + shape_);
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_NE(warned.err.find("warning: measuring without cuBLAS"), std::string::npos) << warned.err;
  expect_misuse("bench gemm --cublas /nonexistent/libcublas.so.13" + shape_, "no cuBLAS: /nonexistent");
  expect_misuse("bench gemm --cublas '" + folder_.string() + "'" + shape_,
                "it holds neither libcublas.so.13");
}

TEST_F(Tw, BenchOfGemmsRefusesBadInput) {
  expect_misuse("bench gemm --shapes 12x", "'12x' is no shape; expected MxNxK");
  expect_misuse("bench gemm --shapes 1x2x3x4", "'1x2x3x4' is no shape");
  expect_misuse("bench gemm --shapes square,", "'' is no shape");
  expect_misuse("bench gemm --shapes 0x128x64", "'0x128x64' is no shape");
  expect_misuse("bench gemm --shapes llm -m 5", "give one");
  expect_misuse("bench gemm -m 0", "-m");
  expect_misuse("bench gemm --rounds 0", "--rounds");
  expect_misuse("bench gemm --on sim:h200 --kernel gemm.step0", "unknown kernel 'gemm.step0'");
  expect_misuse("bench gemm --on cuda:99", "cuda");  // no driver, or no such GPU
  expect_misuse("bench gemm --on sim:h200 --kernel gemm.step1 -m 128 -n 128 -k 64 --save /nonexistent/x.json",
                "cannot write /nonexistent/x.json");
}

}  // namespace
