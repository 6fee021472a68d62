#include "tilewright/sim/matrix_descriptor.h"

#include "tilewright/base/error.h"

namespace tw::sim {
namespace {

template <class... Args>
[[noreturn]] void fault(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::fault, {}, tw::vformat(text, fmt::make_format_args(args...)));
}

uint64_t field(uint64_t bits, int low, int width) { return bits >> low & ((uint64_t{1} << width) - 1); }

void require_zero(const char* what, uint64_t bits, int low, int width) {
  if (field(bits, low, width) != 0) {
    fault("{}: bits {}-{} are reserved and must be 0, but hold {:#x}", what, low, low + width - 1,
          field(bits, low, width));
  }
}

// The fields both descriptors have at the same place.
SharedMatrix common_fields(const char* what, uint64_t bits) {
  require_zero(what, bits, 14, 2);
  require_zero(what, bits, 30, 2);
  SharedMatrix m;
  m.start = static_cast<uint32_t>(field(bits, 0, 14)) << 4;
  m.leading_stride = static_cast<uint32_t>(field(bits, 16, 14)) << 4;
  m.stride = static_cast<uint32_t>(field(bits, 32, 14)) << 4;
  m.base_offset = static_cast<uint32_t>(field(bits, 49, 3));
  return m;
}

void check_base_offset(const char* what, const SharedMatrix& m) {
  if (m.swizzle == SwizzleMode::none && m.base_offset != 0) {
    fault("{}: matrix base offset (bits 49-51) is {} but only swizzling modes have one", what, m.base_offset);
  }
}

DType operand_type(MmaKind kind, char operand, uint64_t code) {
  switch (kind) {
    case MmaKind::tf32:
      if (code == 2) return DType::tf32;
      break;
    case MmaKind::f16:
      if (code == 0) return DType::f16;
      if (code == 1) return DType::bf16;
      break;
    case MmaKind::i8:
      if (code == 0) return DType::u8;
      if (code == 1) return DType::i8;
      break;
    case MmaKind::f8f6f4:
      switch (code) {
        case 0: return DType::e4m3;
        case 1: return DType::e5m2;
        case 3: return DType::e2m3;
        case 4: return DType::e3m2;
        case 5: return DType::e2m1;
        default: break;
      }
      break;
  }
  fault("instruction descriptor: {}type (bits {}) is {}, which {} does not have", operand,
        operand == 'a' ? "7-9" : "10-12", code, name(kind));
}

DType accumulator_type(MmaKind kind, DType a, uint64_t code) {
  bool allowed = kind == MmaKind::i8 ? code == 2 : kind == MmaKind::tf32 ? code == 1 : code <= 1;
  if (!allowed)
    fault("instruction descriptor: dtype (bits 4-5) is {}, which {} does not have", code, name(kind));
  if (code == 0 && kind == MmaKind::f16 && a != DType::f16) {
    fault("instruction descriptor: dtype (bits 4-5) F16 needs F16 operands, atype is {}", tw::name(a));
  }
  return code == 2 ? DType::i32 : code == 1 ? DType::f32 : DType::f16;
}

// Table 39.
void check_shape(MmaKind kind, int m, int n, int cta_group, bool ws) {
  bool m_ok = ws               ? m == 32 || m == 64 || m == 128
              : cta_group == 1 ? m == 64 || m == 128
                               : m == 128 || m == 256;
  if (!m_ok) {
    fault("instruction descriptor: M = {} (bits 24-28); {} with {} allows {}", m, name(kind),
          ws               ? ".ws"
          : cta_group == 1 ? ".cta_group::1"
                           : ".cta_group::2",
          ws               ? "32, 64, 128"
          : cta_group == 1 ? "64, 128"
                           : "128, 256");
  }
  const char* rule = "";
  bool n_ok = n > 0 && n <= 256;
  if (ws) {
    rule = "64, 128, 256";
    n_ok = n == 64 || n == 128 || n == 256;
  } else if (kind == MmaKind::i8) {
    rule = cta_group == 1 ? "8, 16, 24, 32, 48, ... 256 (steps of 16 after 32)"
                          : "32, 64, ... 256 (steps of 32)";
    n_ok = n_ok && (cta_group == 2 ? n % 32 == 0 : n <= 32 || n % 16 == 0);
  } else {
    rule = cta_group == 1 ? "8, 16, ... 256 (steps of 8)" : "16, 32, ... 256 (steps of 16)";
    n_ok = n_ok && (cta_group == 1 || n % 16 == 0);
  }
  if (!n_ok) fault("instruction descriptor: N = {} (bits 17-22); {} allows {}", n, name(kind), rule);
}

}  // namespace

const char* name(SwizzleMode mode) {
  switch (mode) {
    case SwizzleMode::none: return "no swizzle";
    case SwizzleMode::b32: return "32B swizzle";
    case SwizzleMode::b64: return "64B swizzle";
    case SwizzleMode::b128: return "128B swizzle";
    case SwizzleMode::b128_atom32: return "128B swizzle with 32B atomicity";
  }
  return "?";
}

const char* name(MmaKind kind) {
  switch (kind) {
    case MmaKind::f16: return ".kind::f16";
    case MmaKind::tf32: return ".kind::tf32";
    case MmaKind::f8f6f4: return ".kind::f8f6f4";
    case MmaKind::i8: return ".kind::i8";
  }
  return "?";
}

int k_elements(MmaKind kind) { return kind == MmaKind::f16 ? 16 : kind == MmaKind::tf32 ? 8 : 32; }

SharedMatrix decode_wgmma_descriptor(uint64_t bits) {
  constexpr const char* what = "wgmma matrix descriptor";
  SharedMatrix m = common_fields(what, bits);
  require_zero(what, bits, 46, 3);
  require_zero(what, bits, 52, 10);
  constexpr SwizzleMode modes[] = {SwizzleMode::none, SwizzleMode::b128, SwizzleMode::b64, SwizzleMode::b32};
  m.swizzle = modes[field(bits, 62, 2)];
  check_base_offset(what, m);
  return m;
}

SharedMatrix decode_tcgen05_descriptor(uint64_t bits) {
  constexpr const char* what = "tcgen05 shared memory descriptor";
  SharedMatrix m = common_fields(what, bits);
  if (field(bits, 46, 3) != 1) {
    fault("{}: bits 46-48 must be the constant 0b001, but hold {:#b}", what, field(bits, 46, 3));
  }
  require_zero(what, bits, 53, 8);
  switch (field(bits, 61, 3)) {
    case 0: m.swizzle = SwizzleMode::none; break;
    case 1: m.swizzle = SwizzleMode::b128_atom32; break;
    case 2: m.swizzle = SwizzleMode::b128; break;
    case 4: m.swizzle = SwizzleMode::b64; break;
    case 6: m.swizzle = SwizzleMode::b32; break;
    default: fault("{}: swizzling mode (bits 61-63) {} is invalid", what, field(bits, 61, 3));
  }
  check_base_offset(what, m);
  if (field(bits, 52, 1) != 0)
    not_modelled({}, "{}: leading dimension stride as absolute address (bit 52)", what);
  return m;
}

InstructionDescriptor decode_instruction_descriptor(MmaKind kind, uint32_t bits, int cta_group, bool ws) {
  constexpr const char* what = "instruction descriptor";
  if (field(bits, 2, 1) != 0) not_modelled({}, "{}: sparse matrix A (bit 2)", what);
  require_zero(what, bits, 6, 1);
  require_zero(what, bits, 23, 1);
  require_zero(what, bits, 29, 1);
  InstructionDescriptor d;
  d.a = operand_type(kind, 'a', field(bits, 7, 3));
  d.b = operand_type(kind, 'b', field(bits, 10, 3));
  d.d = accumulator_type(kind, d.a, field(bits, 4, 2));
  if (d.d == DType::f16 && kind == MmaKind::f16 && d.b != DType::f16) {
    fault("{}: dtype (bits 4-5) F16 needs F16 operands, btype is {}", what, tw::name(d.b));
  }
  d.saturate = field(bits, 3, 1) != 0;
  if (d.saturate && kind != MmaKind::i8) fault("{}: saturate (bit 3) is for .kind::i8 only", what);
  d.negate_a = field(bits, 13, 1) != 0;
  d.negate_b = field(bits, 14, 1) != 0;
  if ((d.negate_a || d.negate_b) && kind == MmaKind::i8)
    fault("{}: negate (bits 13, 14) is not for .kind::i8", what);
  d.transpose_a = field(bits, 15, 1) != 0;
  d.transpose_b = field(bits, 16, 1) != 0;
  d.n = static_cast<int>(field(bits, 17, 6)) * 8;
  d.m = static_cast<int>(field(bits, 24, 5)) * 16;
  d.k = k_elements(kind);
  if (!ws && field(bits, 30, 2) != 0)
    fault("{}: maximum shift (bits 30-31) is for tcgen05.mma.ws only", what);
  check_shape(kind, d.m, d.n, cta_group, ws);
  if (d.transpose_b && tw::bits(d.b) == 8 && d.n % (16 * cta_group) != 0) {
    fault("{}: N = {}, but a transposed 8-bit B needs a multiple of {} (Table 52)", what, d.n,
          16 * cta_group);
  }
  return d;
}

void check_operand_swizzle(char operand, DType type, bool mn_major, SwizzleMode swizzle) {
  if (!mn_major) {
    if (swizzle == SwizzleMode::b128_atom32) {
      not_modelled({}, "K-major matrix {} with {}", operand, name(swizzle));
    }
    return;
  }
  if (tw::bits(type) < 8) fault("matrix {}: {} cannot be transposed (Table 54)", operand, tw::name(type));
  bool atom32 = swizzle == SwizzleMode::b128_atom32;
  if (tw::bits(type) == 32 && !atom32) {
    fault("matrix {}: a transposed 32-bit matrix needs 128B swizzle with 32B atomicity, not {} (Table 54)",
          operand, name(swizzle));
  }
  if (tw::bits(type) != 32 && atom32) {
    fault("matrix {}: a transposed {} matrix cannot use 128B swizzle with 32B atomicity (Table 54)", operand,
          tw::name(type));
  }
}

}  // namespace tw::sim
