#include <cstring>

#include "tilewright/sim/bulk.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/memory_decode.h"
#include "tilewright/sim/memory_op.h"
#include "tilewright/sim/memory_rows.h"

// PTX ISA, "ld", "ld.global.nc", "ldu", "st", "prefetch", "createpolicy", "discard", "applypriority".
namespace tw::sim {

namespace {

using ptx::Type;

template <class M, class R>
void load_rows(Warp& w, uint32_t lanes, const LanePointers& p, Slot slot, size_t at) {
  auto* d = w.row<R>(slot);
  if (p.dense && sizeof(M) == sizeof(R) && at == 0 && p.lane[1] == p.lane[0] + sizeof(M)) {
    std::memcpy(d, p.lane[0], sizeof(M) * kLanes);
    return;
  }
  if (lanes == kAllLanes) {
    for (int l = 0; l < 32; ++l) {
      M v;
      std::memcpy(&v, p.lane[l] + at, sizeof(M));
      d[l] = static_cast<R>(v);
    }
    return;
  }
  for (int l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    M v;
    std::memcpy(&v, p.lane[l] + at, sizeof(M));
    d[l] = static_cast<R>(v);
  }
}

template <class M>
void load_element(Warp& w, uint32_t lanes, const LanePointers& p, Slot slot, size_t at,
                  const ElementSpec& e) {
  if (e.register_bytes == 8) {
    if (e.sign) load_rows<std::make_signed_t<M>, int64_t>(w, lanes, p, slot, at);
    else load_rows<M, uint64_t>(w, lanes, p, slot, at);
  } else if (e.sign) {
    load_rows<std::make_signed_t<M>, int32_t>(w, lanes, p, slot, at);
  } else {
    load_rows<M, uint32_t>(w, lanes, p, slot, at);
  }
}

// A 16-bit register keeps 16 bits in its row; sign extension must not reach above.
void narrow_row(Warp& w, uint32_t lanes, Slot slot) {
  auto* d = w.row<uint32_t>(slot);
  each_lane(lanes, d, [&](int l) { return d[l] & 0xFFFF; });
}

template <class M, class R>
void store_rows(Warp& w, uint32_t lanes, const LanePointers& p, Slot slot, size_t at) {
  const auto* s = w.row<R>(slot);
  if (p.dense && sizeof(M) == sizeof(R) && at == 0 && p.lane[1] == p.lane[0] + sizeof(M)) {
    std::memcpy(p.lane[0], s, sizeof(M) * kLanes);
    return;
  }
  for (int l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    const auto v = static_cast<M>(s[l]);
    std::memcpy(p.lane[l] + at, &v, sizeof(M));
  }
}

template <class M>
void store_element(Warp& w, uint32_t lanes, const LanePointers& p, Slot slot, size_t at,
                   const ElementSpec& e) {
  if (e.register_bytes == 8) store_rows<M, uint64_t>(w, lanes, p, slot, at);
  else store_rows<M, uint32_t>(w, lanes, p, slot, at);
}

Slot upper_half(Slot s) { return {s.offset + kLanes * 8, s.base}; }

bool must_wait_for_turn(Warp& w, const MemoryOp& op, uint32_t lanes, const Addresses& a) {
  return op.strong && !w.has_turn() && w.cluster().grid.clusters > 1 && global_lanes(op.space, lanes, a) != 0;
}

}  // namespace

Flow run_load(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& op = *static_cast<const MemoryOp*>(i.extra);
  const Addresses a = lane_addresses(w, i.s[0], i.aux, i.imm);
  if (op.strong && must_wait_for_turn(w, op, lanes, a)) return Flow::order;
  LanePointers p;
  const uint32_t bytes = op.element.bytes * op.count;
  resolve(w, lanes, op.space, a, bytes, bytes, AccessKind::read, p);
  for (uint32_t n = 0; n < op.count; ++n) {
    if (!op.used[n]) continue;
    const size_t at = size_t{n} * op.element.bytes;
    switch (op.element.bytes) {
      case 1: load_element<uint8_t>(w, lanes, p, op.registers[n], at, op.element); break;
      case 2: load_element<uint16_t>(w, lanes, p, op.registers[n], at, op.element); break;
      case 4: load_element<uint32_t>(w, lanes, p, op.registers[n], at, op.element); break;
      case 8: load_element<uint64_t>(w, lanes, p, op.registers[n], at, op.element); break;
      default:
        load_rows<uint64_t, uint64_t>(w, lanes, p, op.registers[n], at);
        load_rows<uint64_t, uint64_t>(w, lanes, p, upper_half(op.registers[n]), at + 8);
    }
    if (op.element.register_bytes == 2) narrow_row(w, lanes, op.registers[n]);
  }
  return Flow::next;
}

Flow run_store(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& op = *static_cast<const MemoryOp*>(i.extra);
  const Addresses a = lane_addresses(w, i.s[0], i.aux, i.imm);
  if (op.strong && must_wait_for_turn(w, op, lanes, a)) return Flow::order;
  LanePointers p;
  const uint32_t bytes = op.element.bytes * op.count;
  resolve(w, lanes, op.space, a, bytes, bytes, AccessKind::write, p);
  for (uint32_t n = 0; n < op.count; ++n) {
    if (!op.used[n]) continue;
    const size_t at = size_t{n} * op.element.bytes;
    switch (op.element.bytes) {
      case 1: store_element<uint8_t>(w, lanes, p, op.registers[n], at, op.element); break;
      case 2: store_element<uint16_t>(w, lanes, p, op.registers[n], at, op.element); break;
      case 4: store_element<uint32_t>(w, lanes, p, op.registers[n], at, op.element); break;
      case 8: store_element<uint64_t>(w, lanes, p, op.registers[n], at, op.element); break;
      default:
        store_rows<uint64_t, uint64_t>(w, lanes, p, op.registers[n], at);
        store_rows<uint64_t, uint64_t>(w, lanes, p, upper_half(op.registers[n]), at + 8);
    }
  }
  return Flow::next;
}

namespace {

// ld.param and ld.const from a fixed address: the same value for all lanes.
Flow run_load_uniform(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& op = *static_cast<const MemoryOp*>(i.extra);
  Addresses a{};
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(lanes));
  a.lane[first] = lane_addresses(w, i.s[0], i.aux, i.imm).lane[first];
  LanePointers p;
  const uint32_t bytes = op.element.bytes * op.count;
  resolve(w, 1u << first, op.space, a, bytes, op.element.bytes, AccessKind::read, p);
  for (uint32_t n = 0; n < op.count; ++n) {
    if (!op.used[n]) continue;
    uint64_t v = 0;
    std::memcpy(&v, p.lane[first] + size_t{n} * op.element.bytes, op.element.bytes);
    if (op.element.sign) {
      const int shift = static_cast<int>(64 - 8 * op.element.bytes);
      v = static_cast<uint64_t>(static_cast<int64_t>(v << shift) >> shift);
    }
    if (op.element.register_bytes == 8) {
      each_lane(lanes, w.row<uint64_t>(op.registers[n]), [&](int) { return v; });
    } else {
      const auto narrow = static_cast<uint32_t>(op.element.register_bytes == 2 ? v & 0xFFFF : v);
      each_lane(lanes, w.row<uint32_t>(op.registers[n]), [&](int) { return narrow; });
    }
  }
  return Flow::next;
}

void decode_registers(Decoding& d, MemoryOp& op, const ptx::Operand& operand, Type type, bool load) {
  op.element.bytes = static_cast<uint32_t>(ptx::bytes(type));
  op.element.sign = load && (type == Type::s8 || type == Type::s16 || type == Type::s32);
  std::vector<ptx::Operand> single{operand};
  const auto* vector = operand.as<ptx::Vector>();
  const std::vector<ptx::Operand>& elements = vector ? vector->elements : single;
  if (elements.size() != op.count) d.unsupported("a vector of this length");
  for (size_t n = 0; n < elements.size(); ++n) {
    const ptx::Operand& o = elements[n];
    op.used[n] = !o.is<ptx::Sink>();
    if (!op.used[n]) continue;
    int bytes = d.register_bytes(o);
    if (bytes == 0) bytes = ptx::bytes(type);  // an immediate
    if (bytes == 1) bytes = 2;
    if (static_cast<uint32_t>(bytes) < op.element.bytes) d.unsupported("a register narrower than the access");
    op.element.register_bytes = static_cast<uint32_t>(bytes);
    op.registers[n] = load ? d.destination(o, bytes)
                           : (o.is<ptx::Immediate>() ? d.float_source(o, type) : d.source(o, bytes));
  }
}

void decode_access(Decoding& d, bool load) {
  MemoryOp op;
  MemoryModifiers m = take_memory_modifiers(d);
  op.strong = m.strong;
  op.count = m.vector;
  Type type = d.take_type();
  if (type == Type::none) d.unsupported("this type");
  const auto address = d.address(load ? 1 : 0);
  op.space = memory_space(d, m, address);
  decode_registers(d, op, d.operand(load ? 0 : 1), type, load);
  d.inst.s[0] = address.base;
  d.inst.imm = address.offset;
  d.inst.aux = address.wide;
  if (op.strong && (op.space == AddressSpace::global || op.space == AddressSpace::generic)) d.mark_ordered();
  const bool uniform = load && address.base.base == Slot::constants &&
                       (op.space == AddressSpace::param || op.space == AddressSpace::constant) &&
                       op.element.bytes <= 8;
  d.inst.run = load ? (uniform ? &run_load_uniform : &run_load) : &run_store;
  if (const Handler rows = row_handler(op, load, address.wide)) d.inst.run = rows;
  d.inst.extra = d.keep(op);
}

Flow run_nothing(Warp&, const Inst&, uint32_t) { return Flow::next; }

// Cache hints change time, not values.
void decode_hint(Decoding& d) {
  while (!d.take_next().empty()) {
  }
  d.inst.run = &run_nothing;
}

Flow run_policy(Warp& w, const Inst& i, uint32_t lanes) {
  each_lane(lanes, w.row<uint64_t>(i.s[0]), [&](int) { return uint64_t{0}; });
  return Flow::next;
}

void decode_createpolicy(Decoding& d) {
  while (!d.take_next().empty()) {
  }
  d.inst.s[0] = d.destination(0, 8);
  d.inst.run = &run_policy;
}

}  // namespace

MemoryModifiers take_memory_modifiers(Decoding& d) {
  MemoryModifiers m;
  if (d.take("volatile")) m.strong = true;
  if (!d.take_one_of({"relaxed", "acquire", "release", "acq_rel"}).empty()) m.strong = true;
  d.take("mmio");
  d.take("weak");
  m.scope = d.take_one_of({"cta", "cluster", "gpu", "sys"});
  if (m.scope == "cta" || m.scope == "cluster") m.strong = false;  // no other cluster waits for it
  m.space = d.take_one_of({"global", "shared", "shared::cta", "shared::cluster", "local", "param",
                           "param::entry", "param::func", "const"});
  d.take("nc");
  d.take_one_of({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  while (true) {
    const auto hint =
        d.take_one_of({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
                       "L1::no_allocate", "L2::evict_normal", "L2::evict_first", "L2::evict_last",
                       "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"});
    if (hint.empty()) break;
  }
  const auto vector = d.take_one_of({"v2", "v4", "v8"});
  m.vector = vector.empty() ? 1 : static_cast<uint32_t>(vector[1] - '0');
  return m;
}

AddressSpace memory_space(Decoding& d, const MemoryModifiers& m, const Decoding::Address& address) {
  if (m.space == "global") return AddressSpace::global;
  if (m.space == "shared::cluster") return AddressSpace::shared_cluster;
  if (m.space.starts_with("shared")) return AddressSpace::shared;
  if (m.space == "local") return AddressSpace::local;
  // Parameters of functions and of calls lie in local memory.
  const bool of_function =
      address.variable == ptx::Space::local || (address.variable == ptx::Space::none && d.in_function());
  if (m.space.starts_with("param") && of_function) return AddressSpace::local;
  if (m.space == "param" || m.space == "param::entry") return AddressSpace::param;
  if (m.space == "const") return AddressSpace::constant;
  if (!m.space.empty()) d.unsupported(tw::format("the state space .{}", m.space));
  // Without a space the address is generic; a variable's name stands for its own space here.
  return address.variable == ptx::Space::none ? AddressSpace::generic : address_space(address.variable);
}

void register_memory(Registry& r) {
  r.add("ld", [](Decoding& d) { decode_access(d, true); });
  r.add("ldu", [](Decoding& d) { decode_access(d, true); });
  r.add("st", [](Decoding& d) {
    if (d.ptx.has("async")) return decode_async_store(d);
    if (d.ptx.has("bulk")) d.unsupported("a bulk store");
    decode_access(d, false);
  });
  r.add("prefetch", &decode_hint);
  r.add("prefetchu", &decode_hint);
  r.add("applypriority", &decode_hint);
  r.add("createpolicy", &decode_createpolicy);
}

}  // namespace tw::sim
