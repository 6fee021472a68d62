#pragma once
#include <cstddef>
#include <cstdint>

#include "tilewright/ptx/module.h"
#include "tilewright/sim/observer.h"
#include "tilewright/sim/warp.h"

// From lane addresses to bytes: spaces and generic windows, bounds, alignment, and the written state of every
// byte.
namespace tw::sim {

// Byte addresses of the lanes of one access.
struct Addresses {
  uint64_t lane[32];
};

// lane[l] = base + offset, for 32- or 64-bit bases.
Addresses lane_addresses(const Warp& warp, Slot base, bool wide, int64_t offset);

// shared: of the CTA itself (.shared::cta); shared_cluster: of any CTA of the cluster.
enum class AddressSpace : uint8_t { generic, shared, shared_cluster, global, local, param, constant };

// Where the bytes of each lane are, after all checks. A write (or atomic) is marked as written, so it must
// follow.
struct LanePointers {
  std::byte* lane[32];
  bool dense = false;  // all 32 lanes, one after the other
};

// Faults: outside any allocation, misaligned (`align` bytes), unwritten bytes of shared or global memory for
// reads and atomics.
void resolve(Warp& warp, uint32_t lanes, AddressSpace space, const Addresses& addresses, uint32_t bytes,
             uint32_t align, AccessKind kind, LanePointers& out);
// The same, but not for generic addresses, for an asynchronous operation, which tells the observer itself
// when it accesses the bytes.
void resolve_for_later(Warp& warp, uint32_t lanes, AddressSpace space, const Addresses& addresses,
                       uint32_t bytes, uint32_t align, AccessKind kind, LanePointers& out);

// The lanes whose address is in global memory.
uint32_t global_lanes(AddressSpace space, uint32_t lanes, const Addresses& addresses);

AddressSpace address_space(ptx::Space space);

// Names the allocation that was probably meant.
[[noreturn]] void fault_outside_global(const Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes);

}  // namespace tw::sim
