#pragma once
#include <bit>
#include <concepts>
#include <cstdint>

namespace tw {

template <std::integral T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
template <std::integral T>
constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}
template <std::integral T>
constexpr bool is_power_of_two(T a) {
  return a > 0 && (a & (a - 1)) == 0;
}
// log2 of a power of two.
constexpr int log2_exact(uint64_t a) { return std::countr_zero(a); }

}  // namespace tw
