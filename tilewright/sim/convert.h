#pragma once
#include "tilewright/base/formats.h"
#include "tilewright/sim/decode.h"

// The forms of cvt that make or take several numbers in a register (ops_convert_packed.cpp).
namespace tw::sim {

struct PackedModifiers {
  Rounding rounding = Rounding::rn;
  bool satfinite = false, relu = false, stochastic = false;
};
// Types are the next modifiers: "e4m3x2", "f16x2", "tf32" and so on.
void decode_packed_cvt(Decoding& d, const PackedModifiers& modifiers);
void decode_cvt_pack(Decoding& d);

}  // namespace tw::sim
