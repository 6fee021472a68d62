#pragma once
#include <cstdint>
#include <string_view>

namespace tw {

// Element types of tensors, tiles and expressions. The narrow floating formats are named after their fields
// (e4m3: 4 exponent bits, 3 mantissa bits); e8m0 is the power-of-two scale of the MX formats (OCP MX v1.0).
// clang-format off
enum class DType : uint8_t {
  b1,  // a truth value; a predicate register
  u8, u16, u32, u64,
  i8, i16, i32, i64,
  f16, bf16, tf32, f32, f64,
  e4m3, e5m2, e8m0,
  e2m3, e3m2, e2m1,
};
// clang-format on

// Bits one element takes in memory. tf32 is stored in 32; e2m3 and e3m2 pack to 6, e2m1 to 4.
int bits(DType t);
std::string_view name(DType t);                // "f16", "bf16", "e4m3", ...
DType dtype_from_name(std::string_view text);  // throws a user error that lists the names
bool is_float(DType t);
bool is_integer(DType t);
bool is_signed(DType t);

}  // namespace tw
