#pragma once
#include <fmt/core.h>

#include <string>

namespace tw {

// fmt's formatting with its machinery compiled once, in format.cpp: this header costs includers only
// fmt/core.h.
std::string vformat(fmt::string_view text, fmt::format_args args);

// An object, no function: argument-dependent lookup then leaves std::format alone.
inline constexpr struct {
  template <class... Args>
  std::string operator()(fmt::format_string<Args...> text, Args&&... args) const {
    return tw::vformat(text, fmt::make_format_args(args...));
  }
} format;

}  // namespace tw
