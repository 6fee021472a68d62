#pragma once
#include <cstdint>
#include <vector>

#include "tilewright/sim/async.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/global_memory_impl.h"

// What the bulk copies, tensor copies and asynchronous stores have in common (PTX ISA, "Data Movement and
// Conversion Instructions: Asynchronous copy"). One operation belongs to one thread.
namespace tw::sim {

// Bytes of one CTA's shared memory.
struct SharedRange {
  Cta* cta = nullptr;
  uint32_t offset = 0, bytes = 0;
  std::byte* data() const { return cta->shared.data() + offset; }
};
// Bytes of one allocation.
struct GlobalRange {
  Allocation* allocation = nullptr;
  uint64_t offset = 0, bytes = 0;
  std::byte* data() const { return allocation->data + offset; }
  uint64_t address() const { return allocation->address + offset; }
};

// The range at a shared::cluster address. Faults: out of bounds, not a multiple of `align`.
SharedRange shared_range(const Warp& warp, uint32_t lanes, uint64_t address, uint32_t bytes, uint32_t align);
// The same, in the CTA of the warp; a fault otherwise. `what` names the operand.
SharedRange own_shared_range(const Warp& warp, uint32_t lanes, uint64_t address, uint32_t bytes,
                             uint32_t align, const char* what);
GlobalRange global_range(const Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes, uint32_t align);

// Faults: a byte that nothing has written.
void require_written(const Warp& warp, uint32_t lanes, const SharedRange& range);
void require_written(const Warp& warp, uint32_t lanes, const GlobalRange& range);
// Faults: the range holds an mbarrier that was not invalidated ("mbarrier.inval").
void require_no_mbarrier(const Warp& warp, uint32_t lanes, const SharedRange& range);

// What an operation fills: the same bytes in one or, with .multicast::cluster, several CTAs, and the
// mbarriers that are told.
struct Destinations {
  std::vector<SharedRange> ranges;
  std::vector<uint32_t> mbarriers;  // shared::cluster addresses
};
// .multicast::cluster: the same CTA-relative offsets in each CTA of `mask`. `pair_signal` is .cta_group::2:
// each signal goes to the CTA of the destination's pair whose rank has the parity of the CTA that `mbarrier`
// lies in.
Destinations multicast(const Warp& warp, uint32_t lanes, const SharedRange& first, uint32_t mbarrier,
                       uint32_t mask, bool pair_signal);

// An operation that completes on mbarriers.
class SignallingOp : public AsyncOp {
 public:
  SignallingOp(Destinations to, uint32_t bytes) : to_(std::move(to)), bytes_(bytes) {}
  void signal(Cluster& cluster) override;

 protected:
  // `data` into every destination; the second, of it only `bytes` from `at` on.
  void deliver(const std::byte* data);
  void deliver(const std::byte* data, uint32_t at, uint32_t bytes);
  Destinations to_;
  uint32_t bytes_;
};
// A CTA whose threads have all exited has given its shared memory back (CUDA Programming Guide, "Distributed
// Shared Memory"): a fault of the operation.
void require_running(const AsyncOp& op, const Cta& cta);

// The copy engine of the warp's CTA; operations overtake each other.
Engine& copy_engine(Warp& warp);

// Decoding of cp.async.bulk, cp.reduce.async.bulk and their tensor forms; cp.async calls it.
void decode_bulk(Decoding& d);
void decode_bulk_tensor(Decoding& d, bool reduce);
// st.async and red.async.
void decode_async_store(Decoding& d);

// An operand with one value a thread: row of 32- or 64-bit addresses, and an offset.
struct AddressRow {
  Slot base;
  bool wide = false;
  int64_t offset = 0;
  uint64_t of(const Warp& warp, uint32_t lane) const;
};
AddressRow address_row(Decoding& d, size_t operand);

}  // namespace tw::sim
