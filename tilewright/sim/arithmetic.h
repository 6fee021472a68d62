#pragma once
#include "tilewright/sim/decode.h"
#include "tilewright/sim/float_math.h"

// Opcodes that have integer and floating-point forms: ops_float.cpp looks at the type and comes here for
// integers.
namespace tw::sim {

void decode_integer_add(Decoding& d, ptx::Type type);
void decode_integer_sub(Decoding& d, ptx::Type type);
void decode_add_cc(Decoding& d);
void decode_sub_cc(Decoding& d);
void decode_mad_cc(Decoding& d);
void decode_integer_mul(Decoding& d, ptx::Type type);
void decode_integer_mad(Decoding& d, ptx::Type type, std::string_view half);
void decode_integer_min_max(Decoding& d, ptx::Type type, bool is_max);
void decode_integer_abs_neg(Decoding& d, ptx::Type type, bool is_abs);
void decode_integer_div(Decoding& d, ptx::Type type);

// The first type among the modifiers not taken yet; it stays untaken.
ptx::Type type_of(const Decoding& d);

// f16, bf16 and their packed pairs (ops_half.cpp).
enum class HalfOp : uint8_t { add, sub, mul, fma, min, max, abs, neg };
void decode_half(Decoding& d, HalfOp op);
// "add.f32.f16" and so on: f32 arithmetic on a converted operand.
void decode_mixed(Decoding& d, HalfOp op, Round round, bool saturate);

}  // namespace tw::sim
