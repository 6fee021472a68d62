#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

// tw ptx as a user meets it. tests/ptx runs whole kernels; here are the forms of a launch and what is wrong
// with one.
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out, err;
};

std::string slurp(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// out[i] = scale * in[i] + offset for i < n; `pair` holds scale and offset by value.
constexpr const char* kAffine = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry affine(
  .param .u64 affine_in,
  .param .u64 affine_out,
  .param .align 4 .b8 affine_pair[8],
  .param .u32 affine_n
) .maxntid 256, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [affine_in];
  ld.param.u64 %rd2, [affine_out];
  ld.param.f32 %f1, [affine_pair];
  ld.param.f32 %f2, [affine_pair+4];
  ld.param.u32 %r1, [affine_n];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd5, %r5, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f3, [%rd6];
  fma.rn.f32 %f4, %f3, %f1, %f2;
  st.global.f32 [%rd7], %f4;
DONE:
  ret;
}
)";

// scale 2, offset 1
constexpr const char* kArguments =
    R"([{"buffer": "in"}, {"buffer": "out"}, {"bytes": "00000040 0000803f"}, {"value": 6}])";

class TwPtx : public testing::Test {
 protected:
  TwPtx() {
    std::string pattern = (fs::temp_directory_path() / "tw_ptx.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    write("affine.ptx", kAffine);
  }
  ~TwPtx() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  // In the folder of the test's files.
  Outcome tw(const std::string& arguments, const std::string& command = "ptx") const {
    const int status = std::system(
        ("cd '" + folder_.string() + "' && '" TW_BINARY "' " + command + " " + arguments + " >out 2>err")
            .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder_ / "out"), slurp(folder_ / "err")};
  }
  json report(const std::string& arguments, int code = 0) const {
    const Outcome o = tw(arguments + " --json");
    EXPECT_EQ(o.code, code) << o.err;
    return json::parse(o.out);
  }
  // The message is the whole first line of stderr.
  void expect_misuse(const std::string& arguments, const std::string& message) const {
    const Outcome o = tw(arguments);
    EXPECT_EQ(o.code, 2) << arguments << o.out;
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(o.err.substr(0, o.err.find('\n')), message);
  }
  // The same for a launch file of this text.
  void expect_refused(const std::string& launch, const std::string& message) const {
    write("l.json", launch);
    expect_misuse("affine.ptx --launch l.json", message);
  }
  // A launch file with these members, before buffers and arguments that are right.
  static std::string launch(const std::string& members, const std::string& out_members = "",
                            const std::string& arguments = kArguments) {
    return "{\n" + members +
           R"("buffers": {
"in": {"type": "f32", "shape": [6], "init": "iota"},
"out": {"type": "f32", "shape": [6])" +
           out_members + "}\n},\n\"arguments\": " + arguments + "}\n";
  }

  fs::path folder_;
};

TEST_F(TwPtx, ListsEntries) {
  const json j = report("affine.ptx");
  EXPECT_EQ(j["target"], "sm_90a");
  ASSERT_EQ(j["entries"].size(), 1u);
  const json& entry = j["entries"][0];
  EXPECT_EQ(entry["name"], "affine");
  EXPECT_EQ(entry["directives"][0], ".maxntid 256, 1, 1");
  EXPECT_EQ(entry["parameters"][2]["declaration"], ".align 4 .b8 affine_pair[8]");
  EXPECT_EQ(entry["parameters"][3]["offset"], 24);
  EXPECT_NE(tw("affine.ptx").out.find("     8 bytes  .u64 affine_in\n"), std::string::npos);
}

TEST_F(TwPtx, RunsALaunchFile) {
  write("l.json",
        launch("\"block\": [32],", R"(, "print": true, "expect": {"values": [1, 3, 5, 7, 9, 11]})"));
  const json j = report("affine.ptx --launch l.json");
  EXPECT_EQ(j["device"], "sim:h200");  // sm_90a
  EXPECT_EQ(j["buffers"]["out"]["values"], json({1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(j["buffers"]["out"]["right"], true);
  EXPECT_EQ(j["ctas"], 1);
}

TEST_F(TwPtx, SaysWhatIsWrong) {
  write("l.json", launch("\"block\": [32],", R"(, "expect": {"values": [1, 3, 5, 7, 9, 12]})"));
  const Outcome o = tw("affine.ptx --launch l.json");
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("out WRONG: 1 of 6 elements differ, the first at 5: 11 for 12"), std::string::npos)
      << o.out;
}

// Two CTAs of two threads leave two elements alone.
TEST_F(TwPtx, NamesWhatNothingWrote) {
  write("l.json", launch("\"block\": [2], \"grid\": [2],",
                         R"(, "expect": {"values": [1, 3, 5, 7, 9, 11], "tolerance": 1e-3})"));
  const json j = report("affine.ptx --launch l.json", 1);
  EXPECT_EQ(j["buffers"]["out"]["unwritten_bytes"], 8);
  EXPECT_EQ(j["right"], false);
}

TEST_F(TwPtx, RunsFromTheCommandLine) {
  const std::string arguments =
      R"(affine.ptx --block 4 --grid 2 --arg "f32[2,3]=iota:1:0.5" --arg "f32[2,3]" )"
      R"(--arg '{"bytes": "00000040 0000803f"}' --arg 6)";
  EXPECT_EQ(report(arguments + " --print arg1")["buffers"]["arg1"]["values"], json({3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(tw(arguments + " --keep arg1=kept.txt").code, 0);
  EXPECT_EQ(slurp(folder_ / "kept.txt"), "3\n4\n5\n6\n7\n8\n");
  EXPECT_EQ(report(arguments + " --expect arg1=kept.txt")["right"], true);
  EXPECT_EQ(report(arguments + " --expect arg1=arg0", 1)["buffers"]["arg1"]["different"], 6);
  EXPECT_EQ(tw(arguments + " --keep arg1=kept.bin").code, 0);
  EXPECT_EQ(fs::file_size(folder_ / "kept.bin"), 24u);
  EXPECT_EQ(report(arguments + " --expect arg1=kept.bin")["right"], true);
}

// The rows of `out` lie 4 elements apart, and the kernel writes 6 in a row: logical element (1, 0) is its
// fifth.
TEST_F(TwPtx, StridesPlaceElements) {
  write("l.json", launch("\"block\": [32],", R"(, "print": true)"));
  std::string text = slurp(folder_ / "l.json");
  text.replace(text.rfind("[6]"), 3, R"([2, 2], "strides": [4, 1])");
  write("l.json", text);
  EXPECT_EQ(report("affine.ptx --launch l.json")["buffers"]["out"]["values"], json({1, 3, 9, 11}));
}

TEST_F(TwPtx, TemplatesAreLaunchFiles) {
  const Outcome o = tw("affine.ptx --template");
  ASSERT_EQ(o.code, 0) << o.err;
  const json j = json::parse(o.out);
  EXPECT_EQ(j["block"], json({256, 1, 1}));
  EXPECT_EQ(j["buffers"].size(), 2u);
  EXPECT_EQ(j["arguments"][1], json({{"parameter", "affine_out"}, {"buffer", "out"}}));
  EXPECT_EQ(j["arguments"][2]["bytes"], "0000000000000000");
  EXPECT_EQ(j["arguments"][3]["value"], 0);
  write("l.json", o.out);
  EXPECT_EQ(tw("affine.ptx --launch l.json").code, 0);  // n = 0: it touches nothing
}

// A kernel that waits for the grid before it is meant for a dependent launch.
TEST_F(TwPtx, TheTemplateOfAKernelThatWaitsIsADependentLaunch) {
  std::string text = kAffine;
  text.insert(text.find("  mov.u32 %r2, %ctaid.x;"), "  griddepcontrol.wait;\n");
  write("affine.ptx", text);
  const Outcome o = tw("affine.ptx --template");
  const json j = json::parse(o.out);
  EXPECT_EQ(j["dependent"], true);
  EXPECT_EQ(j["buffers"]["in"]["grid_before"], "nothing");
  EXPECT_EQ(j["buffers"]["out"]["grid_before"], "nothing");
  write("l.json", o.out);
  EXPECT_EQ(tw("affine.ptx --launch l.json").code, 0);
}

TEST_F(TwPtx, DependentLaunchesAreCheckedAgainstTheGridBefore) {
  const std::string late = R"("block": [32], "dependent": true,)";
  write("l.json", launch(late));
  EXPECT_EQ(tw("affine.ptx --launch l.json", "check").code, 0);
  write("l.json", launch(late, R"(, "grid_before": "reads")"));
  EXPECT_EQ(tw("affine.ptx --launch l.json").code, 0);  // it runs all the same
  const Outcome o = tw("affine.ptx --launch l.json", "check");
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("affine.ptx:33:3: missing dependency wait: out: st.global.f32 writes it"), o.out.npos)
      << o.out;
}

TEST_F(TwPtx, RefusesAGridBeforeThatThereIsNot) {
  expect_refused(
      launch("", R"(, "grid_before": "writes")"),
      "l.json:4: error: buffer 'out': \"grid_before\" says what the grid before a dependent launch "
      "does with it, but the launch file does not say \"dependent\": true; any other launch starts "
      "when that grid has ended");
  expect_refused(launch("\"dependent\": true,", R"(, "grid_before": "written")"),
                 "l.json:4: error: \"grid_before\" is \"written\"; known: nothing, reads, writes");
  expect_refused(launch("\"dependent\": 1,"), "l.json:2: error: \"dependent\" must be true or false");
}

TEST_F(TwPtx, TracesAndSchedules) {
  write("l.json", launch("\"block\": [32],"));
  EXPECT_EQ(report("affine.ptx --launch l.json --schedule random:3 --trace t.json")["schedule"], "random:3");
  EXPECT_TRUE(json::parse(slurp(folder_ / "t.json")).contains("traceEvents"));
}

TEST_F(TwPtx, RefusesWhatIsNoLaunchFile) {
  expect_refused("{\n\"grid\": [1],\n}",
                 "l.json:3: error: syntax error while parsing object key - unexpected '}'; "
                 "expected string literal");
  expect_refused("[]", "l.json:1: error: a launch file must be an object");
  expect_refused(
      launch("\"gird\": [1],"),
      "l.json:2: error: a launch file has an unknown member \"gird\"; known: entry, grid, block, cluster, "
      "dynamic_shared, dependent, buffers, arguments, names");
  expect_refused(launch("\"grid\": [0],"), "l.json:2: error: \"grid\" is 0, allowed are 1 to 4294967295");
  expect_refused(launch("\"grid\": 4,"), "l.json:2: error: \"grid\" must be an array");
  expect_refused(launch("\"entry\": \"afine\","),
                 "l.json:1: error: affine.ptx has no entry 'afine'; it has affine");
  expect_misuse("affine.ptx --launch none.json", "error: cannot read none.json");
}

TEST_F(TwPtx, RefusesWrongBuffers) {
  expect_refused(launch("", R"(, "init": "randon:1")"),
                 "l.json:4: error: initialiser 'randon:1': expected none, zeros, ones, iota[:START[:STEP]], "
                 "random:SEED[:LOW:HIGH] or file:PATH");
  expect_refused(launch("", R"(, "strides": [1, 1])"),
                 "l.json:4: error: buffer 'out' has 1 dimensions and 2 strides");
  expect_refused(launch("", R"(, "init": "file:none.bin")"), "l.json:4: error: cannot read none.bin");
  expect_refused(launch("", R"(, "expect": {"buffer": "nobody"})"),
                 "l.json:4: error: there is no buffer 'nobody'");
  expect_refused(launch("", R"(, "expect": {"tolerance": 1})"),
                 "l.json:4: error: \"expect\" takes one of \"file\", \"buffer\" and \"values\"");
  write("two.txt", "1 2\n");
  expect_refused(launch("", R"(, "init": "file:two.txt")"),
                 "l.json:4: error: two.txt has 2 numbers, the buffer 6 elements");
  write("bad.txt", "1 2\n3 four\n");
  expect_refused(launch("", R"(, "init": "file:bad.txt")"), "bad.txt:2: error: expected a number");
}

TEST_F(TwPtx, RefusesWrongArguments) {
  const auto with = [&](const std::string& in, const std::string& pair, const std::string& n) {
    return launch("", "", "[" + in + ",\n{\"buffer\": \"out\"},\n" + pair + ",\n" + n + "]");
  };
  const std::string in = R"({"buffer": "in"})", pair = R"({"bytes": "00000040 0000803f"})",
                    n = R"({"value": 6})";
  expect_refused(
      launch("", "", "[]"),
      "l.json:1: error: entry affine has 4 parameters (.u64 affine_in; .u64 affine_out; .align 4 .b8 "
      "affine_pair[8]; .u32 affine_n), the launch gives 0");
  expect_refused(with(R"({"buffer": "inn"})", pair, n), "l.json:6: error: there is no buffer 'inn'");
  expect_refused(with(in, R"({"value": 1})", n),
                 "l.json:8: error: parameter 'affine_pair' (.align 4 .b8 "
                 "affine_pair[8]): a number cannot fill an array; give its \"bytes\"");
  expect_refused(
      with(in, R"({"bytes": "0000"})", n),
      "l.json:8: error: parameter 'affine_pair' (.align 4 .b8 affine_pair[8]): it takes 8 bytes, given 2");
  expect_refused(with(in, R"({"bytes": "0g"})", n),
                 "l.json:8: error: \"bytes\": 'g' is no hexadecimal digit");
  expect_refused(with(in, pair, R"({"value": 1.5})"),
                 "l.json:9: error: parameter 'affine_n' (.u32 affine_n): it takes an integer, given 1.5");
  expect_refused(with(in, pair, R"({"value": 4294967296})"),
                 "l.json:9: error: parameter 'affine_n' (.u32 affine_n): 32 bits cannot hold 4294967296");
  expect_refused(with(in, pair, R"({"buffer": "out"})"),
                 "l.json:9: error: parameter 'affine_n' (.u32 affine_n): it has no room for the address of "
                 "buffer 'out'");
  expect_refused(
      with(R"({"parameter": "affine_out", "buffer": "in"})", pair, n),
      "l.json:6: error: the argument is for parameter 'affine_out', but the entry's parameter in this place "
      "is 'affine_in'");
  expect_refused(
      with(R"({"tensor_map": {"buffer": "in", "box": [3]}})", pair, n),
      "l.json:6: error: tensor map of buffer 'in': the box has 3 elements of 4 bytes along dimension 0, 12 "
      "bytes; they must be a multiple of 16");
}

TEST_F(TwPtx, RefusesWrongOptions) {
  expect_misuse("affine.ptx --arg f32",
                "error: argument 'f32': expected a number, TYPE[EXTENT, ...] with "
                "=INITIALISER or not, or a JSON object");
  expect_misuse("affine.ptx --arg 1 --print arg0",
                "error: --print arg0: there is no such buffer; there are: none");
  expect_misuse("affine.ptx --arg f32[4] --keep arg0", "error: --keep arg0: expected BUFFER=FILE");
  expect_misuse("nowhere.ptx", "error: cannot read nowhere.ptx");
  write("broken.ptx", ".version 8.7\n.target sm_90a\n.address_size 64\n.entry e() { bar.sync 0 }\n");
  EXPECT_EQ(tw("broken.ptx").err.substr(0, 13), "broken.ptx:4:");
}

// A fault names the line of the PTX, and shared memory by its symbol or by the name that the launch file
// gives.
TEST_F(TwPtx, NamesSharedMemory) {
  write("s.ptx", R"(.version 8.7
.target sm_90a
.address_size 64
.entry e() {
  .reg .b32 %r<2>;
  .shared .align 4 .b8 _ZZ1eE4tile[64];
  ld.shared.u32 %r1, [_ZZ1eE4tile+8];
  ret;
}
)");
  const Outcome symbol = tw("s.ptx --grid 1");
  EXPECT_EQ(symbol.code, 1);
  EXPECT_EQ(symbol.err.substr(0, symbol.err.find('\n')),
            "s.ptx:7:3: fault: read of shared memory that nothing has written: tile + 8 bytes (offset 8) of "
            "CTA rank 0");
  write("l.json", R"({"names": {"shared": [{"name": "ring", "begin": 0, "end": 64, "stages": 16}]}})");
  EXPECT_NE(tw("s.ptx --launch l.json").err.find("written: ring[2] (offset 8)"), std::string::npos);
  // The checker shows the line.
  const Outcome checked = tw("s.ptx", "check");
  EXPECT_EQ(checked.code, 1);
  EXPECT_NE(checked.out.find("\n    7 |   ld.shared.u32 %r1, [_ZZ1eE4tile+8];\n      |   ^\n"),
            std::string::npos)
      << checked.out;
  EXPECT_NE(checked.out.find("see docs/faults/undefined-behaviour.md"), std::string::npos);
}

}  // namespace
