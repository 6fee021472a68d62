#include "tilewright/sim/memory_access.h"

#include <algorithm>
#include <bit>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/global_memory_impl.h"
#include "tilewright/sim/grid.h"

namespace tw::sim {

namespace {

template <class F>
void for_lanes(uint32_t lanes, F f) {
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) f(static_cast<uint32_t>(std::countr_zero(rest)));
}

struct Range {
  uint64_t low, high;  // of the first bytes
};
// All lanes take part and follow each other without gaps: the common case, which needs one check instead
// of 32.
bool is_dense(uint32_t lanes, const Addresses& a, uint32_t bytes) {
  if (lanes != kAllLanes) return false;
  uint64_t differs = 0;
  for (uint32_t l = 0; l < 32; ++l) differs |= a.lane[l] ^ (a.lane[0] + uint64_t{l} * bytes);
  return differs == 0;
}
Range range_of(uint32_t lanes, const Addresses& a) {
  if (lanes == kAllLanes) {
    uint64_t low = a.lane[0], high = a.lane[0];
    for (int l = 1; l < 32; ++l) {
      low = a.lane[l] < low ? a.lane[l] : low;
      high = a.lane[l] > high ? a.lane[l] : high;
    }
    return {low, high};
  }
  Range r{~uint64_t{0}, 0};
  for_lanes(lanes, [&](uint32_t l) {
    r.low = std::min(r.low, a.lane[l]);
    r.high = std::max(r.high, a.lane[l]);
  });
  return r;
}

void check_alignment(const Warp& warp, uint32_t lanes, const Addresses& a, uint32_t align) {
  uint64_t low_bits = 0;
  if (lanes == kAllLanes) {
    for (int l = 0; l < 32; ++l) low_bits |= a.lane[l];
  } else {
    for_lanes(lanes, [&](uint32_t l) { low_bits |= a.lane[l]; });
  }
  if ((low_bits & (align - 1)) == 0) return;
  uint32_t bad = 0;
  for_lanes(lanes, [&](uint32_t l) { bad |= (a.lane[l] & (align - 1)) ? 1u << l : 0; });
  warp.fault(bad, "address {:#x} is not aligned to the {} bytes of the access", a.lane[std::countr_zero(bad)],
             align);
}

// The range is small enough to be looked at as a whole.
bool compact(const Range& r, uint32_t bytes) { return r.high - r.low <= uint64_t{64} * bytes; }

// ---- shared ----

void resolve_shared(Warp& warp, uint32_t lanes, const Addresses& a, uint32_t bytes, AccessKind kind, bool own,
                    LanePointers& out) {
  Cluster& cluster = warp.cluster();
  const Range range = out.dense ? Range{a.lane[0], a.lane[31]} : range_of(lanes, a);
  const auto first = static_cast<uint32_t>(range.low), last = static_cast<uint32_t>(range.high);
  const auto low = cluster.locate_or_null(first, bytes), high = cluster.locate_or_null(last, bytes);
  if (range.high >> 32 || !low.cta || low.cta != high.cta) {
    out.dense = false;
    // Lanes reach into different CTAs, or one of them is out of bounds.
    for_lanes(lanes, [&](uint32_t l) {
      Addresses one{};
      one.lane[l] = a.lane[l];
      if (a.lane[l] >> 32) warp.fault(1u << l, "shared address {:#x} does not fit in 32 bits", a.lane[l]);
      cluster.locate(warp, 1u << l, static_cast<uint32_t>(a.lane[l]), bytes);
      resolve_shared(warp, 1u << l, one, bytes, kind, own, out);
    });
    return;
  }
  if (own && low.cta != &warp.cta()) {
    warp.fault(
        lanes,
        "shared address {:#x} lies in CTA rank {} of the cluster: .shared is .shared::cta, the memory of "
        "another CTA is .shared::cluster",
        first, low.cta->rank);
  }
  SharedMemory& memory = low.cta->shared;
  // Lane address -> pointer: subtract the address of the lowest byte.
  std::byte* const base = memory.data() + low.offset - range.low;
  if (lanes == kAllLanes) {
    for (int l = 0; l < 32; ++l) out.lane[l] = base + a.lane[l];
  } else {
    for_lanes(lanes, [&](uint32_t l) { out.lane[l] = base + a.lane[l]; });
  }
  WrittenBytes& written = memory.written();
  if (written.all_written()) return;
  const uint64_t shift = low.offset - range.low;
  if (kind != AccessKind::write) {
    const bool all = compact(range, bytes) && written.written(low.offset, range.high - range.low + bytes);
    if (!all) {
      uint32_t bad = 0;
      for_lanes(lanes, [&](uint32_t l) { bad |= written.written(a.lane[l] + shift, bytes) ? 0 : 1u << l; });
      if (bad) {
        const uint64_t at = written.first_unwritten(a.lane[std::countr_zero(bad)] + shift, bytes);
        warp.fault(Cause::unwritten, bad,
                   "read of shared memory that nothing has written: {} (offset {}) of CTA rank {}",
                   low.cta->name_of_shared(static_cast<uint32_t>(at)), at, low.cta->rank);
      }
    }
  }
  if (kind == AccessKind::read) return;
  if (out.dense) return written.mark(low.offset, uint64_t{32} * bytes);
  for_lanes(lanes, [&](uint32_t l) { written.mark(a.lane[l] + shift, bytes); });
}

// ---- global ----

void resolve_global(Warp& warp, uint32_t lanes, const Addresses& a, uint32_t bytes, AccessKind kind,
                    LanePointers& out) {
  const GlobalMemory::Impl& memory = warp.cluster().grid.memory.impl();
  const Range range = out.dense ? Range{a.lane[0], a.lane[31]} : range_of(lanes, a);
  Allocation* allocation = memory.find(range.low);
  if (!allocation || !allocation->contains(range.high, bytes)) {
    out.dense = false;
    if (std::popcount(lanes) == 1) fault_outside_global(warp, lanes, range.low, bytes);
    for_lanes(lanes, [&](uint32_t l) {
      Addresses one{};
      one.lane[l] = a.lane[l];
      resolve_global(warp, 1u << l, one, bytes, kind, out);
    });
    return;
  }
  std::byte* const base = allocation->data - allocation->address;
  if (lanes == kAllLanes) {
    for (int l = 0; l < 32; ++l) out.lane[l] = base + a.lane[l];
  } else {
    for_lanes(lanes, [&](uint32_t l) { out.lane[l] = base + a.lane[l]; });
  }
  if (allocation->all_written()) return;
  const uint64_t start = allocation->address;
  if (kind != AccessKind::write) {
    const uint64_t whole = range.high - range.low + bytes;
    const bool all = compact(range, bytes) && allocation->count_unwritten(range.low - start, whole) == 0;
    if (!all) {
      uint32_t bad = 0;
      for_lanes(lanes, [&](uint32_t l) {
        bad |= allocation->count_unwritten(a.lane[l] - start, bytes) ? 1u << l : 0;
      });
      if (bad) {
        const uint64_t at = allocation->first_unwritten(a.lane[std::countr_zero(bad)] - start, bytes);
        warp.fault(Cause::unwritten, bad,
                   "read of global memory that nothing has written: byte {} of {} (address {:#x})", at,
                   allocation->name.empty() ? "an unnamed allocation" : allocation->name, start + at);
      }
    }
  }
  if (kind == AccessKind::read) return;
  if (out.dense) return allocation->mark(range.low - start, uint64_t{32} * bytes);
  for_lanes(lanes, [&](uint32_t l) { allocation->mark(a.lane[l] - start, bytes); });
}

// ---- local, param, constant ----

void resolve_local(Warp& warp, uint32_t lanes, const Addresses& a, uint32_t bytes, LanePointers& out) {
  const uint64_t size = warp.cluster().grid.program.local_bytes;
  for_lanes(lanes, [&](uint32_t l) {
    if (a.lane[l] > size || bytes > size - a.lane[l])
      warp.fault(1u << l, "local address {:#x} ({} bytes) lies outside the thread's {} bytes of local memory",
                 a.lane[l], bytes, size);
    out.lane[l] = warp.local(l) + a.lane[l];
  });
}

void resolve_constant(Warp& warp, uint32_t lanes, const Addresses& a, uint32_t bytes, AccessKind kind,
                      bool param, LanePointers& out) {
  const Grid& grid = warp.cluster().grid;
  const auto& memory = param ? grid.launch.params : grid.program.const_memory;
  const char* what = param ? "parameters" : "constant memory";
  if (kind != AccessKind::read) warp.fault(lanes, "write to {}, which a kernel may only read", what);
  for_lanes(lanes, [&](uint32_t l) {
    if (a.lane[l] > memory.size() || bytes > memory.size() - a.lane[l])
      warp.fault(1u << l, "address {:#x} ({} bytes) lies outside the {} bytes of {}", a.lane[l], bytes,
                 memory.size(), what);
    out.lane[l] = const_cast<std::byte*>(memory.data()) + a.lane[l];
  });
}

AddressSpace window_of(uint64_t address, uint64_t& offset) {
  auto inside = [&](uint64_t base) { return address >= base && address - base < kWindowSize; };
  if (address < kConstWindow) return AddressSpace::global;
  if (inside(kSharedWindow)) return offset = kSharedWindow, AddressSpace::shared_cluster;
  if (inside(kLocalWindow)) return offset = kLocalWindow, AddressSpace::local;
  if (inside(kParamWindow)) return offset = kParamWindow, AddressSpace::param;
  if (inside(kConstWindow)) return offset = kConstWindow, AddressSpace::constant;
  return AddressSpace::global;
}

void resolve_generic(Warp& warp, uint32_t lanes, const Addresses& a, uint32_t bytes, uint32_t align,
                     AccessKind kind, LanePointers& out) {
  uint32_t left = lanes;
  while (left != 0) {
    uint64_t window = 0;
    const AddressSpace space = window_of(a.lane[std::countr_zero(left)], window);
    Addresses in_space{};
    uint32_t same = 0;
    for_lanes(left, [&](uint32_t l) {
      uint64_t other = 0;
      if (window_of(a.lane[l], other) != space) return;
      same |= 1u << l;
      in_space.lane[l] = a.lane[l] - window;
    });
    resolve(warp, same, space, in_space, bytes, align, kind, out);
    left &= ~same;
  }
}

MemorySpace observed(AddressSpace s) {
  switch (s) {
    case AddressSpace::shared:
    case AddressSpace::shared_cluster: return MemorySpace::shared;
    case AddressSpace::local: return MemorySpace::local;
    case AddressSpace::param: return MemorySpace::param;
    case AddressSpace::constant: return MemorySpace::constant;
    default: return MemorySpace::global;
  }
}

}  // namespace

void fault_outside_global(const Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes) {
  const Allocation* near = warp.cluster().grid.memory.impl().nearest(address);
  if (!near) warp.fault(lanes, "global address {:#x} ({} bytes) lies in no allocation", address, bytes);
  const std::string_view label = near->name.empty() ? std::string_view("unnamed") : near->name;
  if (near->contains(address, 1))
    warp.fault(
        lanes, "global address {:#x} ({} bytes) reaches {} bytes past the end of {}, {} bytes at {:#x}",
        address, bytes, address + bytes - (near->address + near->bytes), label, near->bytes, near->address);
  warp.fault(lanes,
             "global address {:#x} ({} bytes) lies in no allocation; the last one below is {}, {} bytes at "
             "{:#x}, which ends {} bytes before",
             address, bytes, label, near->bytes, near->address,
             static_cast<int64_t>(address - (near->address + near->bytes)));
}

Addresses lane_addresses(const Warp& warp, Slot base, bool wide, int64_t offset) {
  Addresses a;
  if (wide) {
    const auto* row = warp.row<uint64_t>(base);
    for (int l = 0; l < 32; ++l) a.lane[l] = row[l] + static_cast<uint64_t>(offset);
  } else {
    const auto* row = warp.row<uint32_t>(base);
    const auto add = static_cast<uint32_t>(offset);
    for (int l = 0; l < 32; ++l) a.lane[l] = uint32_t{row[l] + add};
  }
  return a;
}

void resolve_for_later(Warp& warp, uint32_t lanes, AddressSpace space, const Addresses& addresses,
                       uint32_t bytes, uint32_t align, AccessKind kind, LanePointers& out) {
  out.dense = is_dense(lanes, addresses, bytes);
  if (!out.dense || addresses.lane[0] % align != 0 || bytes % align != 0)
    check_alignment(warp, lanes, addresses, align);
  switch (space) {
    case AddressSpace::shared: resolve_shared(warp, lanes, addresses, bytes, kind, true, out); break;
    case AddressSpace::shared_cluster: resolve_shared(warp, lanes, addresses, bytes, kind, false, out); break;
    case AddressSpace::global: resolve_global(warp, lanes, addresses, bytes, kind, out); break;
    case AddressSpace::local: resolve_local(warp, lanes, addresses, bytes, out); break;
    case AddressSpace::param: resolve_constant(warp, lanes, addresses, bytes, kind, true, out); break;
    default: resolve_constant(warp, lanes, addresses, bytes, kind, false, out);
  }
}

void resolve(Warp& warp, uint32_t lanes, AddressSpace space, const Addresses& addresses, uint32_t bytes,
             uint32_t align, AccessKind kind, LanePointers& out) {
  if (space == AddressSpace::generic) return resolve_generic(warp, lanes, addresses, bytes, align, kind, out);
  resolve_for_later(warp, lanes, space, addresses, bytes, align, kind, out);
  if (Observer* observer = warp.cluster().observer()) [[unlikely]]
    observer->access(warp, {kind, observed(space), lanes, bytes, addresses.lane});
}

uint32_t global_lanes(AddressSpace space, uint32_t lanes, const Addresses& addresses) {
  if (space == AddressSpace::global) return lanes;
  if (space != AddressSpace::generic) return 0;
  uint32_t result = 0;
  for_lanes(lanes, [&](uint32_t l) {
    uint64_t window = 0;
    if (window_of(addresses.lane[l], window) == AddressSpace::global) result |= 1u << l;
  });
  return result;
}

AddressSpace address_space(ptx::Space space) {
  switch (space) {
    case ptx::Space::shared: return AddressSpace::shared;
    case ptx::Space::global: return AddressSpace::global;
    case ptx::Space::local: return AddressSpace::local;
    case ptx::Space::param: return AddressSpace::param;
    case ptx::Space::const_: return AddressSpace::constant;
    default: return AddressSpace::generic;
  }
}

}  // namespace tw::sim
