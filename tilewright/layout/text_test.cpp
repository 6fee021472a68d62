#include "tilewright/layout/text.h"

#include <gtest/gtest.h>

#include "tilewright/base/error.h"

namespace tw {
namespace {

TEST(Text, CanonicalAndCompactForms) {
  const char* full = "S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid";
  EXPECT_EQ(to_string(parse_tile_layout(full)), full);
  EXPECT_EQ(to_string(parse_tile_layout("S(8,2,4,2):(4@l,1@w,1@l,1)+R[2:4@w]+5@w")), full);
  EXPECT_EQ(to_string(parse_tile_layout("64:1")), "S[64 : 1]");
  EXPECT_EQ(to_string(parse_tile_layout("S[8, 4]")), "S[(8, 4) : (4, 1)]");
  EXPECT_EQ(to_string(parse_tile_layout("S(2,2):(-3,1) - 4@m + 7")), "S[(2, 2) : (-3, 1)] + 3");
  const char* swizzled = "SW(3,3,3) o S[(64, 4, 64) : (64, 4096, 1)]";
  EXPECT_EQ(to_string(parse_layout(swizzled)), swizzled);
  EXPECT_EQ(to_string(parse_layout("SW(3,3,3)∘S(64,4,64):(64,4096,1)")), swizzled);
  EXPECT_EQ(to_string(Point{{axis::m, 1}, {axis::laneid, 3}}), "laneid 3, m 1");
}

struct Bad {
  const char* text;
  uint32_t column;
  const char* message;
};
void PrintTo(const Bad& b, std::ostream* os) { *os << b.text; }

class Malformed : public testing::TestWithParam<Bad> {};
TEST_P(Malformed, PointsAtTheColumn) {
  try {
    parse_layout(GetParam().text);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user);
    EXPECT_EQ(e.loc().column, GetParam().column) << e.what();
    EXPECT_NE(e.message().find(GetParam().message), std::string::npos) << e.message();
  }
}
INSTANTIATE_TEST_SUITE_P(
    Text, Malformed,
    testing::Values(
        Bad{"", 1, "expected a number, at the end of ''"}, Bad{"S", 2, "expected a number"},
        Bad{"S[(8, 2) : (4@laneid)]", 12, "1 strides for 2 extents"},
        Bad{"S[(8, 2) : (4@lane, 1)]", 15, "unknown axis 'lane'"},
        Bad{"S[(8, 0) : (4, 1)]", 7, "an extent is at least 1"}, Bad{"S[8 : 1", 8, "expected ']'"},
        Bad{"S[8 : 1] 5", 10, "expected '+'"}, Bad{"S[8 : 1] + R[2 ; 4]", 16, "expected ']'"},
        Bad{"SW(3,3) o S[8 : 1]", 7, "expected ','"}, Bad{"SW(3,3,2) o S[8 : 1]", 1, "at least the second"},
        Bad{"SW(3,3,3) S[8 : 1]", 11, "expected 'o'"}, Bad{"SW(3,3,3) o S[8 : -1]", 13, "starts at place 0"},
        Bad{"S[99999999999999999999 : 1]", 3, "number too large"},
        Bad{"S[(4000000000, 4000000000) : (1, 1)]", 1, "fit in 62 bits"},
        Bad{"S[(2, 4000000000000000000) : (4000000000000000000, 1)]", 1, "fit in 62 bits"},
        Bad{"S[8 : 1@]", 9, "expected an axis name"}));

TEST(Axes, NamesAndKinds) {
  EXPECT_EQ(Axis::find("l"), axis::laneid);
  EXPECT_EQ(Axis::find("tiw"), axis::tid_in_wg);
  EXPECT_EQ(Axis::find("nowhere"), std::nullopt);
  EXPECT_TRUE(axis::cbx.is_thread());
  EXPECT_TRUE(axis::TCol.is_memory());
  for (Axis a : {axis::m, axis::P, axis::F, axis::Bank, axis::TLane, axis::TCol, axis::laneid, axis::warpid,
                 axis::wgid, axis::wid_in_wg, axis::tid_in_wg, axis::tx, axis::bx, axis::by, axis::bz,
                 axis::cbx, axis::cby, axis::cbz})
    EXPECT_EQ(Axis::find(a.name()), a);
  const Axis q = Axis::define("queue", Axis::Kind::memory);
  EXPECT_EQ(Axis::define("queue", Axis::Kind::memory), q);
  EXPECT_EQ(to_string(parse_tile_layout("S 4:2@queue")), "S[4 : 2@queue]");
  EXPECT_THROW(Axis::define("queue", Axis::Kind::thread), Error);
  EXPECT_THROW(Axis::define("laneid", Axis::Kind::memory), Error);
  EXPECT_THROW(Axis::define("2x", Axis::Kind::memory), Error);
}

}  // namespace
}  // namespace tw
