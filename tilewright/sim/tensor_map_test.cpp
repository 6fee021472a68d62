#include "tilewright/sim/tensor_map.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tilewright/base/error.h"

namespace tw::sim {
namespace {

using Type = TensorMapSpec::Type;
using Swizzle = TensorMapSpec::Swizzle;

// f16 [256, 64], boxes of 128 x 64.
TensorMapSpec tile() {
  TensorMapSpec s;
  s.type = Type::f16;
  s.rank = 2;
  s.address = 0x1000;
  s.dims = {64, 256};
  s.strides = {2, 128};
  s.box = {64, 128};
  s.swizzle = Swizzle::b128;
  return s;
}

template <class F>
std::string broken_by(F change) {
  TensorMapSpec s = tile();
  change(s);
  return broken_rule(s);
}

TEST(TensorMapRules, HoldForTheTileOfAGemm) {
  EXPECT_EQ(broken_rule(tile()), "");
  EXPECT_EQ(tile().box_bytes(), 16384u);
}

// CUDA driver API, cuTensorMapEncodeTiled, one requirement after the other.
TEST(TensorMapRules, NameTheRuleAndTheNumber) {
  EXPECT_EQ(broken_by([](auto& s) { s.rank = 0; }), "the tensor has 0 dimensions; a tensor map has 1 to 5");
  EXPECT_EQ(broken_by([](auto& s) { s.rank = 6; }), "the tensor has 6 dimensions; a tensor map has 1 to 5");
  EXPECT_EQ(broken_by([](auto& s) { s.address = 0x1008; }),
            "the tensor's address is 0x1008; it must be a multiple of 16");
  EXPECT_EQ(broken_by([](auto& s) { s.dims[1] = 0; }),
            "dimension 1 has 0 elements; a dimension must have 1 to 2^32");
  EXPECT_EQ(broken_by([](auto& s) { s.dims[1] = (uint64_t{1} << 32) + 1; }),
            "dimension 1 has 4294967297 elements; a dimension must have 1 to 2^32");
  EXPECT_EQ(broken_by([](auto& s) { s.dims[1] = uint64_t{1} << 32; }), "");
  EXPECT_EQ(broken_by([](auto& s) { s.strides[1] = 136; }),
            "the stride of dimension 1 is 136 bytes; strides must be multiples of 16");
  // Nobody ever steps along that dimension; the driver looks at its stride all the same.
  EXPECT_EQ(broken_by([](auto& s) { s.dims[1] = 1, s.strides[1] = 136; }),
            "the stride of dimension 1 is 136 bytes; strides must be multiples of 16 (dimension 1 has one "
            "element, so any multiple serves)");
  EXPECT_EQ(broken_by([](auto& s) { s.strides[1] = uint64_t{1} << 40; }),
            "the stride of dimension 1 is 1099511627776 bytes; strides must be less than 2^40");
  EXPECT_EQ(broken_by([](auto& s) { s.box[1] = 257; }),
            "the box has 257 elements along dimension 1; it must have 1 to 256");
  EXPECT_EQ(broken_by([](auto& s) { s.box[1] = 0; }),
            "the box has 0 elements along dimension 1; it must have 1 to 256");
  EXPECT_EQ(broken_by([](auto& s) { s.box[0] = 4; }),
            "the box has 4 elements of 2 bytes along dimension 0, 8 bytes; they must be a multiple of 16");
  EXPECT_EQ(broken_by([](auto& s) { s.box[0] = 72; }),
            "the box has 144 bytes along dimension 0; swizzle 128B takes at most 128");
  EXPECT_EQ(broken_by([](auto& s) { s.swizzle = Swizzle::b64; }),
            "the box has 128 bytes along dimension 0; swizzle 64B takes at most 64");
  EXPECT_EQ(broken_by([](auto& s) { s.element_strides[1] = 9; }),
            "the element stride of dimension 1 is 9; it must be 1 to 8");
  EXPECT_EQ(broken_by([](auto& s) { s.element_strides[1] = 0; }),
            "the element stride of dimension 1 is 0; it must be 1 to 8");
  EXPECT_EQ(broken_by([](auto& s) { s.nan_fill = true; }), "");
  EXPECT_EQ(broken_by([](auto& s) { s.type = Type::u16, s.nan_fill = true; }),
            "NaN fill with elements of type u16; it needs a floating-point type");
  EXPECT_EQ(broken_by([](auto& s) { s.interleave = TensorMapSpec::Interleave::b16; }),
            "an interleaved tensor has 2 dimensions; it must have at least 3");
}

TEST(TensorMapObject, EncodeRefusesABrokenRule) {
  TensorMapSpec s = tile();
  s.strides[1] = 24;
  try {
    encode(s);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "tensor map: the stride of dimension 1 is 24 bytes; strides must be multiples of 16");
  }
}

TEST(TensorMapObject, DecodeGivesBackWhatWasEncoded) {
  EXPECT_TRUE(rc::check([] {
    TensorMapSpec s;
    s.type = static_cast<Type>(*rc::gen::inRange(0, 13));
    s.rank = *rc::gen::inRange<uint32_t>(1, 6);
    s.address = *rc::gen::inRange<uint64_t>(0, 1 << 20) * 16;
    for (uint32_t i = 0; i < s.rank; ++i) {
      s.dims[i] = *rc::gen::inRange<uint64_t>(1, (uint64_t{1} << 32) + 1);
      s.strides[i] = i == 0 ? s.element_bytes() : *rc::gen::inRange<uint64_t>(0, uint64_t{1} << 36) * 16;
      s.box[i] = *rc::gen::inRange<uint32_t>(1, 257);
      s.element_strides[i] = *rc::gen::inRange<uint32_t>(1, 9);
    }
    s.box[0] = 16 * *rc::gen::inRange<uint32_t>(1, 17);
    s.nan_fill = s.type >= Type::f16 && *rc::gen::arbitrary<bool>();
    const TensorMapObject object = encode(s);
    const auto back = decode(std::span<const std::byte, kTensorMapBytes>(object));
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == s);
  }));
}

TEST(TensorMapObject, AnyChangedByteIsNoTensorMap) {
  const TensorMapObject object = encode(tile());
  for (size_t i = 0; i < object.size(); ++i) {
    TensorMapObject changed = object;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(decode(std::span<const std::byte, kTensorMapBytes>(changed))) << i;
  }
  EXPECT_FALSE(decode(std::span<const std::byte, kTensorMapBytes>(TensorMapObject{})));
}

TEST(TensorMapSpec, ElementStridesShortenTheBox) {
  TensorMapSpec s = tile();
  s.element_strides = {4, 3};
  EXPECT_EQ(s.box_elements(0), 64u);  // "the first element of this array is ignored"
  EXPECT_EQ(s.box_elements(1), 43u);  // ceil(128 / 3)
  EXPECT_EQ(s.box_bytes(), 43u * 128);
}

}  // namespace
}  // namespace tw::sim
