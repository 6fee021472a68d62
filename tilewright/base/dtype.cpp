#include "tilewright/base/dtype.h"

#include <array>
#include <string>

#include "tilewright/base/error.h"

namespace tw {
namespace {

struct Info {
  DType type;
  std::string_view name;
  int bits;
};

constexpr std::array kTypes{
    Info{DType::b1, "b1", 1},     Info{DType::u8, "u8", 8},      Info{DType::u16, "u16", 16},
    Info{DType::u32, "u32", 32},  Info{DType::u64, "u64", 64},   Info{DType::i8, "i8", 8},
    Info{DType::i16, "i16", 16},  Info{DType::i32, "i32", 32},   Info{DType::i64, "i64", 64},
    Info{DType::f16, "f16", 16},  Info{DType::bf16, "bf16", 16}, Info{DType::tf32, "tf32", 32},
    Info{DType::f32, "f32", 32},  Info{DType::f64, "f64", 64},   Info{DType::e4m3, "e4m3", 8},
    Info{DType::e5m2, "e5m2", 8}, Info{DType::e8m0, "e8m0", 8},  Info{DType::e2m3, "e2m3", 6},
    Info{DType::e3m2, "e3m2", 6}, Info{DType::e2m1, "e2m1", 4},
};

const Info& info(DType t) { return kTypes.at(static_cast<size_t>(t)); }

}  // namespace

int bits(DType t) { return info(t).bits; }
std::string_view name(DType t) { return info(t).name; }

DType dtype_from_name(std::string_view text) {
  std::string known;
  for (const Info& i : kTypes) {
    if (i.name == text) return i.type;
    known += known.empty() ? "" : ", ";
    known += i.name;
  }
  user_error({}, "unknown data type '{}'; known: {}", text, known);
}

bool is_float(DType t) { return t >= DType::f16; }
bool is_integer(DType t) { return t >= DType::u8 && t <= DType::i64; }
bool is_signed(DType t) { return is_float(t) ? t != DType::e8m0 : t >= DType::i8 && t <= DType::i64; }

}  // namespace tw
