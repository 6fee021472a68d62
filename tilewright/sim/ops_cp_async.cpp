#include <array>
#include <bit>
#include <cstring>

#include "tilewright/sim/bulk.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"

// PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.wait_group", "cp.async.mbarrier.arrive".
namespace tw::sim {

namespace {

// One warp-wide cp.async: 4, 8 or 16 bytes a lane from global to shared memory. It belongs to the generic
// proxy.
class CpAsync final : public AsyncOp {
 public:
  CpAsync(uint32_t size, const LanePointers& from, const LanePointers& to, const Addresses& source,
          const std::array<uint32_t, 32>& copied)
      : size_(size), from_(from), to_(to), source_(source), copied_(copied) {}

  void read(Cluster& cluster) override {
    each([&](uint32_t l) {
      if (copied_[l] != 0) {  // else there is no source
        std::memcpy(data_[l].data(), from_.lane[l], copied_[l]);
        cluster.touches(*this, AccessKind::read, source_.lane[l], copied_[l]);
      }
      std::memset(data_[l].data() + copied_[l], 0, size_ - copied_[l]);  // what src-size leaves out is zero
    });
  }
  void write(Cluster& cluster) override {
    const Cta& cta = warp->cta();
    each([&](uint32_t l) {
      std::memcpy(to_.lane[l], data_[l].data(), size_);
      cluster.touches(*this, AccessKind::write, cta, static_cast<uint32_t>(to_.lane[l] - cta.shared.data()),
                      size_);
    });
  }
  std::string describe() const override {
    return tw::format("cp.async, {} bytes x {} lanes", size_, std::popcount(lanes));
  }

 private:
  template <class F>
  void each(F f) {
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) f(static_cast<uint32_t>(std::countr_zero(rest)));
  }
  uint32_t size_;
  LanePointers from_, to_;
  Addresses source_;
  std::array<uint32_t, 32> copied_;
  std::array<std::array<std::byte, 16>, 32> data_{};
};

struct CopySpec {
  uint32_t size = 16;
  bool has_source_size = false, ignore = false;
  Slot source, source_size;
  bool source_wide = true, target_wide = false;
  int64_t source_offset = 0;
};

Engine& cp_async_engine(Warp& w) {
  return w.cluster().engine("cp.async", Engine::Order::any, static_cast<int>(w.cta().rank));
}

// s[0] the shared address, s[2] the predicate of ignore-src (aux bit 1: negated); imm: offset of the target.
Flow run_copy(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const CopySpec*>(i.extra);
  const Addresses to = lane_addresses(w, i.s[0], s.target_wide, i.imm),
                  from = lane_addresses(w, s.source, s.source_wide, s.source_offset);
  std::array<uint32_t, 32> copied{};
  uint32_t reading = 0;
  const uint32_t ignored = s.ignore ? w.mask(i.s[2]) ^ ((i.aux & 2) ? kAllLanes : 0) : 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    copied[l] = s.has_source_size ? w.row<uint32_t>(s.source_size)[l] : s.size;
    if (copied[l] > s.size) w.fault(1u << l, "cp.async with src-size {} over cp-size {}", copied[l], s.size);
    if (ignored >> l & 1) copied[l] = 0;
    if (copied[l]) reading |= 1u << l;
  }
  LanePointers source{}, target{};
  if (reading) {
    // Only the bytes that are copied are read.
    for (uint32_t rest = reading; rest != 0;) {
      const uint32_t bytes = copied[static_cast<size_t>(std::countr_zero(rest))];
      uint32_t same = 0;
      for (uint32_t l = 0; l < kLanes; ++l) {
        if ((rest >> l & 1) && copied[l] == bytes) same |= 1u << l;
      }
      resolve_for_later(w, same, AddressSpace::global, from, bytes, s.size, AccessKind::read, source);
      rest &= ~same;
    }
  }
  resolve_for_later(w, lanes, AddressSpace::shared, to, s.size, s.size, AccessKind::write, target);
  auto op = std::make_shared<CpAsync>(s.size, source, target, from, copied);
  w.cluster().issue(op, cp_async_engine(w), w, lanes);
  w.cp_async.add(std::move(op));
  return Flow::next;
}

Flow run_commit(Warp& w, const Inst&, uint32_t lanes) {
  w.cp_async.commit(lanes);
  return Flow::next;
}

// Wait::a: how many of the newest groups may be unfinished; all ones: everything must be done.
bool group_ready(Warp& w, const Wait& wait) {
  if (wait.a == ~uint64_t{0}) return w.cp_async.open_complete(wait.lanes, Milestone::writes_done);
  return w.cp_async.complete(wait.lanes, static_cast<uint32_t>(wait.a), Milestone::writes_done);
}
std::string describe_group(const Warp& w, const Wait& wait) {
  return tw::format("cp.async groups, {} operations are in flight",
                    w.cp_async.outstanding(wait.lanes).size());
}
constexpr WaitKind kGroupWait{"cp.async", &group_ready, &describe_group, false};

Flow run_wait(Warp& w, const Inst& i, uint32_t lanes) {
  const Wait wait{&kGroupWait, lanes, static_cast<uint64_t>(i.imm), 0, &i};
  if (group_ready(w, wait)) return passed(w, lanes);
  return w.suspend(kGroupWait, i, lanes, wait.a);
}

// cp.async.mbarrier.arrive: an arrive triggered when all prior cp.async of the thread are complete. Without
// .noinc the pending count first rises by one, so that the net effect on it is zero.
class ArriveWhenCopied final : public AsyncOp {
 public:
  ArriveWhenCopied(std::vector<std::shared_ptr<AsyncOp>> before, std::array<uint32_t, 32> barriers)
      : before_(std::move(before)), barriers_(barriers) {}
  bool may_reach(Milestone) const override {
    for (const auto& op : before_) {
      if (!op->reached(Milestone::writes_done)) return false;
    }
    return true;
  }
  void signal(Cluster& cluster) override {
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<uint32_t>(std::countr_zero(rest));
      cluster.mbarrier_op(*warp, 1u << l, Cluster::BarrierOp::arrive, barriers_[l], 1, this);
    }
  }
  std::string describe() const override { return "cp.async.mbarrier.arrive"; }

 private:
  std::vector<std::shared_ptr<AsyncOp>> before_;
  std::array<uint32_t, 32> barriers_;
};

// s[1] address; imm offset; aux bit 0: 64-bit base, bit 1: generic, bit 2: noinc.
Flow run_arrive(Warp& w, const Inst& i, uint32_t lanes) {
  const Addresses a = lane_addresses(w, i.s[1], i.aux & 1, i.imm);
  std::array<uint32_t, 32> barriers{};
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<uint32_t>(std::countr_zero(rest));
    barriers[l] = static_cast<uint32_t>((i.aux & 2) ? a.lane[l] - kSharedWindow : a.lane[l]);
    if (i.aux & 4) w.cluster().mbarrier(w, 1u << l, barriers[l]);
    else w.cluster().mbarrier_op(w, 1u << l, Cluster::BarrierOp::increase_pending, barriers[l], 1);
  }
  w.cluster().issue(std::make_shared<ArriveWhenCopied>(w.cp_async.outstanding(lanes), barriers),
                    cp_async_engine(w), w, lanes);
  return Flow::next;
}

void decode_copy(Decoding& d) {
  CopySpec s;
  d.take_one_of({"ca", "cg"});
  d.take_one_of({"shared", "shared::cta"});
  d.take("global");
  const bool cached = d.take("L2::cache_hint");
  d.take_one_of({"L2::64B", "L2::128B", "L2::256B"});
  const auto to = d.address(0), from = d.address(1);
  const auto* size = d.operand(2).as<ptx::Immediate>();
  if (!size) d.unsupported("a copy size that is no constant");
  s.size = static_cast<uint32_t>(size->bits);
  s.target_wide = to.wide;
  s.source = from.base;
  s.source_wide = from.wide;
  s.source_offset = from.offset;
  d.inst.s[0] = to.base;
  d.inst.imm = to.offset;
  const size_t extra = d.operand_count() - 3 - (cached ? 1 : 0);
  if (extra > 0) {
    const ptx::Operand& o = d.operand(3);
    if (d.register_type(o) == ptx::Type::pred) {
      s.ignore = true;
      d.inst.s[2] = d.predicate(o);
      d.inst.aux = Decoding::negated(o) ? 2 : 0;
    } else {
      s.has_source_size = true;
      s.source_size = d.source(o, 4);
    }
  }
  d.inst.extra = d.keep(s);
  d.inst.run = &run_copy;
}

void decode_cp(Decoding& d) {
  if (d.ptx.has("bulk")) return decode_bulk(d);
  d.take("async");
  if (d.take("commit_group")) {
    d.inst.run = &run_commit;
  } else if (d.take("wait_all")) {
    d.inst.imm = -1;
    d.inst.run = &run_wait;
  } else if (d.take("wait_group")) {
    const auto* n = d.operand(0).as<ptx::Immediate>();
    if (!n) d.unsupported("a group count that is no constant");
    d.inst.imm = static_cast<int64_t>(n->bits);
    d.inst.run = &run_wait;
  } else if (d.take("mbarrier")) {
    d.take("arrive");
    const bool noinc = d.take("noinc");
    const bool shared = !d.take_one_of({"shared", "shared::cta"}).empty();
    d.take_type();
    const auto a = d.address(0);
    d.inst.s[1] = a.base;
    d.inst.imm = a.offset;
    d.inst.aux =
        (a.wide ? 1u : 0u) | (shared || a.variable == ptx::Space::shared ? 0u : 2u) | (noinc ? 4u : 0u);
    d.inst.run = &run_arrive;
  } else {
    decode_copy(d);
  }
}

}  // namespace

void register_cp_async(Registry& r) { r.add("cp", &decode_cp); }

}  // namespace tw::sim
