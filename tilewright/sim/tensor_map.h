#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Tensor maps: how a tensor in global memory is cut into boxes for the tensor copies (PTX ISA, "Tensors";
// CUDA driver API, "Tensor Map Object Management").
namespace tw::sim {

inline constexpr uint32_t kTensorMapBytes = 128, kTensorMapAlign = 64;
inline constexpr uint32_t kMaxTensorRank = 5;

// The arguments of cuTensorMapEncodeTiled, innermost dimension first; enumerators have the driver's numbers.
struct TensorMapSpec {
  enum class Type : uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz };
  enum class Interleave : uint8_t { none, b16, b32 };
  enum class Swizzle : uint8_t { none, b32, b64, b128 };
  enum class L2Promotion : uint8_t { none, b64, b128, b256 };

  Type type = Type::u8;
  uint32_t rank = 1;
  uint64_t address = 0;                         // of element 0
  std::array<uint64_t, kMaxTensorRank> dims{};  // elements
  std::array<uint64_t, kMaxTensorRank>
      strides{};  // bytes from one index to the next; of dimension 0: element size
  std::array<uint32_t, kMaxTensorRank> box{};  // elements of the tensor that a box spans
  std::array<uint32_t, kMaxTensorRank> element_strides{1, 1, 1, 1, 1};
  Interleave interleave = Interleave::none;
  Swizzle swizzle = Swizzle::none;
  L2Promotion l2 = L2Promotion::none;
  bool nan_fill = false;

  bool operator==(const TensorMapSpec&) const = default;

  uint32_t element_bytes() const;
  // Elements of a box along a dimension: ceil(box / element stride). Dimension 0 has no stride.
  uint32_t box_elements(uint32_t dimension) const;
  uint32_t row_bytes() const;      // of the innermost dimension of a box
  uint32_t box_bytes() const;      // as it lies in shared memory, and as it counts for an mbarrier
  uint32_t swizzle_bytes() const;  // span of the pattern, 0 without one
};
std::string_view name(TensorMapSpec::Type t);     // "bf16"
std::string_view name(TensorMapSpec::Swizzle s);  // "128B"

// The rule of cuTensorMapEncodeTiled that the arguments break, with its numbers ("stride 1 is 24 bytes;
// strides must be multiples of 16"); empty when all hold.
std::string broken_rule(const TensorMapSpec& spec);

// The simulator's tensor map object. User error: a broken rule.
using TensorMapObject = std::array<std::byte, kTensorMapBytes>;
TensorMapObject encode(const TensorMapSpec& spec);
// Without that check, for a map that a kernel edits field by field; the rules hold when it is used.
TensorMapObject encode_unchecked(const TensorMapSpec& spec);
// Nothing when the bytes are not what `encode` makes.
std::optional<TensorMapSpec> decode(std::span<const std::byte, kTensorMapBytes> object);

}  // namespace tw::sim
