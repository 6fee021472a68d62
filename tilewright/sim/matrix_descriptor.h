#pragma once
#include <cstdint>

#include "tilewright/base/dtype.h"

// The descriptors of wgmma and tcgen05 as fields. Every field is checked against the PTX ISA; what it does
// not allow is an Error(fault) that names the field, what it allows but we have no model of an
// Error(not_modelled).
namespace tw::sim {

enum class SwizzleMode : uint8_t { none, b32, b64, b128, b128_atom32 };
const char* name(SwizzleMode mode);  // "no swizzle", "32B swizzle", ...

// A matrix in shared memory. Wgmma: "Matrix Descriptor Format"; tcgen05: "Shared memory descriptor".
struct SharedMatrix {
  uint32_t start = 0;           // shared address & 0x3ffff
  uint32_t leading_stride = 0;  // bytes, "leading dimension byte offset"
  uint32_t stride = 0;          // bytes, "stride dimension byte offset"
  uint32_t base_offset = 0;     // 0 to 7: (start of the swizzle pattern / 128) % 8
  SwizzleMode swizzle = SwizzleMode::none;
  bool operator==(const SharedMatrix&) const = default;
};
SharedMatrix decode_wgmma_descriptor(uint64_t bits);
SharedMatrix decode_tcgen05_descriptor(uint64_t bits);

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, i8 };
const char* name(MmaKind kind);  // ".kind::f16", ...
int k_elements(MmaKind kind);    // K of one dense instruction: 16, 8, 32, 32

// "Instruction descriptor", Table 42.
struct InstructionDescriptor {
  DType a, b, d;
  bool saturate = false;
  bool negate_a = false, negate_b = false;
  bool transpose_a = false, transpose_b = false;  // MN-major instead of K-major
  int m = 0, n = 0, k = 0;
};
// `ws`: tcgen05.mma.ws. Checks "Matrix Shape" (Table 39), "Transpose and Negate operations" (Tables 51, 52)
// and "Valid Combinations of Type-Size, Major-ness and Swizzling" (Table 54), as far as the descriptor alone
// decides them.
InstructionDescriptor decode_instruction_descriptor(MmaKind kind, uint32_t bits, int cta_group, bool ws);
// The part of these tables that needs the matrix: which swizzle modes an operand may use.
void check_operand_swizzle(char operand, DType type, bool mn_major, SwizzleMode swizzle);

}  // namespace tw::sim
