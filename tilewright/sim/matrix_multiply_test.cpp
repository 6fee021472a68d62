#include "tilewright/sim/matrix_multiply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/sim/matrix_testing.h"

namespace tw::sim::testing {
namespace {

// --- one product, through the code under test and in fp64 ---

struct Case {
  DType a = DType::f16, b = DType::f16, d = DType::f32;
  int m = 128, n = 128, k = 16;
  SwizzleMode a_swizzle = SwizzleMode::b128, b_swizzle = SwizzleMode::b128;
  bool a_mn = false, b_mn = false;
  uint32_t base_offset = 0;  // of both matrices, in units of 128 bytes
};

std::string describe(const Case& c) {
  return tw::format("{} x {} -> {}, {}x{}x{}, A {} {}, B {} {}, base offset {}", name(c.a), name(c.b),
                    name(c.d), c.m, c.n, c.k, name(c.a_swizzle), c.a_mn ? "MN" : "K", name(c.b_swizzle),
                    c.b_mn ? "MN" : "K", c.base_offset);
}

// Strides that leave gaps, so that a confusion of the two shows; both keep swizzle patterns whole.
Strides strides_for(SwizzleMode swizzle, bool mn_major, int mn, long T) {
  long width = swizzle == SwizzleMode::b32 ? 32 : swizzle == SwizzleMode::b64 ? 64 : 128;
  if (swizzle == SwizzleMode::none) {
    if (!mn_major) return {mn / 8 * 144 + 64, 144};  // columns of chunks apart; 8 rows and a gap
    return {(mn / T + 1) * 144 + 16, 144};           // LBO: next 8 k; SBO: next T of mn
  }
  long atom = width * (swizzle == SwizzleMode::b128_atom32 ? 4 : 8);
  if (!mn_major) return {16, atom + 1024};
  long blocks = (mn * (16 / T) + width - 1) / width;
  return {atom + 1024, (atom + 1024) * blocks + 2048};
}

MatrixOperand operand(std::vector<std::byte>& image, const Matrix& m, SwizzleMode swizzle, bool mn_major,
                      uint32_t base_offset) {
  SharedMatrix d;
  d.swizzle = swizzle;
  d.base_offset = base_offset;
  d.start = 1024 + base_offset * 128;
  Strides s = strides_for(swizzle, mn_major, m.mn, chunk_T(m.type));
  d.leading_stride = static_cast<uint32_t>(s.lbo);
  d.stride = static_cast<uint32_t>(s.sbo);
  image.assign(1 << 18, std::byte{0xff});
  for (int i = 0; i < m.mn; ++i) {
    for (int j = 0; j < m.k; ++j) place(image, m, swizzle, mn_major, s, d.start, base_offset * 128, i, j);
  }
  OperandGeometry g = shared_operand(d, m.type, mn_major, m.mn, m.k);
  ByteRange r = extent(g);
  EXPECT_LE(r.end, image.size());
  EXPECT_GE(r.begin, base_offset * 128 + 1024 - 127);
  return {g, image.data()};
}

constexpr std::array<int, 8> kDense{0, 16, 32, 48, 64, 80, 96, 112};

void check(const Case& c, std::mt19937& random) {
  SCOPED_TRACE(describe(c));
  Matrix a = random_matrix(c.a, c.m, c.k, random), b = random_matrix(c.b, c.n, c.k, random);
  std::vector<std::byte> a_image, b_image;
  MatrixProduct p;
  p.a = operand(a_image, a, c.a_swizzle, c.a_mn, c.base_offset);
  p.b = operand(b_image, b, c.b_swizzle, c.b_mn, c.base_offset);
  p.k = c.k;
  p.accumulate = true;
  std::vector<uint32_t> before(128 * 256), result;
  for (auto& cell : before) {
    float f = static_cast<float>(static_cast<int>(random() % 201) - 100);
    cell = c.d == DType::i32   ? static_cast<uint32_t>(f)
           : c.d == DType::f16 ? float_to_f16(f)
                               : std::bit_cast<uint32_t>(f);
    if (c.d == DType::i32) cell = random();
  }
  for (int level : {1, 3, 4}) {
    const MatrixKernels* kernels = matrix_kernels_of_level(level);
    if (kernels == nullptr) continue;
    std::vector<uint32_t> cells = before;
    MatrixUnit unit;
    unit.kernels = kernels;
    unit.append({cells.data(), 128, c.m, c.n, kDense, c.d}, p);
    unit.flush();
    if (result.empty()) result = cells;
    else ASSERT_EQ(result, cells) << "result depends on the level " << kernels->level;
  }
  for (int j = 0; j < c.n; ++j) {
    for (int i = 0; i < c.m; ++i) {
      uint32_t was = before[static_cast<size_t>(j * 128 + i)], is = result[static_cast<size_t>(j * 128 + i)];
      double sum = 0, magnitude = 0;
      for (int k = 0; k < c.k; ++k) {
        sum += a.at(i, k) * b.at(j, k);
        magnitude += std::fabs(a.at(i, k) * b.at(j, k));
      }
      if (c.d == DType::i32) {
        ASSERT_EQ(is, was + static_cast<uint32_t>(static_cast<int64_t>(sum))) << i << ", " << j;
        continue;
      }
      double start = c.d == DType::f16 ? to_double(DType::f16, was) : std::bit_cast<float>(was);
      double expected = start + sum;
      double bound = (c.k + 1) * 0x1p-24 * (std::fabs(start) + magnitude);  // one rounding per addition
      if (c.d == DType::f16) {
        ASSERT_LT(is, 0x10000u) << "an f16 element is the low half of its cell";
        double got = to_double(DType::f16, is);
        if (std::fabs(expected) > 65504) continue;
        ASSERT_NEAR(got, expected, bound + std::max(std::fabs(expected) * 0x1p-11, 0x1p-25))
            << i << ", " << j;
      } else {
        ASSERT_NEAR(std::bit_cast<float>(is), expected, bound) << i << ", " << j;
      }
    }
  }
}

int k_of(DType type) { return type == DType::tf32 ? 8 : bits(type) == 16 ? 16 : 32; }

constexpr SwizzleMode kModes[] = {SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128};

TEST(MatrixMultiply, EverySwizzleModeAndMajorOf16BitOperands) {
  std::mt19937 random(1);
  for (DType t : {DType::f16, DType::bf16}) {
    for (SwizzleMode sa : kModes) {
      for (SwizzleMode sb : kModes) {
        for (int majors = 0; majors < 4; ++majors) {
          Case c{t, t, DType::f32, 64, 96, 16, sa, sb, (majors & 1) != 0, (majors & 2) != 0};
          check(c, random);
        }
      }
    }
  }
}

TEST(MatrixMultiply, EveryShape) {
  std::mt19937 random(2);
  for (int m : {64, 128}) {
    for (int n : {8, 16, 24, 40, 96, 128, 248, 256}) {
      for (int majors = 0; majors < 4; ++majors) {
        Case c{DType::f16,       DType::f16,        DType::f32,       m, n, 16, SwizzleMode::b128,
               SwizzleMode::b64, (majors & 1) != 0, (majors & 2) != 0};
        check(c, random);
      }
    }
  }
}

TEST(MatrixMultiply, EveryNarrowType) {
  std::mt19937 random(3);
  const DType types[] = {DType::e4m3, DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
  for (DType a : types) {
    for (DType b : types) {
      for (SwizzleMode s : kModes) {
        check({a, b, DType::f32, 128, 24, 32, s, s, false, false}, random);
        check({a, b, DType::f32, 64, 48, 32, s, s, bits(a) == 8, bits(b) == 8}, random);
      }
    }
  }
}

TEST(MatrixMultiply, IntegersAreExactAndWrap) {
  std::mt19937 random(4);
  for (DType a : {DType::u8, DType::i8}) {
    for (DType b : {DType::u8, DType::i8}) {
      for (SwizzleMode s : kModes) {
        check({a, b, DType::i32, 128, 32, 32, s, s, false, false}, random);
        check({a, b, DType::i32, 64, 64, 32, s, s, true, true}, random);
      }
    }
  }
}

// wgmma takes tf32 K-major in every mode; tcgen05 MN-major only with 32B atoms (Table 54).
TEST(MatrixMultiply, Tf32TruncatesItsLowBits) {
  std::mt19937 random(5);
  for (SwizzleMode s : kModes) {
    check({DType::tf32, DType::tf32, DType::f32, 128, 24, 8, s, s, false, false}, random);
  }
  constexpr auto atom32 = SwizzleMode::b128_atom32;
  check({DType::tf32, DType::tf32, DType::f32, 128, 64, 8, atom32, atom32, true, true}, random);
  check({DType::tf32, DType::tf32, DType::f32, 64, 8, 8, atom32, SwizzleMode::b128, true, false}, random);
  check({DType::tf32, DType::tf32, DType::f32, 64, 256, 8, SwizzleMode::none, atom32, false, true}, random);
}

TEST(MatrixMultiply, HalfAccumulator) {
  std::mt19937 random(6);
  check({DType::f16, DType::f16, DType::f16, 128, 40, 16, SwizzleMode::b128, SwizzleMode::b32, false, true},
        random);
  check({DType::e2m1, DType::e2m3, DType::f16, 64, 8, 32, SwizzleMode::b64, SwizzleMode::none, false, false},
        random);
}

// "base offset = (pattern start addr >> 7) & 7" when the pattern does not start at a boundary of its length.
TEST(MatrixMultiply, BaseOffsetMovesTheSwizzlePattern) {
  std::mt19937 random(7);
  for (uint32_t offset = 1; offset < 8; ++offset) {
    for (SwizzleMode s : {SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
      check({DType::bf16, DType::bf16, DType::f32, 64, 24, 16, s, s, false, offset % 2 == 0, offset}, random);
    }
  }
}

// Four k-steps of a 64-wide chunk: the start address advances inside the swizzle atom, the swizzle stays
// absolute.
TEST(MatrixMultiply, ChainOfKStepsEqualsOneByOne) {
  std::mt19937 random(8);
  Matrix a = random_matrix(DType::f16, 128, 64, random), b = random_matrix(DType::f16, 256, 64, random);
  std::vector<std::byte> a_image(1 << 18), b_image(1 << 18);
  for (int k = 0; k < 64; ++k) {
    for (int i = 0; i < 128; ++i) place(a_image, a, SwizzleMode::b128, false, {16, 1024}, 2048, 0, i, k);
    for (int j = 0; j < 256; ++j) place(b_image, b, SwizzleMode::b128, false, {16, 1024}, 4096, 0, j, k);
  }
  std::vector<uint32_t> chained(128 * 256, 0x7fc00000), single = chained;
  for (bool chain : {true, false}) {
    MatrixUnit unit;
    for (int step = 0; step < 4; ++step) {
      SharedMatrix da{2048u + static_cast<uint32_t>(step) * 32, 16, 1024, 0, SwizzleMode::b128};
      SharedMatrix db{4096u + static_cast<uint32_t>(step) * 32, 16, 1024, 0, SwizzleMode::b128};
      MatrixProduct p;
      p.a = {shared_operand(da, DType::f16, false, 128, 16), a_image.data()};
      p.b = {shared_operand(db, DType::f16, false, 256, 16), b_image.data()};
      p.k = 16;
      p.accumulate = step != 0;  // the first does not read D, which holds NaN
      unit.append({(chain ? chained : single).data(), 128, 128, 256, kDense, DType::f32}, p);
      if (!chain) unit.flush();
    }
    unit.flush();
    EXPECT_FALSE(unit.pending());
  }
  ASSERT_EQ(chained, single);
  for (int j = 0; j < 256; ++j) {
    for (int i = 0; i < 128; ++i) {
      float sum = 0;  // the documented order
      for (int k = 0; k < 64; ++k) sum = static_cast<float>(a.at(i, k) * b.at(j, k) + double{sum});
      ASSERT_EQ(std::bit_cast<float>(chained[static_cast<size_t>(j * 128 + i)]), sum) << i << ", " << j;
    }
  }
}

struct Small {  // a 64x8 product of known numbers, K-major without swizzle
  std::mt19937 random{9};
  Matrix a, b;
  std::vector<std::byte> a_image, b_image;
  MatrixProduct p;
  explicit Small(DType t)
      : a(random_matrix(t, 64, k_of(t), random)), b(random_matrix(t, 8, k_of(t), random)) {
    p.a = operand(a_image, a, SwizzleMode::none, false, 0);
    p.b = operand(b_image, b, SwizzleMode::none, false, 0);
    p.k = k_of(t);
  }
  double sum(int i, int j) const {
    double s = 0;
    for (int k = 0; k < p.k; ++k) s += a.at(i, k) * b.at(j, k);
    return s;
  }
  double bound(int i, int j) const {
    double s = 0;
    for (int k = 0; k < p.k; ++k) s += std::fabs(a.at(i, k) * b.at(j, k));
    return s * 0x1p-19;
  }
};

TEST(MatrixMultiply, NegateScaleAndLanes) {
  Small s(DType::f16);
  std::vector<uint32_t> cells(128 * 8, std::bit_cast<uint32_t>(8.0f));
  s.p.negate = true;
  s.p.accumulate = true;
  s.p.scale_exponent = 3;
  MatrixUnit unit;
  // Layout F, lane alignment 16: row r is lane 32 * (r / 16) + 16 + r % 16.
  unit.append({cells.data(), 128, 64, 8, {16, 48, 80, 112}, DType::f32}, s.p);
  unit.flush();
  for (int j = 0; j < 8; ++j) {
    for (int lane = 0; lane < 128; ++lane) {
      float got = std::bit_cast<float>(cells[static_cast<size_t>(j * 128 + lane)]);
      if (lane % 32 < 16) {
        EXPECT_EQ(got, 8.0f);
        continue;
      }
      int row = lane / 32 * 16 + lane % 16;
      EXPECT_NEAR(got, 1.0 - s.sum(row, j), s.bound(row, j)) << lane;
    }
  }
}

// "disable-output-lane": bit i of the mask, least significant bit of the first word first, keeps lane i.
TEST(MatrixMultiply, DisabledOutputLanesKeepTheirCells) {
  Small s(DType::bf16);
  std::vector<uint32_t> cells(128 * 8, 0x12345678);
  s.p.disabled_lanes = {0x0000ffff, 0x80000001, 0, 0};
  MatrixUnit unit;
  unit.append({cells.data(), 128, 64, 8, kDense, DType::f32}, s.p);
  unit.flush();
  for (int lane = 0; lane < 64; ++lane) {
    bool disabled = lane < 16 || lane == 32 || lane == 63;
    for (int j = 0; j < 8; ++j) {
      uint32_t cell = cells[static_cast<size_t>(j * 128 + lane)];
      if (disabled) EXPECT_EQ(cell, 0x12345678u);
      else EXPECT_NEAR(std::bit_cast<float>(cell), s.sum(lane, j), s.bound(lane, j));
    }
  }
}

TEST(MatrixMultiply, SaturatingIntegersStopAtTheirBounds) {
  Small s(DType::u8);
  s.p.accumulate = true;
  for (bool saturate : {false, true}) {
    std::vector<uint32_t> cells(128 * 8, 0x7fffff00);
    s.p.saturate = saturate;
    MatrixUnit unit;
    unit.append({cells.data(), 128, 64, 8, kDense, DType::i32}, s.p);
    unit.append({cells.data(), 128, 64, 8, kDense, DType::i32}, s.p);
    unit.flush();
    for (int i = 0; i < 64; ++i) {
      uint32_t wrapped = 0x7fffff00u + 2 * static_cast<uint32_t>(s.sum(i, 3));
      ASSERT_GT(s.sum(i, 3), 0xff);
      EXPECT_EQ(cells[static_cast<size_t>(3 * 128 + i)], saturate ? 0x7fffffffu : wrapped);
    }
  }
}

TEST(MatrixMultiply, NaNIsCanonicalAndInfinityArithmeticHolds) {
  std::vector<std::byte> a(64 * 32), b(8 * 32);
  auto put = [](std::vector<std::byte>& to, int row, int k, uint16_t code) {
    std::memcpy(&to[static_cast<size_t>(row * 32 + k * 2)], &code, 2);
  };
  for (int i = 0; i < 64; ++i) put(a, i, 0, 0x3c00);
  put(a, 1, 0, 0x7e01);  // NaN
  put(a, 2, 0, 0x7c00);  // infinity
  put(a, 3, 0, 0x7c00);
  put(a, 3, 1, 0xfc00);  // infinity - infinity
  put(b, 0, 0, 0x3c00);
  put(b, 0, 1, 0x3c00);
  MatrixProduct p;
  p.a = {linear_operand(DType::f16, 64), a.data()};
  p.b = {linear_operand(DType::f16, 8), b.data()};
  p.k = 16;
  std::vector<uint32_t> cells(128 * 8);
  MatrixUnit unit;
  unit.append({cells.data(), 128, 64, 8, kDense, DType::f32}, p);
  unit.flush();
  EXPECT_EQ(cells[0], 0x3f800000u);
  EXPECT_EQ(cells[1], 0x7fffffffu);
  EXPECT_EQ(cells[2], 0x7f800000u);
  EXPECT_EQ(cells[3], 0x7fffffffu);
}

}  // namespace
}  // namespace tw::sim::testing
