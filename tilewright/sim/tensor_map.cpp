#include "tilewright/sim/tensor_map.h"

#include <algorithm>
#include <cstring>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw::sim {

namespace {

using Type = TensorMapSpec::Type;
using Swizzle = TensorMapSpec::Swizzle;

constexpr std::string_view kTypeNames[] = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                           "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};
constexpr uint32_t kTypeBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

bool is_floating(Type t) { return t >= Type::f16; }

// What an object holds, in this order.
struct Fields {
  uint64_t magic;
  uint64_t checksum;
  uint64_t address;
  uint64_t strides[kMaxTensorRank - 1];
  uint32_t last[kMaxTensorRank];  // dims - 1: a dimension may have 2^32 elements
  uint16_t box[kMaxTensorRank];
  uint8_t element_strides[kMaxTensorRank];
  uint8_t type, rank, interleave, swizzle, l2, nan_fill;
  uint8_t no_dims;  // bit i: dimension i has no elements; only beyond the rank
  uint8_t unused[30];
};
static_assert(sizeof(Fields) == kTensorMapBytes);

constexpr uint64_t kMagic = 0x50414d524f534e54;  // "TNSORMAP"

// FNV-1a over the bytes, the checksum itself as zero.
uint64_t checksum_of(Fields fields) {
  fields.checksum = 0;
  std::array<uint64_t, kTensorMapBytes / 8> words;
  std::memcpy(words.data(), &fields, sizeof fields);
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t word : words) hash = (hash ^ word) * 0x100000001b3, hash ^= hash >> 29;
  return hash;
}

std::string broken_dimension(const TensorMapSpec& s, uint32_t i) {
  if (s.dims[i] == 0 || s.dims[i] > uint64_t{1} << 32)
    return tw::format("dimension {} has {} elements; a dimension must have 1 to 2^32", i, s.dims[i]);
  if (s.box[i] == 0 || s.box[i] > 256)
    return tw::format("the box has {} elements along dimension {}; it must have 1 to 256", s.box[i], i);
  if (s.element_strides[i] == 0 || s.element_strides[i] > 8)
    return tw::format("the element stride of dimension {} is {}; it must be 1 to 8", i, s.element_strides[i]);
  if (i == 0) return {};
  const uint64_t align = s.interleave == TensorMapSpec::Interleave::b32 ? 32 : 16;
  if (s.strides[i] % align != 0)
    return tw::format(
        "the stride of dimension {} is {} bytes; strides must be multiples of {}{}", i, s.strides[i], align,
        s.dims[i] > 1 ? "" : tw::format(" (dimension {} has one element, so any multiple serves)", i));
  if (s.strides[i] >= uint64_t{1} << 40)
    return tw::format("the stride of dimension {} is {} bytes; strides must be less than 2^40", i,
                      s.strides[i]);
  return {};
}

}  // namespace

std::string_view name(Type t) { return kTypeNames[static_cast<size_t>(t)]; }
std::string_view name(Swizzle s) {
  constexpr std::string_view names[] = {"none", "32B", "64B", "128B"};
  return names[static_cast<size_t>(s)];
}

uint32_t TensorMapSpec::element_bytes() const { return kTypeBytes[static_cast<size_t>(type)]; }
uint32_t TensorMapSpec::box_elements(uint32_t dimension) const {
  return dimension == 0 ? box[0] : ceil_div(box[dimension], element_strides[dimension]);
}
uint32_t TensorMapSpec::row_bytes() const { return box[0] * element_bytes(); }
uint32_t TensorMapSpec::box_bytes() const {
  uint32_t bytes = row_bytes();
  for (uint32_t i = 1; i < rank; ++i) bytes *= box_elements(i);
  return bytes;
}
uint32_t TensorMapSpec::swizzle_bytes() const {
  return swizzle == Swizzle::none ? 0 : 16u << static_cast<uint32_t>(swizzle);
}

// CUDA driver API, cuTensorMapEncodeTiled: "The parameters passed are bound to the following requirements".
std::string broken_rule(const TensorMapSpec& s) {
  if (s.rank == 0 || s.rank > kMaxTensorRank)
    return tw::format("the tensor has {} dimensions; a tensor map has 1 to {}", s.rank, kMaxTensorRank);
  if (s.interleave != TensorMapSpec::Interleave::none && s.rank < 3)
    return tw::format("an interleaved tensor has {} dimensions; it must have at least 3", s.rank);
  const uint64_t align = s.interleave == TensorMapSpec::Interleave::b32 ? 32 : 16;
  if (s.address % align != 0)
    return tw::format("the tensor's address is {:#x}; it must be a multiple of {}", s.address, align);
  for (uint32_t i = 0; i < s.rank; ++i) {
    if (std::string broken = broken_dimension(s, i); !broken.empty()) return broken;
  }
  if (s.interleave == TensorMapSpec::Interleave::none) {
    if (s.row_bytes() % 16 != 0)
      return tw::format(
          "the box has {} elements of {} bytes along dimension 0, {} bytes; they must be a multiple of 16",
          s.box[0], s.element_bytes(), s.row_bytes());
    if (s.swizzle != Swizzle::none && s.row_bytes() > s.swizzle_bytes())
      return tw::format("the box has {} bytes along dimension 0; swizzle {} takes at most {}", s.row_bytes(),
                        name(s.swizzle), s.swizzle_bytes());
  }
  if (s.interleave == TensorMapSpec::Interleave::b32 && s.swizzle != Swizzle::b32)
    return tw::format("the interleaved layout of 32 bytes needs swizzle 32B, not {}", name(s.swizzle));
  if (s.nan_fill && !is_floating(s.type))
    return tw::format("NaN fill with elements of type {}; it needs a floating-point type", name(s.type));
  return {};
}

TensorMapObject encode(const TensorMapSpec& s) {
  if (const std::string broken = broken_rule(s); !broken.empty()) user_error({}, "tensor map: {}", broken);
  return encode_unchecked(s);
}

// Fields beyond the rank are kept: the rank may grow again.
TensorMapObject encode_unchecked(const TensorMapSpec& s) {
  Fields f{};
  f.magic = kMagic;
  f.address = s.address;
  for (uint32_t i = 0; i < kMaxTensorRank; ++i) {
    f.last[i] = static_cast<uint32_t>(s.dims[i] - 1);
    if (s.dims[i] == 0) f.no_dims = static_cast<uint8_t>(f.no_dims | 1u << i);
    if (i > 0) f.strides[i - 1] = s.strides[i];
    f.box[i] = static_cast<uint16_t>(s.box[i]);
    f.element_strides[i] = static_cast<uint8_t>(s.element_strides[i]);
  }
  f.type = static_cast<uint8_t>(s.type);
  f.rank = static_cast<uint8_t>(s.rank);
  f.interleave = static_cast<uint8_t>(s.interleave);
  f.swizzle = static_cast<uint8_t>(s.swizzle);
  f.l2 = static_cast<uint8_t>(s.l2);
  f.nan_fill = s.nan_fill;
  f.checksum = checksum_of(f);
  TensorMapObject object;
  std::memcpy(object.data(), &f, sizeof f);
  return object;
}

std::optional<TensorMapSpec> decode(std::span<const std::byte, kTensorMapBytes> object) {
  Fields f;
  std::memcpy(&f, object.data(), sizeof f);
  if (f.magic != kMagic || f.checksum != checksum_of(f)) return std::nullopt;
  TensorMapSpec s;
  s.type = static_cast<Type>(f.type);
  s.rank = f.rank;
  s.address = f.address;
  for (uint32_t i = 0; i < kMaxTensorRank; ++i) {
    s.dims[i] = f.no_dims >> i & 1 ? 0 : uint64_t{f.last[i]} + 1;
    s.strides[i] = i > 0 ? f.strides[i - 1] : s.element_bytes();
    s.box[i] = f.box[i];
    s.element_strides[i] = f.element_strides[i];
  }
  s.interleave = static_cast<TensorMapSpec::Interleave>(f.interleave);
  s.swizzle = static_cast<Swizzle>(f.swizzle);
  s.l2 = static_cast<TensorMapSpec::L2Promotion>(f.l2);
  s.nan_fill = f.nan_fill != 0;
  return s;
}

}  // namespace tw::sim
