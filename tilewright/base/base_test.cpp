#include <gtest/gtest.h>

#include "tilewright/base/dtype.h"
#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw {
namespace {

TEST(Error, ReadsLikeACompilerDiagnostic) {
  Error e(ErrorKind::user, {"a.cpp", 3, 7}, "K is not a multiple of 64",
          {{{"a.cpp", 1}, "K is declared here"}});
  EXPECT_STREQ(e.what(), "a.cpp:3:7: error: K is not a multiple of 64\na.cpp:1: note: K is declared here");
}

TEST(Error, ShowsPathsFromTheProjectRoot) {
  SourceLoc here = std::source_location::current();
  EXPECT_TRUE(to_string(here).starts_with("tilewright/base/base_test.cpp:")) << to_string(here);
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::e2m1); ++i) {
    DType t = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(t)), t);
  }
  EXPECT_THROW(dtype_from_name("f8"), Error);
  EXPECT_EQ(bits(DType::e2m1), 4);
  EXPECT_TRUE(is_signed(DType::bf16));
  EXPECT_FALSE(is_signed(DType::e8m0));
}

TEST(Math, Rounding) {
  EXPECT_EQ(ceil_div(7, 4), 2);
  EXPECT_EQ(round_up(129, 128), 256);
  EXPECT_TRUE(is_power_of_two(64));
  EXPECT_FALSE(is_power_of_two(0));
}

}  // namespace
}  // namespace tw
