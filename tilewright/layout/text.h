#pragma once
#include <string>
#include <string_view>

#include "tilewright/layout/layout.h"

namespace tw {

// The text form of layouts:
//   S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid
//   SW(3,3,3) o S[(64, 4, 64) : (64, 4096, 1)]
// A stride or offset without an axis is on `m`. A swizzle of the outer direction is SW(0,3,3,outer).
// The parser also takes S(8,8):(8,1), R[e:s] or R 2:4@w, short axis names, extents alone (row-major strides),
// and "∘" or "*" for "o".
std::string to_string(const Iter& iter);  // "8:4@laneid"
std::string to_string(const TileLayout& layout);
std::string to_string(const Swizzle& swizzle);
std::string to_string(const Layout& layout);
// "laneid 3, m 1"; the axes of `named` are shown even when 0.
std::string to_string(const Point& point, std::span<const Axis> named = {});

// User errors name what was expected; their location is line 1 of `where` and the column (from 1, in bytes)
// at which reading stopped.
TileLayout parse_tile_layout(std::string_view text, std::string_view where = "layout");
Swizzle parse_swizzle(std::string_view text, std::string_view where = "layout");
Layout parse_layout(std::string_view text, std::string_view where = "layout");

}  // namespace tw
