#include "tilewright/layout/draw.h"

#include <gtest/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/layout/text.h"

namespace tw {
namespace {

size_t count(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Table, PlacesThreadsAndCopies) {
  EXPECT_EQ(to_table(parse_layout("S(2,3):(3,1)"), Shape{2, 3}),
            "  | 0  1  2\n"
            "0 | 0  1  2\n"
            "1 | 3  4  5\n");
  EXPECT_EQ(to_table(parse_layout("S(2,2):(4@l,1) + R[2:4@w] + 5@w"), Shape{2, 2}),
            "  |         0          1\n"
            "0 | W5|9 L0:0  W5|9 L0:1\n"
            "1 | W5|9 L4:0  W5|9 L4:1\n");
  EXPECT_EQ(to_table(parse_layout("S(2,2,2):(1@TLane,2@TCol,1@TCol)"), Shape{2, 2, 2}),
            "    |              0               1\n"
            "0,0 | TLane 0 TCol 0  TLane 0 TCol 1\n"
            "0,1 | TLane 0 TCol 2  TLane 0 TCol 3\n"
            "1,0 | TLane 1 TCol 0  TLane 1 TCol 1\n"
            "1,1 | TLane 1 TCol 2  TLane 1 TCol 3\n");
}

TEST(Table, SaysWhatIsCut) {
  const std::string t =
      to_table(parse_layout("S(100,100):(100,1)"), Shape{100, 100}, {.max_rows = 2, .max_columns = 3});
  EXPECT_EQ(count(t, "\n"), 4u);
  EXPECT_NE(t.find("(first 2 of 100 rows, first 3 of 100 columns)"), std::string::npos);
  EXPECT_THROW(to_table(parse_layout("S(4,4):(4,1)"), Shape{4, 5}), Error);
}

TEST(Svg, ACellForEachElementColouredByBankOrThread) {
  const std::string bank = to_svg(mma_shared_layout(DType::f16, SwizzleMode::b128, Shape{8, 64}),
                                  Shape{8, 64}, {.element_bits = 16, .title = "A <f16>"});
  EXPECT_EQ(count(bank, "<rect"), 512u + 32 + 1);  // cells, legend, background
  EXPECT_NE(bank.find("A &lt;f16&gt;"), std::string::npos);
  EXPECT_NE(bank.find("SW(3,3,3) o S[512 : 1]"), std::string::npos);
  EXPECT_NE(bank.find("bank"), std::string::npos);

  const std::string thread = to_svg(mma_accumulator_fragment(), Shape{16, 8});
  EXPECT_EQ(count(thread, ">L31<"), 4u);  // lane 31 holds four elements
  EXPECT_NE(thread.find("thread"), std::string::npos);
  EXPECT_EQ(count(to_svg(parse_layout("S 40:1"), Shape{40}), "<rect"), 40u + 32 + 1);
}

}  // namespace
}  // namespace tw
