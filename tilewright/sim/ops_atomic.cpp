#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "tilewright/base/formats.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/float_math.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/memory_decode.h"

// PTX ISA, "atom", "red". Lanes act one after the other, in the order of their numbers.
namespace tw::sim {

namespace {

using ptx::Type;

enum class AtomicOp : uint8_t { and_, or_, xor_, exch, cas, add, inc, dec, min, max };

struct AtomicSpec {
  AtomicOp op = AtomicOp::add;
  Type type = Type::none;
  AddressSpace space = AddressSpace::generic;
  uint32_t count = 1, bytes = 4;
  bool returns = false;
  Slot results[8], operands[8], compare;
  bool wanted[8] = {};
};

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

uint64_t element_result(const AtomicSpec& s, uint64_t old, uint64_t b, bool in_global) {
  switch (s.type) {
    case Type::f32: {
      // "atom": an f32 add in global memory flushes subnormals, one in shared memory keeps them.
      const float x = as_float(static_cast<uint32_t>(old)), y = as_float(static_cast<uint32_t>(b));
      return as_bits(in_global ? canonical(flush(flush(x) + flush(y))) : canonical(x + y));
    }
    case Type::f64: return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    case Type::f16: return half_result(s.op, DType::f16, old & 0xFFFF, b & 0xFFFF);
    case Type::bf16: return half_result(s.op, DType::bf16, old & 0xFFFF, b & 0xFFFF);
    case Type::f16x2:
    case Type::bf16x2: {
      const DType format = s.type == Type::f16x2 ? DType::f16 : DType::bf16;
      const uint32_t low = half_result(s.op, format, old & 0xFFFF, b & 0xFFFF);
      return half_result(s.op, format, old >> 16 & 0xFFFF, b >> 16 & 0xFFFF) << 16 | low;
    }
    default: return integer_result(s.op, s.type, old, b);
  }
}

uint64_t read_row(const Warp& w, Slot s, uint32_t lane, uint32_t bytes) {
  return bytes >= 8 ? w.row<uint64_t>(s)[lane] : w.row<uint32_t>(s)[lane];
}
void write_row(Warp& w, Slot s, uint32_t lane, uint32_t bytes, uint64_t v) {
  if (bytes >= 8) w.row<uint64_t>(s)[lane] = v;
  else w.row<uint32_t>(s)[lane] = static_cast<uint32_t>(v);
}

// 128-bit exch and cas: two halves.
void exchange_128(Warp& w, const AtomicSpec& s, uint32_t lane, std::byte* at) {
  auto half = [&](Slot slot, uint32_t n) -> uint64_t& { return w.row<uint64_t>(slot)[n * kLanes + lane]; };
  uint64_t old[2];
  std::memcpy(old, at, 16);
  const bool store = s.op == AtomicOp::exch || (old[0] == half(s.compare, 0) && old[1] == half(s.compare, 1));
  const uint64_t fresh[2] = {half(s.operands[0], 0), half(s.operands[0], 1)};
  if (store) std::memcpy(at, fresh, 16);
  if (s.returns) half(s.results[0], 0) = old[0], half(s.results[0], 1) = old[1];
}

Flow run_atomic(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const AtomicSpec*>(i.extra);
  const Addresses a = lane_addresses(w, i.s[1], i.aux, i.imm);
  const uint32_t global = global_lanes(s.space, lanes, a);
  if (!w.has_turn() && w.cluster().grid.clusters > 1 && global != 0) return Flow::order;
  LanePointers p;
  const uint32_t bytes = s.bytes * s.count;
  resolve(w, lanes, s.space, a, bytes, bytes, AccessKind::atomic, p);
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (s.bytes == 16) {
      exchange_128(w, s, lane, p.lane[lane]);
      continue;
    }
    for (uint32_t n = 0; n < s.count; ++n) {
      std::byte* at = p.lane[lane] + n * s.bytes;
      uint64_t old = 0;
      std::memcpy(&old, at, s.bytes);
      const uint64_t b = read_row(w, s.operands[n], lane, s.bytes);
      uint64_t fresh = b;
      if (s.op == AtomicOp::cas) fresh = old == read_row(w, s.compare, lane, s.bytes) ? b : old;
      else if (s.op != AtomicOp::exch) fresh = element_result(s, old, b, global >> lane & 1);
      std::memcpy(at, &fresh, s.bytes);
      if (s.returns && s.wanted[n]) write_row(w, s.results[n], lane, s.bytes, old);
    }
  }
  w.cluster().changed();
  return Flow::next;
}

AtomicOp take_operation(Decoding& d) {
  constexpr std::pair<std::string_view, AtomicOp> names[] = {
      {"and", AtomicOp::and_}, {"or", AtomicOp::or_},  {"xor", AtomicOp::xor_}, {"exch", AtomicOp::exch},
      {"cas", AtomicOp::cas},  {"add", AtomicOp::add}, {"inc", AtomicOp::inc},  {"dec", AtomicOp::dec},
      {"min", AtomicOp::min},  {"max", AtomicOp::max}};
  for (const auto& [word, op] : names) {
    if (d.take(word)) return op;
  }
  d.unsupported("this operation");
}

void decode_elements(Decoding& d, const ptx::Operand& operand, uint32_t count,
                     const std::function<void(const ptx::Operand&, uint32_t)>& f) {
  if (const auto* v = operand.as<ptx::Vector>()) {
    if (v->elements.size() != count) d.unsupported("a vector of this length");
    for (uint32_t n = 0; n < count; ++n) f(v->elements[n], n);
  } else {
    f(operand, 0);
  }
}

void decode_atomic(Decoding& d, bool returns) {
  if (d.ptx.has("async")) d.unsupported("an asynchronous reduction");
  AtomicSpec s;
  s.returns = returns;
  const MemoryModifiers m = take_memory_modifiers(d);
  s.op = take_operation(d);
  d.take("noftz");
  s.count = m.vector;
  s.type = d.take_type();
  s.bytes = static_cast<uint32_t>(ptx::bytes(s.type));
  const size_t first = returns ? 1 : 0;
  const auto address = d.address(first);
  s.space = memory_space(d, m, address);
  d.inst.s[1] = address.base;
  d.inst.imm = address.offset;
  d.inst.aux = address.wide;
  if (returns) {
    decode_elements(d, d.operand(0), s.count, [&](const ptx::Operand& o, uint32_t n) {
      s.wanted[n] = true;
      s.results[n] = d.destination(o, static_cast<int>(s.bytes));
    });
  }
  size_t next = first + 1;
  if (s.op == AtomicOp::cas) s.compare = d.source(next++, static_cast<int>(s.bytes));
  decode_elements(d, d.operand(next), s.count,
                  [&](const ptx::Operand& o, uint32_t n) { s.operands[n] = d.float_source(o, s.type); });
  if (s.space == AddressSpace::global || s.space == AddressSpace::generic) d.mark_ordered();
  d.inst.extra = d.keep(s);
  d.inst.run = &run_atomic;
}

}  // namespace

void register_atomic(Registry& r) {
  r.add("atom", [](Decoding& d) { decode_atomic(d, true); });
  r.add("red", [](Decoding& d) { decode_atomic(d, false); });
}

}  // namespace tw::sim
