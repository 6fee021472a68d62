#include <bit>
#include <cstring>
#include <functional>

#include "tilewright/sim/atomic_op.h"
#include "tilewright/sim/bulk.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/memory_decode.h"

// PTX ISA, "atom", "red". Lanes act one after the other, in the order of their numbers.
namespace tw::sim {

namespace {

using ptx::Type;

struct AtomicSpec {
  AtomicOp op = AtomicOp::add;
  Type type = Type::none;
  AddressSpace space = AddressSpace::generic;
  uint32_t count = 1, bytes = 4;
  bool returns = false;
  Slot results[8], operands[8], compare;
  bool wanted[8] = {};
};

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
      else if (s.op != AtomicOp::exch) fresh = atomic_result(s.op, s.type, old, b, global >> lane & 1);
      std::memcpy(at, &fresh, s.bytes);
      if (s.returns && s.wanted[n]) write_row(w, s.results[n], lane, s.bytes, old);
    }
  }
  w.cluster().changed();
  return Flow::next;
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
  if (d.ptx.has("async")) return decode_async_store(d);
  AtomicSpec s;
  s.returns = returns;
  const MemoryModifiers m = take_memory_modifiers(d);
  s.op = take_atomic_op(d);
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
