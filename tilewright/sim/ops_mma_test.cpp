#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>
#include <tuple>

#include "tilewright/base/formats.h"
#include "tilewright/sim/testing.h"

// mma.sync on 8-bit operands. Fragments are placed by the formulas of the PTX ISA ("Matrix Fragments for
// mma.m16n8k16 with integer type", "Matrix Fragments for mma.m16n8k32"), element by element.
namespace tw::sim::testing {
namespace {

using Codes = std::vector<uint8_t>;  // row-major

struct Product {
  int k = 32;
  std::string types, result;  // "s8.u8", "s32"
  Codes a, b;                 // [16, k], [k, 8]
  std::vector<uint32_t> c;    // [16, 8], as bits
  bool saturate = false;

  // Element i of the lane's fragment of A: row and column.
  uint8_t element_a(int lane, int i) const {
    const int group = lane >> 2, in_group = lane % 4;
    const bool upper = k == 16 ? i >= 4 : (i >= 4 && i < 8) || i >= 12;
    const int column = in_group * 4 + (i & 3) + (k == 32 && i >= 8 ? 16 : 0);
    return a[static_cast<size_t>((group + (upper ? 8 : 0)) * k + column)];
  }
  uint8_t element_b(int lane, int i) const {
    const int row = lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0);
    return b[static_cast<size_t>(row * 8 + (lane >> 2))];
  }
  static size_t element_c(int lane, int i) {
    return static_cast<size_t>(((lane >> 2) + (i >= 2 ? 8 : 0)) * 8 + lane % 4 * 2 + (i & 1));
  }

  // What each lane holds: A, B, C, each register a word.
  std::vector<uint32_t> words() const {
    std::vector<uint32_t> out;
    for (int lane = 0; lane < 32; ++lane) {
      for (int r = 0; r < k / 8; ++r) out.push_back(word(lane, r, &Product::element_a));
      for (int r = 0; r < k / 16; ++r) out.push_back(word(lane, r, &Product::element_b));
      for (int i = 0; i < 4; ++i) out.push_back(c[element_c(lane, i)]);
    }
    return out;
  }
  uint32_t word(int lane, int r, uint8_t (Product::*element)(int, int) const) const {
    uint32_t w = 0;
    for (int i = 0; i < 4; ++i) w |= uint32_t{(this->*element)(lane, 4 * r + i)} << (8 * i);
    return w;
  }

  std::string text() const {
    const int na = k / 8, nb = k / 16, stride = 4 * (na + nb + 4);
    std::string out = format(
        ".reg .b32 %a<5>, %b<3>, %t; .reg .{} %c<5>, %d<5>; .reg .b64 %in, %out, %o;\n"
        "ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; mov.u32 %t, %tid.x;\n"
        "mul.wide.u32 %o, %t, {}; add.u64 %in, %in, %o; mul.wide.u32 %o, %t, 16; add.u64 %out, %out, %o;\n",
        result == "f32" ? "f32" : "b32", stride);
    int at = 0;
    const auto load = [&](char name, int count) {
      std::string list;
      for (int i = 0; i < count; ++i, at += 4) {
        out += format("ld.global.b32 %{}{}, [%in+{}];\n", name, i, at);
        list += format("{}%{}{}", i ? ", " : "", name, i);
      }
      return list;
    };
    const std::string ra = load('a', na), rb = load('b', nb), rc = load('c', 4);
    out += format(
        "mma.sync.aligned.m16n8k{}.row.col{}.{}.{}.{} {{%d0, %d1, %d2, %d3}}, {{{}}}, {{{}}}, {{{}}};\n", k,
        saturate ? ".satfinite" : "", result, types, result, ra, rb, rc);
    for (int i = 0; i < 4; ++i) out += format("st.global.b32 [%out+{}], %d{};\n", 4 * i, i);
    return out + "exit;";
  }

  // D, row-major, as bits.
  std::vector<uint32_t> run() const {
    Program program =
        compile(module_text(".param .u64 out, .param .u64 in", text(), "sm_90a"), small_machine("sm_90a", 1));
    GlobalMemory memory;
    Buffer<uint32_t> out(memory, std::vector<uint32_t>(128, 0), "out"), in(memory, words(), "in");
    program.run({{}, {32, 1, 1}, {}, 0, Params().add(out.address).add(in.address).bytes()}, memory, {});
    const std::vector<uint32_t> lanes = out.get();
    std::vector<uint32_t> d(128);
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) d[element_c(lane, i)] = lanes[static_cast<size_t>(4 * lane + i)];
    return d;
  }
};

Product random_product(int k, std::string types, std::string result, uint32_t seed) {
  std::mt19937 random(seed);
  Product p{k,
            std::move(types),
            std::move(result),
            Codes(16 * static_cast<size_t>(k)),
            Codes(8 * static_cast<size_t>(k)),
            std::vector<uint32_t>(128)};
  for (Codes* codes : {&p.a, &p.b})
    for (uint8_t& code : *codes) code = static_cast<uint8_t>(random());
  for (uint32_t& code : p.c) code = random();
  return p;
}

int64_t integer(char type, uint8_t code) { return type == 's' ? static_cast<int8_t>(code) : code; }

TEST(Mma, IntegersWrapOrSaturate) {
  uint32_t seed = 1;
  for (int k : {16, 32})
    for (const char* types : {"s8.s8", "s8.u8", "u8.s8", "u8.u8"})
      for (bool saturate : {false, true}) {
        Product p = random_product(k, types, "s32", seed++);
        p.saturate = saturate;
        p.c[0] = 0x7fffffff, p.c[1] = 0x80000000;  // near the ends, so that some sums leave the range
        std::fill_n(p.a.begin(), k, 100);
        for (int row = 0; row < k; ++row) p.b[static_cast<size_t>(row * 8)] = 100;
        const std::vector<uint32_t> d = p.run();
        for (int m = 0; m < 16; ++m)
          for (int n = 0; n < 8; ++n) {
            const auto at = static_cast<size_t>(m * 8 + n);
            int64_t sum = static_cast<int32_t>(p.c[at]);
            for (int i = 0; i < k; ++i)
              sum += integer(types[0], p.a[static_cast<size_t>(m * k + i)]) *
                     integer(types[3], p.b[static_cast<size_t>(i * 8 + n)]);
            if (saturate)
              sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                        std::numeric_limits<int32_t>::max());
            ASSERT_EQ(d[at], static_cast<uint32_t>(sum)) << types << " " << k << " " << m << " " << n;
          }
      }
}

TEST(Mma, Fp8TypesMayDiffer) {
  uint32_t seed = 100;
  for (int k : {16, 32})
    for (const auto& [types, ta, tb] : {std::tuple{"e4m3.e4m3", DType::e4m3, DType::e4m3},
                                        {"e4m3.e5m2", DType::e4m3, DType::e5m2},
                                        {"e5m2.e4m3", DType::e5m2, DType::e4m3}}) {
      Product p = random_product(k, types, "f32", seed++);
      for (Codes* codes : {&p.a, &p.b})
        for (uint8_t& code : *codes) code &= 0xbf;  // below 2: no infinity, no NaN, exact sums
      for (uint32_t& code : p.c) code = std::bit_cast<uint32_t>(static_cast<float>(code % 64));
      const std::vector<uint32_t> d = p.run();
      for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 8; ++n) {
          const auto at = static_cast<size_t>(m * 8 + n);
          double sum = std::bit_cast<float>(p.c[at]);
          for (int i = 0; i < k; ++i)
            sum += to_double(ta, p.a[static_cast<size_t>(m * k + i)]) *
                   to_double(tb, p.b[static_cast<size_t>(i * 8 + n)]);
          ASSERT_EQ(std::bit_cast<float>(d[at]), static_cast<float>(sum)) << types << " " << k;
        }
    }
}

}  // namespace
}  // namespace tw::sim::testing
