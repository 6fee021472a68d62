#include <cmath>

#include "tilewright/base/formats.h"
#include "tilewright/sim/arithmetic.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Half Precision Floating-Point Instructions" and "Mixed Precision Floating-Point Instructions".
// Each result is the exact one rounded once: sums and products are formed in double (whose rounding cannot
// disturb the second one, by the 2p + 2 rule), fma is rounded to odd in between.
namespace tw::sim {

namespace {

using ptx::Type;

struct HalfSpec {
  HalfOp op;
  DType format = DType::f16;
  bool packed = false, ftz = false, sat = false, relu = false, nan = false, xorsign = false;
  int operands = 2;
};

// Up to 64 codes of a row, in order: the lane's low half, then its high half.
int unpack(const uint32_t* row, bool packed, uint16_t* codes) {
  if (!packed) {
    for (int l = 0; l < 32; ++l) codes[l] = static_cast<uint16_t>(row[l]);
    return 32;
  }
  for (int l = 0; l < 32; ++l) {
    codes[2 * l] = static_cast<uint16_t>(row[l]);
    codes[2 * l + 1] = static_cast<uint16_t>(row[l] >> 16);
  }
  return 64;
}

void write_codes(Warp& w, Slot slot, uint32_t lanes, bool packed, const uint16_t* codes) {
  if (packed)
    each_lane(lanes, w.row<uint32_t>(slot),
              [&](int l) { return uint32_t{codes[2 * l + 1]} << 16 | codes[2 * l]; });
  else each_lane(lanes, w.row<uint32_t>(slot), [&](int l) { return uint32_t{codes[l]}; });
}

uint16_t flush_code(uint16_t code) {
  return (code & 0x7C00) == 0 ? static_cast<uint16_t>(code & 0x8000) : code;
}

// min and max choose one of the operands; the NaN of both formats is 0x7fff.
uint16_t choose(const HalfSpec& s, uint16_t a, uint16_t b, float x, float y) {
  const uint16_t sign = static_cast<uint16_t>((a ^ b) & 0x8000);
  if (s.xorsign) {
    a &= 0x7FFF, b &= 0x7FFF;
    x = std::fabs(x), y = std::fabs(y);
  }
  uint16_t r;
  if (std::isnan(x) || std::isnan(y)) {
    if (s.nan || (std::isnan(x) && std::isnan(y))) return 0x7FFF;
    r = std::isnan(x) ? b : a;
  } else {
    const bool less = x < y || (x == y && (a & 0x8000));
    r = (s.op == HalfOp::max) == less ? b : a;
  }
  return s.xorsign ? static_cast<uint16_t>((r & 0x7FFF) | sign) : r;
}

struct HalfKernel {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto& s = *static_cast<const HalfSpec*>(i.extra);
    uint16_t codes[3][64];
    float value[3][64];
    int n = 0;
    for (int k = 0; k < s.operands; ++k) {
      n = unpack(w.row<uint32_t>(i.s[1 + k]), s.packed, codes[k]);
      if (s.ftz) {
        for (int e = 0; e < n; ++e) codes[k][e] = flush_code(codes[k][e]);
      }
      to_float(s.format, codes[k], value[k], static_cast<size_t>(n));
    }
    uint16_t out[64] = {};
    float result[64] = {};
    const float *x = value[0], *y = value[1], *z = value[2];
    switch (s.op) {
      case HalfOp::add:
        for (int e = 0; e < n; ++e) result[e] = to_odd_float(double{x[e]} + double{y[e]});
        break;
      case HalfOp::sub:
        for (int e = 0; e < n; ++e) result[e] = to_odd_float(double{x[e]} - double{y[e]});
        break;
      case HalfOp::mul:
        for (int e = 0; e < n; ++e) {
          const double exact = double{x[e]} * double{y[e]};
          // Flushed when tiny before rounding, as an H200 does.
          result[e] = s.ftz && std::fabs(exact) < 0x1p-14 ? std::copysign(0.0f, static_cast<float>(exact))
                                                          : to_odd_float(exact);
        }
        break;
      case HalfOp::fma:
        for (int e = 0; e < n; ++e) result[e] = to_odd_float(fma_to_odd(x[e], y[e], z[e]));
        break;
      case HalfOp::min:
      case HalfOp::max:
        for (int e = 0; e < n; ++e) out[e] = choose(s, codes[0][e], codes[1][e], x[e], y[e]);
        if (s.operands == 3) {
          to_float(s.format, out, result, static_cast<size_t>(n));
          for (int e = 0; e < n; ++e) out[e] = choose(s, out[e], codes[2][e], result[e], z[e]);
        }
        write_codes(w, i.s[0], lanes, s.packed, out);
        return;
      case HalfOp::abs:
        for (int e = 0; e < n; ++e) out[e] = std::isnan(x[e]) ? 0x7FFF : codes[0][e] & 0x7FFF;
        write_codes(w, i.s[0], lanes, s.packed, out);
        return;
      case HalfOp::neg:
        for (int e = 0; e < n; ++e) out[e] = std::isnan(x[e]) ? 0x7FFF : codes[0][e] ^ 0x8000;
        write_codes(w, i.s[0], lanes, s.packed, out);
        return;
    }
    if (s.sat) {
      for (int e = 0; e < n; ++e) result[e] = saturate(result[e]);
    }
    from_float(s.format, result, out, static_cast<size_t>(n));
    for (int e = 0; e < n; ++e) {
      if (s.ftz) out[e] = flush_code(out[e]);
      if (s.relu && (out[e] & 0x8000) && !std::isnan(result[e])) out[e] = 0;
    }
    write_codes(w, i.s[0], lanes, s.packed, out);
  }
};

// s[1] (and s[2] of fma): 16-bit operands; the last operand is f32. aux: bits 0-1 direction, 3 sat; imm:
// HalfOp.
template <DType format>
Flow run_mixed(Warp& w, const Inst& i, uint32_t lanes) {
  const auto op = static_cast<HalfOp>(i.imm);
  const bool fma = op == HalfOp::fma;
  float value[32];
  {
    const RoundingScope scope(static_cast<Round>(i.aux & 3));
    for (int l = 0; l < 32; ++l) {
      volatile float a = to_float(format, w.row<uint32_t>(i.s[1])[l] & 0xFFFF);
      volatile float b = fma ? to_float(format, w.row<uint32_t>(i.s[2])[l] & 0xFFFF) : 1.0f;
      volatile float c = w.row<float>(i.s[fma ? 3 : 2])[l];
      if (op == HalfOp::sub) c = -c;
      volatile float r = fma ? std::fma(float{a}, float{b}, float{c}) : a + c;
      value[l] = r;
    }
  }
  each_lane(lanes, w.row<float>(i.s[0]),
            [&](int l) { return (i.aux & 8) ? saturate(value[l]) : canonical(value[l]); });
  return Flow::next;
}

}  // namespace

void decode_half(Decoding& d, HalfOp op) {
  HalfSpec s{op};
  d.take("rn");
  s.ftz = d.take("ftz");
  s.sat = d.take("sat");
  s.relu = d.take("relu");
  s.nan = d.take("NaN");
  s.xorsign = d.take("xorsign");
  if (op == HalfOp::min || op == HalfOp::max) d.take("abs");
  const Type type = d.take_type();
  s.format = type == Type::f16 || type == Type::f16x2 ? DType::f16 : DType::bf16;
  s.packed = type == Type::f16x2 || type == Type::bf16x2;
  s.operands = static_cast<int>(d.operand_count()) - 1;
  const int bytes = ptx::bytes(type);
  d.inst.s[0] = d.destination(0, bytes);
  for (int k = 0; k < s.operands; ++k) {
    d.inst.s[1 + k] = d.float_source(d.operand(static_cast<size_t>(1 + k)), s.packed ? Type::b32 : type);
  }
  d.inst.extra = d.keep(s);
  d.inst.run = handler<HalfKernel>();
}

void decode_mixed(Decoding& d, HalfOp op, Round round, bool saturated) {
  const Type type = d.take_type();
  const size_t operands = op == HalfOp::fma ? 3 : 2;
  d.inst.s[0] = d.destination(0, 4);
  for (size_t n = 1; n < operands; ++n) d.inst.s[n] = d.float_source(d.operand(n), type);
  d.inst.s[operands] = d.float_source(d.operand(operands), Type::f32);
  d.inst.aux = static_cast<uint32_t>(round) | (saturated ? 8u : 0u);
  d.inst.imm = static_cast<int64_t>(op);
  d.inst.run = type == Type::f16 ? &run_mixed<DType::f16> : &run_mixed<DType::bf16>;
}

}  // namespace tw::sim
