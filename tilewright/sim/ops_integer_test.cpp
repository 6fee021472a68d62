#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "tilewright/sim/testing.h"
#include "tilewright/sim/vector_level.h"

// References written from PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic
// Instructions" and "Logic and Shift Instructions".
namespace tw::sim::testing {
namespace {

const std::vector<uint64_t> kEdges32 = {
    0,          1,          2,          3,          7,          31,        32,      33,
    63,         255,        256,        0x7FFF,     0x8000,     0xFFFF,    0x10000, 0x12345678,
    0x7FFFFFFF, 0x80000000, 0x80000001, 0xDEADBEEF, 0xFFFFFFFE, 0xFFFFFFFF};
const std::vector<uint64_t> kEdges64 = {0,
                                        1,
                                        2,
                                        31,
                                        63,
                                        64,
                                        65,
                                        0xFFFFFFFF,
                                        0x100000000,
                                        0x7FFFFFFFFFFFFFFF,
                                        0x8000000000000000,
                                        0x8000000000000001,
                                        0xFEDCBA9876543210,
                                        0xFFFFFFFFFFFFFFFF};
const std::vector<uint64_t> kEdges16 = {0, 1, 2, 15, 16, 17, 0x7FFF, 0x8000, 0x8001, 0x1234, 0xFFFF};

template <class F>
void check2(std::string_view text, int out, int in, const std::vector<uint64_t>& values, F reference) {
  const auto columns = pairs(values, values);
  const auto got = evaluate(text, out, in, columns);
  for (size_t n = 0; n < got.size(); ++n) {
    const uint64_t mask = out == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * out)) - 1;
    ASSERT_EQ(got[n], static_cast<uint64_t>(reference(columns[0][n], columns[1][n])) & mask)
        << text << " of " << std::hex << columns[0][n] << ", " << columns[1][n];
  }
}
template <class F>
void check1(std::string_view text, int out, int in, const std::vector<uint64_t>& values, F reference) {
  const auto got = evaluate(text, out, in, {values});
  for (size_t n = 0; n < got.size(); ++n) {
    const uint64_t mask = out == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * out)) - 1;
    ASSERT_EQ(got[n], static_cast<uint64_t>(reference(values[n])) & mask)
        << text << " of " << std::hex << values[n];
  }
}

using u64 = uint64_t;
int32_t s32(u64 v) { return static_cast<int32_t>(v); }
int64_t s64(u64 v) { return static_cast<int64_t>(v); }
int16_t s16(u64 v) { return static_cast<int16_t>(v); }

TEST(Integer, AddSubMulWrap) {
  check2("add.s32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) { return a + b; });
  check2("sub.u32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) { return a - b; });
  check2("mul.lo.s32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) { return a * b; });
  check2("mul.hi.s32 %d, %a, %b;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return static_cast<u64>((int64_t{s32(a)} * s32(b)) >> 32); });
  check2("mul.hi.u32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) { return (a * b) >> 32; });
  check2("mul.wide.s32 %d, %a, %b;", 8, 4, kEdges32,
         [](u64 a, u64 b) { return static_cast<u64>(int64_t{s32(a)} * s32(b)); });
  check2("mul.wide.u16 %d, %a, %b;", 4, 2, kEdges16, [](u64 a, u64 b) { return a * b; });
  check2("add.s64 %d, %a, %b;", 8, 8, kEdges64, [](u64 a, u64 b) { return a + b; });
  check2("mul.lo.s64 %d, %a, %b;", 8, 8, kEdges64, [](u64 a, u64 b) { return a * b; });
  check2("add.s16 %d, %a, %b;", 2, 2, kEdges16, [](u64 a, u64 b) { return a + b; });
  check2("mad.lo.s32 %d, %a, %b, %a;", 4, 4, kEdges32, [](u64 a, u64 b) { return a * b + a; });
}

TEST(Integer, Saturates) {
  auto clamp = [](int64_t v) { return static_cast<u64>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); };
  check2("add.sat.s32 %d, %a, %b;", 4, 4, kEdges32,
         [&](u64 a, u64 b) { return clamp(int64_t{s32(a)} + s32(b)); });
  check2("sub.sat.s32 %d, %a, %b;", 4, 4, kEdges32,
         [&](u64 a, u64 b) { return clamp(int64_t{s32(a)} - s32(b)); });
}

TEST(Integer, DivisionAndRemainder) {
  std::vector<u64> divisors(kEdges32.begin() + 1, kEdges32.end());
  const auto columns = pairs(kEdges32, divisors);
  const auto q = evaluate("div.s32 %d, %a, %b;", 4, 4, columns),
             r = evaluate("rem.s32 %d, %a, %b;", 4, 4, columns);
  const auto uq = evaluate("div.u32 %d, %a, %b;", 4, 4, columns);
  for (size_t n = 0; n < q.size(); ++n) {
    const int64_t a = s32(columns[0][n]), b = s32(columns[1][n]);
    EXPECT_EQ(q[n], static_cast<uint32_t>(a / b));
    EXPECT_EQ(r[n], static_cast<uint32_t>(a % b));
    EXPECT_EQ(uq[n], columns[0][n] / columns[1][n]);
  }
}

TEST(Integer, CarryChains) {
  // 128-bit sum and difference from 32-bit words: "add.cc", "addc", "sub.cc", "subc".
  check2(
      ".reg .b32 %x<4>, %y<4>; mov.b64 {%x0, %x1}, %a; mov.b64 {%y0, %y1}, %b;"
      "add.cc.u32 %x2, %x0, %y0; addc.u32 %x3, %x1, %y1; mov.b64 %d, {%x2, %x3};",
      8, 8, kEdges64, [](u64 a, u64 b) { return a + b; });
  check2(
      ".reg .b32 %x<4>, %y<4>; mov.b64 {%x0, %x1}, %a; mov.b64 {%y0, %y1}, %b;"
      "sub.cc.u32 %x2, %x0, %y0; subc.u32 %x3, %x1, %y1; mov.b64 %d, {%x2, %x3};",
      8, 8, kEdges64, [](u64 a, u64 b) { return a - b; });
  // The carry out of a 64-bit addition.
  check2("add.cc.u64 %l0, %a, %b; addc.u64 %d, 0, 0;", 8, 8, kEdges64,
         [](u64 a, u64 b) { return a + b < a ? 1u : 0u; });
  check2("mad.lo.cc.u32 %t0, %a, %b, %a; madc.hi.u32 %d, %a, %b, 0;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return (a * b + a) >> 32; });
}

TEST(Integer, MinMaxAbsNegSad) {
  check2("min.s32 %d, %a, %b;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return static_cast<u64>(std::min(s32(a), s32(b))); });
  check2("max.u64 %d, %a, %b;", 8, 8, kEdges64, [](u64 a, u64 b) { return std::max(a, b); });
  check2("max.s64 %d, %a, %b;", 8, 8, kEdges64,
         [](u64 a, u64 b) { return static_cast<u64>(std::max(s64(a), s64(b))); });
  check2("max.relu.s32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) {
    return static_cast<u64>(std::max({s32(a), s32(b), 0}));
  });
  check2("min.s16x2 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) {
    const auto low = static_cast<uint16_t>(std::min(s16(a), s16(b))),
               high = static_cast<uint16_t>(std::min(s16(a >> 16), s16(b >> 16)));
    return u64{high} << 16 | low;
  });
  check1("abs.s32 %d, %a;", 4, 4, kEdges32,
         [](u64 a) { return static_cast<u64>(std::abs(int64_t{s32(a)})); });  // INT_MIN stays
  check1("neg.s32 %d, %a;", 4, 4, kEdges32, [](u64 a) { return 0 - a; });
  check2("sad.s32 %d, %a, %b, 5;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return static_cast<u64>(5 + std::abs(int64_t{s32(a)} - s32(b))); });
}

TEST(Integer, DotProducts) {
  check2("dp4a.s32.u32 %d, %a, %b, 100;", 4, 4, kEdges32, [](u64 a, u64 b) {
    int64_t sum = 100;
    for (int n = 0; n < 4; ++n)
      sum += int64_t{static_cast<int8_t>(a >> (8 * n))} * static_cast<uint8_t>(b >> (8 * n));
    return static_cast<u64>(sum);
  });
  check2("dp2a.hi.s32.s32 %d, %a, %b, 0;", 4, 4, kEdges32, [](u64 a, u64 b) {
    int64_t sum = 0;
    for (int n = 0; n < 2; ++n) sum += int64_t{s16(a >> (16 * n))} * static_cast<int8_t>(b >> (8 * (n + 2)));
    return static_cast<u64>(sum);
  });
}

TEST(Logic, ShiftsClampTheirAmount) {
  check2("shl.b32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) { return b >= 32 ? 0 : a << b; });
  check2("shr.u32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) { return b >= 32 ? 0 : a >> b; });
  check2("shr.s32 %d, %a, %b;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return static_cast<u64>(int64_t{s32(a)} >> std::min<u64>(b, 31)); });
  check2("cvt.u32.u64 %t0, %b; shl.b64 %d, %a, %t0;", 8, 8, kEdges64, [](u64 a, u64 b) {
    const u64 n = b & 0xFFFFFFFF;
    return n >= 64 ? 0 : a << n;
  });
  check2("shf.l.wrap.b32 %d, %a, %b, %b;", 4, 4, kEdges32, [](u64 a, u64 b) {
    const u64 n = b & 31;
    return ((b << 32 | a) << n) >> 32;
  });
  check2("shf.r.clamp.b32 %d, %a, %b, %b;", 4, 4, kEdges32, [](u64 a, u64 b) {
    const u64 n = std::min<u64>(b, 32);
    return (b << 32 | a) >> n;
  });
}

TEST(Logic, Lop3IsItsTable) {
  for (int table : {0x96, 0xEA, 0x6A, 0x00, 0xFF, 0xE8, 0x1B, 0xCA, 0x80, 0xFE}) {
    check2(tw::format("lop3.b32 %d, %a, %b, 0x0F0F3355, {};", table), 4, 4, kEdges32, [&](u64 a, u64 b) {
      u64 r = 0;
      for (int bit = 0; bit < 32; ++bit) {
        const u64 index = (a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (u64{0x0F0F3355} >> bit & 1);
        r |= static_cast<u64>(table >> index & 1) << bit;
      }
      return r;
    });
  }
}

TEST(Logic, BitCountsAndFields) {
  check1("popc.b32 %d, %a;", 4, 4, kEdges32, [](u64 a) { return __builtin_popcountll(a); });
  check1("clz.b64 %d, %a;", 4, 8, kEdges64, [](u64 a) { return a ? __builtin_clzll(a) : 64; });
  check1("brev.b32 %d, %a;", 4, 4, kEdges32, [](u64 a) {
    u64 r = 0;
    for (int n = 0; n < 32; ++n) r |= (a >> n & 1) << (31 - n);
    return r;
  });
  check1("bfind.u32 %d, %a;", 4, 4, kEdges32, [](u64 a) { return a ? 63 - __builtin_clzll(a) : -1; });
  check1("bfind.s32 %d, %a;", 4, 4, kEdges32, [](u64 a) {
    const u64 v = s32(a) < 0 ? ~a & 0xFFFFFFFF : a;
    return v ? 63 - __builtin_clzll(v) : -1;
  });
  check1("bfind.shiftamt.u32 %d, %a;", 4, 4, kEdges32,
         [](u64 a) { return a ? 31 - (63 - __builtin_clzll(a)) : -1; });
  for (int pos : {0, 3, 16, 31, 40}) {
    for (int len : {0, 1, 8, 16, 32, 255}) {
      // "bfe": the pseudo code of the ISA.
      check1(tw::format("bfe.s32 %d, %a, {}, {};", pos, len), 4, 4, kEdges32, [&](u64 a) {
        const int msb = 31;
        const u64 sign = len == 0 ? 0 : a >> std::min(pos + len - 1, msb) & 1;
        u64 d = 0;
        for (int i = 0; i <= msb; ++i) d |= ((i < len && pos + i <= msb) ? a >> (pos + i) & 1 : sign) << i;
        return d;
      });
      check1(tw::format("bfi.b32 %d, 0xA5A5A5A5, %a, {}, {};", pos, len), 4, 4, kEdges32, [&](u64 a) {
        u64 d = a;
        for (int i = 0; i < len && pos + i <= 31; ++i) {
          d &= ~(u64{1} << (pos + i));
          d |= (u64{0xA5A5A5A5} >> i & 1) << (pos + i);
        }
        return d;
      });
    }
  }
  check2("bmsk.clamp.b32 %d, %a, %b;", 4, 4, {0, 1, 5, 31, 32, 40}, [](u64 a, u64 b) {
    u64 d = 0;
    for (u64 i = 0; i < std::min<u64>(b, 32); ++i)
      if (a + i < 32) d |= u64{1} << (a + i);
    return a >= 32 ? 0 : d;
  });
  check2("szext.clamp.s32 %d, %a, %b;", 4, 4, kEdges32, [](u64 a, u64 b) {
    if (b == 0) return u64{0};
    if (b >= 32) return a;
    return static_cast<u64>(static_cast<int64_t>(a << (64 - b)) >> (64 - b));
  });
}

TEST(Logic, PrmtModes) {
  const auto columns = pairs({0x33221100, 0x80FF017F}, {0x77665544});
  for (auto [selector, want0] :
       {std::pair{"0x7531", 0x77553311u}, {"0x0000", 0u}, {"0x3210", 0x33221100u}, {"0xC840", 0x00004400u}}) {
    EXPECT_EQ(evaluate(tw::format("prmt.b32 %d, %a, %b, {};", selector), 4, 4, columns)[0], want0)
        << selector;
  }
  // Tables of "prmt", selector 1.
  for (auto [mode, want] : {std::pair{"f4e", 0x44332211u},
                            {"b4e", 0x66770011u},
                            {"rc8", 0x11111111u},
                            {"ecl", 0x33221111u},
                            {"ecr", 0x11111100u},
                            {"rc16", 0x33223322u}}) {
    EXPECT_EQ(evaluate(tw::format("mov.u32 %t0, 1; prmt.b32.{} %d, %a, %b, %t0;", mode), 4, 4, columns)[0],
              want)
        << mode;
  }
}

// "prmt": its definition byte by byte, for every selector.
TEST(Logic, PrmtTakesEverySelector) {
  std::mt19937 random(3);
  std::vector<std::vector<u64>> columns(3, std::vector<u64>(65536));
  for (size_t n = 0; n < 65536; ++n)
    columns[0][n] = random(), columns[1][n] = random(), columns[2][n] = n | (random() & 0xFFFF0000);
  const struct {
    const char* mode;
    u64 (*index)(u64 selector, u64 byte);
  } modes[] = {{"", [](u64 s, u64 n) { return s >> (4 * n) & 15; }},
               {".f4e", [](u64 s, u64 n) { return (s & 3) + n; }},
               {".b4e", [](u64 s, u64 n) { return ((s & 3) - n) & 7; }},
               {".rc8", [](u64 s, u64) { return s & 3; }},
               {".ecl", [](u64 s, u64 n) { return std::max(s & 3, n); }},
               {".ecr", [](u64 s, u64 n) { return std::min(s & 3, n); }},
               {".rc16", [](u64 s, u64 n) { return (s & 1) * 2 + (n & 1); }}};
  for (const VectorLevel level : {VectorLevel::plain, VectorLevel::avx2, VectorLevel::avx512}) {
    const VectorLevelLimit limit(level);
    for (const auto& m : modes) {
      const auto got = evaluate(tw::format("prmt.b32{} %d, %a, %b, %c;", m.mode), 4, 4, columns);
      for (size_t n = 0; n < 65536; ++n) {
        const u64 both = columns[1][n] << 32 | columns[0][n];
        u64 wanted = 0;
        for (u64 k = 0; k < 4; ++k) {
          const u64 index = m.index(columns[2][n], k), byte = both >> (8 * (index & 7)) & 0xFF;
          wanted |= ((index & 8) ? (byte >> 7) * 0xFF : byte) << (8 * k);
        }
        ASSERT_EQ(got[n], wanted) << m.mode << std::hex << " " << columns[2][n];
      }
    }
  }
}

TEST(Move, PacksAndUnpacks) {
  check1("mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};", 4, 4, kEdges32,
         [](u64 a) { return a >> 16 | a << 16; });
  check1("mov.b64 {%t0, _}, %a; cvt.u64.u32 %d, %t0;", 8, 8, kEdges64, [](u64 a) { return a & 0xFFFFFFFF; });
  check1("mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {%h3, %h2, %h1, %h0};", 8, 8, kEdges64,
         [](u64 a) { return a >> 48 | (a >> 32 & 0xFFFF) << 16 | (a >> 16 & 0xFFFF) << 32 | a << 48; });
}

TEST(Integer, GuardsAndSelections) {
  check2("setp.lt.s32 %p, %a, %b; mov.u32 %d, 1; @%p mov.u32 %d, 2; @!%p add.u32 %d, %d, 10;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return s32(a) < s32(b) ? 2 : 11; });
  check2("setp.gt.u32 %p, %a, %b; selp.b32 %d, %a, %b, %p;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return std::max(a, b); });
  check2(
      "setp.eq.u32 %q, %a, 1; setp.lt.and.s32 %p|%q, %a, %b, !%q; selp.b32 %t0, 1, 0, %p; selp.b32 %t1, 2, "
      "0, %q; add.u32 %d, %t0, %t1;",
      4, 4, kEdges32, [](u64 a, u64 b) { return a == 1            ? 0
                                                : s32(a) < s32(b) ? 1
                                                                  : 2; });
  check2("slct.s32.s32 %d, %a, %b, %a;", 4, 4, kEdges32, [](u64 a, u64 b) { return s32(a) >= 0 ? a : b; });
  check2("set.ge.u32.s32 %d, %a, %b;", 4, 4, kEdges32,
         [](u64 a, u64 b) { return s32(a) >= s32(b) ? 0xFFFFFFFF : 0; });
}

}  // namespace
}  // namespace tw::sim::testing
