#include "tilewright/sim/atomic_op.h"

#include <bit>
#include <cmath>

#include "tilewright/base/formats.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/float_math.h"

namespace tw::sim {

namespace {

using ptx::Type;

uint64_t integer_result(AtomicOp op, Type type, uint64_t old, uint64_t b) {
  const bool wide = ptx::bytes(type) == 8;
  const bool is_signed = type == Type::s32 || type == Type::s64;
  auto less = [&](uint64_t x, uint64_t y) {
    if (!is_signed) return x < y;
    return wide ? static_cast<int64_t>(x) < static_cast<int64_t>(y)
                : static_cast<int32_t>(x) < static_cast<int32_t>(y);
  };
  switch (op) {
    case AtomicOp::and_: return old & b;
    case AtomicOp::or_: return old | b;
    case AtomicOp::xor_: return old ^ b;
    case AtomicOp::exch: return b;
    case AtomicOp::add: return old + b;
    case AtomicOp::inc: return old >= b ? 0 : old + 1;
    case AtomicOp::dec: return old == 0 || old > b ? b : old - 1;
    case AtomicOp::min: return less(b, old) ? b : old;
    case AtomicOp::max: return less(old, b) ? b : old;
    case AtomicOp::cas: break;
  }
  return old;
}

// f16, bf16: add rounds to nearest; min and max prefer the operand that is no NaN ("atom", "red").
uint32_t half_result(AtomicOp op, DType format, uint32_t old, uint32_t b) {
  const double x = to_double(format, old), y = to_double(format, b);
  if (op == AtomicOp::add) return from_double(format, x + y);
  if (std::isnan(x)) return std::isnan(y) ? 0x7FFF : b;
  if (std::isnan(y)) return old;
  const bool less = y < x || (x == y && (b & 0x8000));
  return (op == AtomicOp::min) == less ? b : old;
}

}  // namespace

uint64_t atomic_result(AtomicOp op, Type type, uint64_t old, uint64_t b, bool flushes) {
  switch (type) {
    case Type::f32: {
      const float x = as_float(static_cast<uint32_t>(old)), y = as_float(static_cast<uint32_t>(b));
      return as_bits(flushes ? canonical(flush(flush(x) + flush(y))) : canonical(x + y));
    }
    case Type::f64: return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    case Type::f16: return half_result(op, DType::f16, old & 0xFFFF, b & 0xFFFF);
    case Type::bf16: return half_result(op, DType::bf16, old & 0xFFFF, b & 0xFFFF);
    case Type::f16x2:
    case Type::bf16x2: {
      const DType format = type == Type::f16x2 ? DType::f16 : DType::bf16;
      const uint32_t low = half_result(op, format, old & 0xFFFF, b & 0xFFFF);
      return half_result(op, format, old >> 16 & 0xFFFF, b >> 16 & 0xFFFF) << 16 | low;
    }
    default: return integer_result(op, type, old, b);
  }
}

AtomicOp take_atomic_op(Decoding& d) {
  constexpr std::pair<std::string_view, AtomicOp> names[] = {
      {"and", AtomicOp::and_}, {"or", AtomicOp::or_},  {"xor", AtomicOp::xor_}, {"exch", AtomicOp::exch},
      {"cas", AtomicOp::cas},  {"add", AtomicOp::add}, {"inc", AtomicOp::inc},  {"dec", AtomicOp::dec},
      {"min", AtomicOp::min},  {"max", AtomicOp::max}};
  for (const auto& [word, op] : names) {
    if (d.take(word)) return op;
  }
  d.unsupported("this operation");
}

}  // namespace tw::sim
