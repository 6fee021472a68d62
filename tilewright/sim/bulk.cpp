#include "tilewright/sim/bulk.h"

#include <bit>
#include <cstring>

#include "tilewright/sim/grid.h"
#include "tilewright/sim/memory_access.h"

namespace tw::sim {

namespace {

uint32_t in_32_bits(const Warp& warp, uint32_t lanes, uint64_t address) {
  if (address >= kSharedWindow && address - kSharedWindow < kWindowSize)
    warp.fault(lanes, "{:#x} is a generic address; this operand takes an address in the shared window",
               address);
  if (address >> 32) warp.fault(lanes, "shared address {:#x} does not fit in 32 bits", address);
  return static_cast<uint32_t>(address);
}

}  // namespace

SharedRange shared_range(const Warp& warp, uint32_t lanes, uint64_t address, uint32_t bytes, uint32_t align) {
  const uint32_t a = in_32_bits(warp, lanes, address);
  const Cluster::Location at = warp.cluster().locate(warp, lanes, a, bytes);
  if (at.offset % align != 0)
    warp.fault(lanes, "shared address {:#x} ({}) is not a multiple of {} bytes", a,
               at.cta->name_of_shared(at.offset), align);
  return {at.cta, at.offset, bytes};
}

SharedRange own_shared_range(const Warp& warp, uint32_t lanes, uint64_t address, uint32_t bytes,
                             uint32_t align, const char* what) {
  const SharedRange range = shared_range(warp, lanes, address, bytes, align);
  if (range.cta != &warp.cta())
    warp.fault(lanes, "the {} lies in CTA rank {}; .shared::cta names the executing CTA, rank {}", what,
               range.cta->rank, warp.cta().rank);
  return range;
}

GlobalRange global_range(const Warp& warp, uint32_t lanes, uint64_t address, uint64_t bytes, uint32_t align) {
  if (address % align != 0)
    warp.fault(lanes, "global address {:#x} is not a multiple of {} bytes", address, align);
  Allocation* allocation = warp.cluster().grid.memory.impl().find(address);
  if (!allocation || !allocation->contains(address, bytes)) fault_outside_global(warp, lanes, address, bytes);
  return {allocation, address - allocation->address, bytes};
}

void require_written(const Warp& warp, uint32_t lanes, const SharedRange& range) {
  const WrittenBytes& written = range.cta->shared.written();
  if (written.written(range.offset, range.bytes)) return;
  const uint64_t at = written.first_unwritten(range.offset, range.bytes);
  warp.fault(Cause::unwritten, lanes,
             "read of shared memory that nothing has written: {} (offset {}) of CTA rank {}",
             range.cta->name_of_shared(static_cast<uint32_t>(at)), at, range.cta->rank);
}

void require_written(const Warp& warp, uint32_t lanes, const GlobalRange& range) {
  const Allocation& a = *range.allocation;
  if (a.all_written() || a.count_unwritten(range.offset, range.bytes) == 0) return;
  const uint64_t at = a.first_unwritten(range.offset, range.bytes);
  warp.fault(Cause::unwritten, lanes,
             "read of global memory that nothing has written: byte {} of {} (address {:#x})", at,
             a.name.empty() ? "an unnamed allocation" : a.name, a.address + at);
}

void require_no_mbarrier(const Warp& warp, uint32_t lanes, const SharedRange& range) {
  for (const auto& [offset, barrier] : range.cta->mbarriers()) {
    if (offset + 8 > range.offset && offset < range.offset + range.bytes)
      warp.fault(
          lanes,
          "the destination, {} bytes at {} of CTA rank {}, holds the mbarrier {}; inval must come first",
          range.bytes, range.cta->name_of_shared(range.offset), range.cta->rank,
          range.cta->name_of_shared(offset));
  }
}

Destinations multicast(const Warp& warp, uint32_t lanes, const SharedRange& first, uint32_t mbarrier,
                       uint32_t mask, bool pair_signal) {
  Cluster& cluster = warp.cluster();
  if (mask == 0) warp.fault(lanes, "the CTA mask of a multicast names no CTA");
  if (mask >> cluster.ctas.size() != 0)
    warp.fault(lanes, "the CTA mask {:#06x} names CTA rank {}, in a cluster of {}", mask,
               std::bit_width(mask) - 1, cluster.ctas.size());
  Destinations to;
  const uint32_t parity = mbarrier >> 24 & 1;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<uint32_t>(std::countr_zero(rest));
    to.ranges.push_back({cluster.ctas[rank].get(), first.offset, first.bytes});
    const uint32_t told = pair_signal ? (rank & ~1u) | parity : rank;
    to.mbarriers.push_back((mbarrier & 0xFFFFFF) | told << 24);
    shared_range(warp, lanes, to.mbarriers.back(), 8, 8);
  }
  return to;
}

void SignallingOp::signal(Cluster& cluster) {
  for (uint32_t mbarrier : to_.mbarriers) {
    require_running(*this, *cluster.ctas[mbarrier >> 24]);
    cluster.mbarrier_op(*warp, lanes, Cluster::BarrierOp::complete_tx, mbarrier, bytes_, this);
  }
}

void SignallingOp::deliver(const std::byte* data) { deliver(data, 0, to_.ranges.front().bytes); }
void SignallingOp::deliver(const std::byte* data, uint32_t at, uint32_t bytes) {
  for (const SharedRange& range : to_.ranges) {
    require_running(*this, *range.cta);
    std::memcpy(range.data() + at, data + at, bytes);
    range.cta->shared.written().mark(range.offset + at, bytes);
    range.cta->cluster.touches(*this, AccessKind::write, *range.cta, range.offset + at, bytes);
  }
}

void require_running(const AsyncOp& op, const Cta& cta) {
  if (&cta == &op.warp->cta() || !cta.exited()) return;
  op.warp->fault(op.lanes, "{} reaches the shared memory of CTA rank {}, whose threads have all exited",
                 op.describe(), cta.rank);
}

Engine& copy_engine(Warp& warp) {
  return warp.cluster().engine("TMA", Engine::Order::any, static_cast<int>(warp.cta().rank));
}

uint64_t AddressRow::of(const Warp& warp, uint32_t lane) const {
  if (wide) return warp.row<uint64_t>(base)[lane] + static_cast<uint64_t>(offset);
  return warp.row<uint32_t>(base)[lane] + static_cast<uint32_t>(offset);
}

AddressRow address_row(Decoding& d, size_t operand) {
  const auto a = d.address(operand);
  return {a.base, a.wide, a.offset};
}

}  // namespace tw::sim
