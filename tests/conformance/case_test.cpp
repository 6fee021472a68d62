#include "case.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>

#include "tests/support/assemble.h"
#include "tilewright/base/error.h"
#include "tilewright/ptx/module.h"

namespace tw::conformance {
namespace {

Elements decoded(const char* type, std::vector<std::string> lines) {
  return decode(element_from_name(type), lines);
}

TEST(ConformanceText, ReadsEveryKindOfToken) {
  EXPECT_EQ(decoded("b32", {"0x1 0xffffffff*2", "0x0"}), (Elements{1, 0xffffffff, 0xffffffff, 0}));
  EXPECT_EQ(decoded("s8", {"-1 127 -128*2"}), (Elements{0xff, 0x7f, 0x80, 0x80}));
  EXPECT_EQ(decoded("u64", {"18446744073709551615"}), (Elements{~uint64_t{0}}));
  EXPECT_EQ(decoded("f32", {"1 -0 0x7fc00000 1.4e-45"}), (Elements{0x3f800000, 0x80000000, 0x7fc00000, 1}));
  EXPECT_EQ(decoded("f64", {"-2"}), (Elements{0xc000000000000000}));
}

TEST(ConformanceText, RejectsWhatIsNoValue) {
  EXPECT_THROW(decoded("b32", {"12"}), Error);
  EXPECT_THROW(decoded("s32", {"1.5"}), Error);
  EXPECT_THROW(decoded("f32", {"one"}), Error);
  EXPECT_THROW(element_from_name("f16"), Error);
}

TEST(ConformanceText, EncodeThenDecodeIsTheIdentity) {
  for (const char* name : {"b8", "u16", "s16", "b32", "s32", "f32", "u64", "s64", "f64"})
    EXPECT_TRUE(rc::check(name, [name](const std::vector<uint64_t>& raw) {
      const Element type = element_from_name(name);
      Elements elements;
      for (uint64_t r : raw) {
        const uint64_t value = splitmix64(r) >> (64 - type.bits);
        elements.insert(elements.end(), 1 + r % 3, value);
      }
      const std::vector<std::string> lines = encode(type, elements);
      for (const std::string& line : lines) RC_ASSERT(line.size() <= 100u);
      RC_ASSERT(decode(type, lines) == elements);
      RC_ASSERT(from_bytes(type, to_bytes(type, elements)) == elements);
    }));
}

TEST(ConformanceText, GeneratorIsSplitMix64) {
  // The first outputs of the authors' reference program for seed 0.
  EXPECT_EQ(splitmix64(1), 0xe220a8397b1dcdafu);
  EXPECT_EQ(splitmix64(2), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(splitmix64(3), 0x06c45d188009454fu);
}

TEST(ConformanceText, Compares) {
  Array exact{.name = "d", .type = element_from_name("b32"), .count = 3, .expected = Elements{1, 2, 3}};
  EXPECT_EQ(mismatch(exact, {1, 2, 3}), "");
  EXPECT_EQ(mismatch(exact, {1, 5, 4}), "d[1] is 0x5, expected 0x2 (2 of 3 differ)");
  Array close{.name = "d",
              .type = element_from_name("f32"),
              .count = 4,
              .tolerance = Tolerance{.relative = 0.25, .absolute = 0},
              .expected = decoded("f32", {"4 0x7fc00000 0 -8"})};
  EXPECT_EQ(mismatch(close, decoded("f32", {"5 0xffffffff -0 -6"})), "");
  EXPECT_EQ(mismatch(close, decoded("f32", {"5.1 1 0 -8"})), "d[0] is 5.1, expected 4 (2 of 4 differ)");
}

TEST(ConformanceText, RecordingKeepsTheRestOfTheFile) {
  const std::string root = ::testing::TempDir() + "conformance";
  std::filesystem::create_directories(root + "/a");
  const std::string text = R"({
 "entry": "a_b",
 "grid": [2, 1, 1],
 "block": [32, 1, 1],
 "cluster": [1, 1, 1],
 "dynamic_shared": 0,
 "inputs": [],
 "outputs": [
  {
   "name": "d",
   "type": "s16",
   "count": 4,
   "compare": "exact"
  }
 ],
 "recorded": null,
 "expected": null
}
)";
  std::ofstream(root + "/a/b.json") << text;
  std::ofstream(root + "/a/b.ptx") << "// a module\n";
  EXPECT_EQ(case_names(root), std::vector<std::string>{"a/b"});
  EXPECT_FALSE(load_case(root, "a/b").recorded());
  const std::vector<Elements> outputs = {{1, 1, 0xffff, 7}};
  record_case(root, "a/b", outputs, {.device = "GPU", .driver = "1", .date = "2026-01-01"});
  const Case recorded = load_case(root, "a/b");
  EXPECT_EQ(*recorded.outputs[0].expected, outputs[0]);
  EXPECT_EQ(recorded.launch.grid, (sim::Dim3{2, 1, 1}));
  std::ifstream in(root + "/a/b.json");
  const std::string after((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(after.substr(0, after.find(" \"recorded\"")), text.substr(0, text.find(" \"recorded\"")));
  EXPECT_NE(after.find("\"1*2 -1 7\""), std::string::npos);
}

// The law of the PTX room over this folder: print -> parse -> print is the identity, and ptxas takes the
// print.
TEST(ConformanceModules, ParseAndPrint) {
  const std::string root = TW_SOURCE_DIR "/tests/conformance";
  for (const std::string& name : case_names(root)) {
    SCOPED_TRACE(name);
    const Case test = load_case(root, name);
    try {
      const std::string once = ptx::print(ptx::parse(test.ptx, test.ptx_path));
      EXPECT_EQ(ptx::print(ptx::parse(once, "printed.ptx")), once);
      EXPECT_TRUE(testing::assembles(once, "sm_90a"));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace tw::conformance
