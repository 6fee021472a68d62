#include "tilewright/sim/matrix_descriptor.h"

#include <gtest/gtest.h>

#include <functional>

#include "tilewright/base/error.h"

namespace tw::sim {
namespace {

std::string error_of(const std::function<void()>& f, ErrorKind kind = ErrorKind::fault) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    return e.message();
  }
  return "no error";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(contains(text, part)) << text

// wgmma, "Matrix Descriptor Format".
TEST(WgmmaDescriptor, Fields) {
  uint64_t bits =
      0x1234 | uint64_t{0x0040} << 16 | uint64_t{0x0400} << 32 | uint64_t{5} << 49 | uint64_t{1} << 62;
  SharedMatrix m = decode_wgmma_descriptor(bits);
  EXPECT_EQ(m.start, 0x12340u);
  EXPECT_EQ(m.leading_stride, 0x400u);
  EXPECT_EQ(m.stride, 0x4000u);
  EXPECT_EQ(m.base_offset, 5u);
  EXPECT_EQ(m.swizzle, SwizzleMode::b128);
  EXPECT_EQ(decode_wgmma_descriptor(uint64_t{2} << 62).swizzle, SwizzleMode::b64);
  EXPECT_EQ(decode_wgmma_descriptor(uint64_t{3} << 62).swizzle, SwizzleMode::b32);
  EXPECT_EQ(decode_wgmma_descriptor(0).swizzle, SwizzleMode::none);
}

TEST(WgmmaDescriptor, Errors) {
  EXPECT_CONTAINS(error_of([] { decode_wgmma_descriptor(uint64_t{1} << 14); }), "bits 14-15 are reserved");
  EXPECT_CONTAINS(error_of([] { decode_wgmma_descriptor(uint64_t{1} << 31); }), "bits 30-31 are reserved");
  EXPECT_CONTAINS(error_of([] { decode_wgmma_descriptor(uint64_t{1} << 46); }), "bits 46-48 are reserved");
  EXPECT_CONTAINS(error_of([] { decode_wgmma_descriptor(uint64_t{1} << 61); }), "bits 52-61 are reserved");
  EXPECT_CONTAINS(error_of([] { decode_wgmma_descriptor(uint64_t{1} << 49); }),
                  "matrix base offset (bits 49-51) is 1");
}

// tcgen05, "Shared memory descriptor", Table 40.
TEST(Tcgen05Descriptor, FieldsAndErrors) {
  constexpr uint64_t constant = uint64_t{1} << 46;
  SharedMatrix m = decode_tcgen05_descriptor(0x3fff | uint64_t{1} << 16 | uint64_t{64} << 32 | constant |
                                             uint64_t{2} << 61);
  EXPECT_EQ(m.start, 0x3fff0u);
  EXPECT_EQ(m.leading_stride, 16u);
  EXPECT_EQ(m.stride, 1024u);
  EXPECT_EQ(m.swizzle, SwizzleMode::b128);
  EXPECT_EQ(decode_tcgen05_descriptor(constant | uint64_t{1} << 61).swizzle, SwizzleMode::b128_atom32);
  EXPECT_EQ(decode_tcgen05_descriptor(constant | uint64_t{4} << 61).swizzle, SwizzleMode::b64);
  EXPECT_EQ(decode_tcgen05_descriptor(constant | uint64_t{6} << 61).swizzle, SwizzleMode::b32);
  for (uint64_t mode : {3, 5, 7}) {
    EXPECT_CONTAINS(error_of([&] { decode_tcgen05_descriptor(constant | mode << 61); }),
                    "swizzling mode (bits 61-63)");
  }
  EXPECT_CONTAINS(error_of([] { decode_tcgen05_descriptor(0); }), "bits 46-48 must be the constant 0b001");
  EXPECT_CONTAINS(error_of([&] { decode_tcgen05_descriptor(constant | uint64_t{1} << 55); }),
                  "bits 53-60 are reserved");
  EXPECT_CONTAINS(
      error_of([&] { decode_tcgen05_descriptor(constant | uint64_t{1} << 52); }, ErrorKind::not_modelled),
      "absolute address (bit 52)");
}

constexpr uint32_t idesc(uint32_t d, uint32_t a, uint32_t b, uint32_t m, uint32_t n, uint32_t more = 0) {
  return d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24 | more;
}

// tcgen05, "Instruction descriptor", Table 42.
TEST(InstructionDescriptor, Fields) {
  InstructionDescriptor d =
      decode_instruction_descriptor(MmaKind::f16, idesc(1, 1, 1, 128, 256, 1 << 13 | 1 << 16), 1, false);
  EXPECT_EQ(d.a, DType::bf16);
  EXPECT_EQ(d.b, DType::bf16);
  EXPECT_EQ(d.d, DType::f32);
  EXPECT_TRUE(d.negate_a);
  EXPECT_FALSE(d.negate_b);
  EXPECT_FALSE(d.transpose_a);
  EXPECT_TRUE(d.transpose_b);
  EXPECT_EQ(d.m, 128);
  EXPECT_EQ(d.n, 256);
  EXPECT_EQ(d.k, 16);
  d = decode_instruction_descriptor(MmaKind::f8f6f4, idesc(0, 5, 3, 64, 8), 1, false);
  EXPECT_EQ(d.a, DType::e2m1);
  EXPECT_EQ(d.b, DType::e2m3);
  EXPECT_EQ(d.d, DType::f16);
  EXPECT_EQ(d.k, 32);
  d = decode_instruction_descriptor(MmaKind::i8, idesc(2, 1, 0, 128, 48, 1 << 3), 1, false);
  EXPECT_EQ(d.a, DType::i8);
  EXPECT_EQ(d.b, DType::u8);
  EXPECT_EQ(d.d, DType::i32);
  EXPECT_TRUE(d.saturate);
}

TEST(InstructionDescriptor, Errors) {
  auto decode = [](MmaKind kind, uint32_t bits, int group = 1, bool ws = false) {
    return [=] { decode_instruction_descriptor(kind, bits, group, ws); };
  };
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 2, 0, 128, 64))), "atype (bits 7-9) is 2");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f8f6f4, idesc(1, 0, 2, 128, 64))), "btype (bits 10-12) is 2");
  EXPECT_CONTAINS(error_of(decode(MmaKind::tf32, idesc(0, 2, 2, 128, 64))), "dtype (bits 4-5) is 0");
  EXPECT_CONTAINS(error_of(decode(MmaKind::i8, idesc(1, 1, 1, 128, 64))), "dtype (bits 4-5) is 1");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(0, 1, 1, 128, 64))), "F16 needs F16 operands");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 64, 1 << 3))), "saturate (bit 3)");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 64, 1 << 6))), "bits 6-6 are reserved");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 64, 1 << 23))),
                  "bits 23-23 are reserved");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 64, 1u << 30))),
                  "maximum shift (bits 30-31)");
  EXPECT_CONTAINS(error_of(decode(MmaKind::i8, idesc(2, 1, 1, 128, 64, 1 << 14))), "negate (bits 13, 14)");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 96, 64))), "M = 96");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 256, 64))), "M = 256");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 64, 64), 2)), "M = 64");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 0))), "N = 0");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 264))), "N = 264");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 128, 24), 2)), "N = 24");
  EXPECT_CONTAINS(error_of(decode(MmaKind::i8, idesc(2, 1, 1, 128, 40))), "N = 40");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f16, idesc(1, 0, 0, 64, 96), 1, true)), "N = 96");
  EXPECT_CONTAINS(error_of(decode(MmaKind::f8f6f4, idesc(1, 0, 0, 64, 24, 1 << 16))),
                  "multiple of 16 (Table 52)");
  EXPECT_CONTAINS(
      error_of([] { decode_instruction_descriptor(MmaKind::f16, idesc(1, 0, 0, 128, 64, 1 << 2), 1, false); },
               ErrorKind::not_modelled),
      "sparse matrix A (bit 2)");
}

// Table 39, "N" column: every value is decided, nothing beyond is accepted.
TEST(InstructionDescriptor, ShapesOfTable39) {
  auto legal = [](MmaKind kind, uint32_t d, uint32_t a, uint32_t m, uint32_t n, int group, bool ws) {
    try {
      decode_instruction_descriptor(kind, idesc(d, a, a, m, n), group, ws);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (uint32_t n = 8; n <= 256; n += 8) {
    EXPECT_TRUE(legal(MmaKind::f16, 1, 0, 64, n, 1, false)) << n;
    EXPECT_EQ(legal(MmaKind::tf32, 1, 2, 256, n, 2, false), n % 16 == 0) << n;
    EXPECT_EQ(legal(MmaKind::i8, 2, 1, 64, n, 1, false), n == 8 || n == 24 || n % 16 == 0) << n;
    EXPECT_EQ(legal(MmaKind::i8, 2, 1, 128, n, 2, false), n % 32 == 0) << n;
    EXPECT_EQ(legal(MmaKind::f8f6f4, 1, 0, 32, n, 1, true), n == 64 || n == 128 || n == 256) << n;
  }
}

// Table 54.
TEST(OperandSwizzle, ValidCombinations) {
  constexpr auto atom32 = SwizzleMode::b128_atom32;
  EXPECT_NO_THROW(check_operand_swizzle('A', DType::f16, true, SwizzleMode::b128));
  EXPECT_NO_THROW(check_operand_swizzle('A', DType::tf32, true, atom32));
  EXPECT_NO_THROW(check_operand_swizzle('B', DType::e2m1, false, SwizzleMode::none));
  EXPECT_CONTAINS(error_of([] { check_operand_swizzle('B', DType::e2m1, true, SwizzleMode::b64); }),
                  "e2m1 cannot be transposed");
  EXPECT_CONTAINS(error_of([] { check_operand_swizzle('A', DType::tf32, true, SwizzleMode::b128); }),
                  "matrix A: a transposed 32-bit");
  EXPECT_CONTAINS(error_of([] { check_operand_swizzle('A', DType::bf16, true, atom32); }),
                  "cannot use 128B swizzle with 32B");
}

}  // namespace
}  // namespace tw::sim
