#include <bit>
#include <cstring>

#include "tilewright/sim/atomic_op.h"
#include "tilewright/sim/bulk.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "cp.async.bulk.prefetch", "cp.async.bulk.commit_group",
// "cp.async.bulk.wait_group".
namespace tw::sim {

namespace {

using ptx::Type;

constexpr uint32_t kAlign = 16;  // of size, source and destination

// How destination bytes are made of source bytes.
struct Combine {
  bool reduces = false;
  AtomicOp op = AtomicOp::add;
  Type type = Type::none;
  uint32_t byte_mask = 0xFFFF;  // .cp_mask: which bytes of each 16 are copied

  bool plain() const { return !reduces && byte_mask == 0xFFFF; }
};

void combine(const Combine& how, std::byte* to, const std::byte* from, size_t bytes) {
  if (how.plain()) {
    std::memcpy(to, from, bytes);
  } else if (!how.reduces) {
    for (size_t i = 0; i < bytes; ++i) {
      if (how.byte_mask >> (i % 16) & 1) to[i] = from[i];
    }
  } else {
    const auto size = static_cast<size_t>(ptx::bytes(how.type));
    for (size_t i = 0; i < bytes; i += size) {
      uint64_t old = 0, operand = 0;
      std::memcpy(&old, to + i, size);
      std::memcpy(&operand, from + i, size);
      const uint64_t fresh = atomic_result(how.op, how.type, old, operand, false);
      std::memcpy(to + i, &fresh, size);
    }
  }
}

// Global to shared memory of one or several CTAs.
class BulkLoad final : public SignallingOp {
 public:
  BulkLoad(const GlobalRange& from, Destinations to)
      : SignallingOp(std::move(to), static_cast<uint32_t>(from.bytes)), from_(from), data_(from.bytes) {}
  void read(Cluster& cluster) override {
    require_written(*warp, lanes, from_);
    std::memcpy(data_.data(), from_.data(), data_.size());
    cluster.touches(*this, AccessKind::read, from_.address(), from_.bytes);
  }
  void write(Cluster&) override { deliver(data_.data()); }
  std::string describe() const override {
    return tw::format("cp.async.bulk, {} bytes from global memory", bytes_);
  }

 private:
  GlobalRange from_;
  std::vector<std::byte> data_;
};

// Shared memory of the CTA to that of another one of its cluster.
class ClusterCopy final : public SignallingOp {
 public:
  ClusterCopy(const SharedRange& from, Destinations to, const Combine& how)
      : SignallingOp(std::move(to), from.bytes), from_(from), how_(how), data_(from.bytes) {}
  void read(Cluster& cluster) override {
    require_written(*warp, lanes, from_);
    std::memcpy(data_.data(), from_.data(), data_.size());
    cluster.touches(*this, AccessKind::read, *from_.cta, from_.offset, from_.bytes);
  }
  void write(Cluster& cluster) override {
    const SharedRange& to = to_.ranges.front();
    require_running(*this, *to.cta);
    if (how_.reduces) require_written(*warp, lanes, to);
    combine(how_, to.data(), data_.data(), data_.size());
    to.cta->shared.written().mark(to.offset, to.bytes);
    cluster.touches(*this, AccessKind::write, *to.cta, to.offset, to.bytes);
  }
  std::string describe() const override {
    return tw::format("{}, {} bytes to CTA rank {}", how_.reduces ? "cp.reduce.async.bulk" : "cp.async.bulk",
                      bytes_, to_.ranges.front().cta->rank);
  }

 private:
  SharedRange from_;
  Combine how_;
  std::vector<std::byte> data_;
};

// Shared to global memory; belongs to a bulk group.
class BulkStore final : public AsyncOp {
 public:
  BulkStore(const SharedRange& from, const GlobalRange& to, const Combine& how)
      : from_(from), to_(to), how_(how), data_(from.bytes) {}
  void read(Cluster& cluster) override {
    cluster.touches(*this, AccessKind::read, *from_.cta, from_.offset, from_.bytes);
    if (how_.byte_mask == 0xFFFF) {
      require_written(*warp, lanes, from_);
    } else {
      each_copied_byte([&](uint32_t i) {
        require_written(*warp, lanes, SharedRange{from_.cta, from_.offset + i, 1});
      });
    }
    std::memcpy(data_.data(), from_.data(), data_.size());
  }
  void write(Cluster& cluster) override {
    if (how_.reduces) require_written(*warp, lanes, to_);
    combine(how_, to_.data(), data_.data(), data_.size());
    const AccessKind kind = how_.reduces ? AccessKind::atomic : AccessKind::write;
    if (how_.byte_mask == 0xFFFF) {
      to_.allocation->mark(to_.offset, to_.bytes);
      cluster.touches(*this, kind, to_.address(), to_.bytes);
    } else {
      each_copied_byte([&](uint32_t i) {
        to_.allocation->mark(to_.offset + i, 1);
        cluster.touches(*this, kind, to_.address() + i, 1);
      });
    }
  }
  // Reductions of several clusters on the same bytes follow each other in a fixed order.
  bool needs_order(Milestone next) const override { return how_.reduces && next == Milestone::writes_done; }
  std::string describe() const override {
    return tw::format("{}, {} bytes to global memory",
                      how_.reduces ? "cp.reduce.async.bulk" : "cp.async.bulk", from_.bytes);
  }

 private:
  template <class F>
  void each_copied_byte(F f) const {
    for (uint32_t i = 0; i < from_.bytes; ++i) {
      if (how_.byte_mask >> (i % 16) & 1) f(i);
    }
  }
  SharedRange from_;
  GlobalRange to_;
  Combine how_;
  std::vector<std::byte> data_;
};

enum class Direction : uint8_t { global_to_shared, shared_to_cluster, shared_to_global, prefetch };

struct BulkSpec {
  Direction direction = Direction::global_to_shared;
  bool own_destination = false;  // .shared::cta
  bool multicast = false, masked = false;
  Combine how;
  AddressRow to, from, mbarrier;
  Slot size, cta_mask, byte_mask;
};

uint32_t checked_size(const Warp& w, uint32_t lane, uint32_t bytes) {
  if (bytes % kAlign != 0)
    w.fault(1u << lane, "bulk copy of {} bytes; the size must be a multiple of 16", bytes);
  return bytes;
}

void issue_load(Warp& w, const BulkSpec& s, uint32_t lane, uint32_t bytes) {
  const uint32_t one = 1u << lane;
  const GlobalRange from = global_range(w, one, s.from.of(w, lane), bytes, kAlign);
  const uint64_t target = s.to.of(w, lane), barrier = s.mbarrier.of(w, lane);
  const SharedRange to = s.own_destination ? own_shared_range(w, one, target, bytes, kAlign, "destination")
                                           : shared_range(w, one, target, bytes, kAlign);
  const SharedRange told = shared_range(w, one, barrier, 8, 8);
  Destinations all{{to}, {static_cast<uint32_t>(barrier)}};
  if (s.multicast) {
    all = multicast(w, one, to, static_cast<uint32_t>(barrier), w.row<uint32_t>(s.cta_mask)[lane] & 0xFFFF,
                    false);
  } else if (told.cta != to.cta) {
    w.raise(ErrorKind::not_modelled, one,
            "a bulk copy whose mbarrier lies in another CTA than its destination");
  }
  for (const SharedRange& range : all.ranges) require_no_mbarrier(w, one, range);
  w.cluster().issue(std::make_shared<BulkLoad>(from, std::move(all)), copy_engine(w), w, one);
}

void issue_cluster_copy(Warp& w, const BulkSpec& s, uint32_t lane, uint32_t bytes) {
  const uint32_t one = 1u << lane;
  const SharedRange from = own_shared_range(w, one, s.from.of(w, lane), bytes, kAlign, "source");
  const SharedRange to = shared_range(w, one, s.to.of(w, lane), bytes, kAlign);
  const uint64_t barrier = s.mbarrier.of(w, lane);
  const SharedRange told = shared_range(w, one, barrier, 8, 8);
  if (to.cta == &w.cta())
    w.fault(
        one,
        "the destination lies in the executing CTA, rank {}; a copy to .shared::cluster goes to another CTA",
        to.cta->rank);
  if (told.cta != to.cta)
    w.raise(ErrorKind::not_modelled, one,
            "a bulk copy whose mbarrier lies in another CTA than its destination");
  require_no_mbarrier(w, one, to);
  Destinations all{{to}, {static_cast<uint32_t>(barrier)}};
  w.cluster().issue(std::make_shared<ClusterCopy>(from, std::move(all), s.how), copy_engine(w), w, one);
}

void issue_store(Warp& w, const BulkSpec& s, uint32_t lane, uint32_t bytes) {
  const uint32_t one = 1u << lane;
  const SharedRange from = own_shared_range(w, one, s.from.of(w, lane), bytes, kAlign, "source");
  const GlobalRange to = global_range(w, one, s.to.of(w, lane), bytes, kAlign);
  Combine how = s.how;
  if (s.masked) how.byte_mask = w.row<uint32_t>(s.byte_mask)[lane] & 0xFFFF;
  auto op = std::make_shared<BulkStore>(from, to, how);
  w.cluster().issue(op, copy_engine(w), w, one);
  w.bulk.add(std::move(op));
}

Flow run_bulk(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const BulkSpec*>(i.extra);
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint32_t bytes = checked_size(w, lane, w.row<uint32_t>(s.size)[lane]);
    switch (s.direction) {
      case Direction::global_to_shared: issue_load(w, s, lane, bytes); break;
      case Direction::shared_to_cluster: issue_cluster_copy(w, s, lane, bytes); break;
      case Direction::shared_to_global: issue_store(w, s, lane, bytes); break;
      case Direction::prefetch: global_range(w, 1u << lane, s.from.of(w, lane), bytes, kAlign); break;
    }
  }
  return Flow::next;
}

// ---- groups ----

Flow run_commit(Warp& w, const Inst&, uint32_t lanes) {
  w.bulk.commit(lanes);
  return Flow::next;
}

// Wait::a: how many of the newest groups may be unfinished; Wait::b: the milestone that the others must have.
bool group_ready(Warp& w, const Wait& wait) {
  return w.bulk.complete(wait.lanes, static_cast<uint32_t>(wait.a), static_cast<Milestone>(wait.b));
}
std::string describe_group(const Warp& w, const Wait& wait) {
  return tw::format("all but {} bulk groups, {} operations are in flight", wait.a,
                    w.bulk.outstanding(wait.lanes).size());
}
constexpr WaitKind kGroupWait{"bulk group", &group_ready, &describe_group, false};

// imm: groups; aux: the milestone.
Flow run_wait(Warp& w, const Inst& i, uint32_t lanes) {
  const Wait wait{&kGroupWait, lanes, static_cast<uint64_t>(i.imm), i.aux, &i};
  if (group_ready(w, wait)) return passed(w, lanes);
  return w.suspend(kGroupWait, i, lanes, wait.a, wait.b);
}

void decode_wait(Decoding& d) {
  const auto* n = d.operand(0).as<ptx::Immediate>();
  if (!n) d.unsupported("a group count that is no constant");
  d.inst.imm = static_cast<int64_t>(n->bits);
  d.inst.aux = static_cast<uint32_t>(d.take("read") ? Milestone::reads_done : Milestone::writes_done);
  d.inst.run = &run_wait;
}

// ---- decoding ----

bool integer_type(Type t, bool signed_too = true) {
  return t == Type::u32 || t == Type::u64 || (signed_too && (t == Type::s32 || t == Type::s64));
}

// PTX ISA, "cp.reduce.async.bulk", table of operations and element types.
bool reduction_exists(AtomicOp op, Type t, bool to_global) {
  switch (op) {
    case AtomicOp::add:
      return t == Type::u32 || t == Type::s32 || t == Type::u64 ||
             (to_global && (t == Type::f32 || t == Type::f64 || t == Type::f16 || t == Type::bf16));
    case AtomicOp::min:
    case AtomicOp::max:
      return t == Type::u32 || t == Type::s32 ||
             (to_global && (integer_type(t) || t == Type::f16 || t == Type::bf16));
    case AtomicOp::inc:
    case AtomicOp::dec: return t == Type::u32;
    default: return t == Type::b32 || (to_global && t == Type::b64);
  }
}

void decode_reduction(Decoding& d, BulkSpec& s) {
  s.how.reduces = true;
  s.how.op = take_atomic_op(d);
  d.take("noftz");
  s.how.type = d.take_type();
  const bool to_global = s.direction == Direction::shared_to_global;
  if (!reduction_exists(s.how.op, s.how.type, to_global)) d.unsupported("this operation on this type");
  if (to_global) d.mark_ordered();
}

Direction take_direction(Decoding& d, BulkSpec& s) {
  if (d.take("prefetch")) {
    d.take("L2");
    d.take("global");
    return Direction::prefetch;
  }
  // The first space is the destination.
  const std::string_view to = d.take_one_of({"global", "shared::cta", "shared::cluster"});
  const std::string_view from = d.take_one_of({"global", "shared::cta", "shared::cluster"});
  if (to == "global") return Direction::shared_to_global;
  s.own_destination = to == "shared::cta";
  return from == "global" ? Direction::global_to_shared : Direction::shared_to_cluster;
}

void decode_copy(Decoding& d, bool reduce) {
  BulkSpec s;
  s.direction = take_direction(d, s);
  const bool hint = d.take("L2::cache_hint");
  size_t next = 0;
  if (s.direction != Direction::prefetch) s.to = address_row(d, next++);
  s.from = address_row(d, next++);
  s.size = d.source(next++, 4);
  if (d.take("mbarrier::complete_tx::bytes")) s.mbarrier = address_row(d, next++);
  else d.take("bulk_group");
  if (d.take("multicast::cluster")) {
    s.multicast = true;
    s.cta_mask = d.source(next++, 2);
  }
  if (hint) d.source(next++, 8);
  if (d.take("cp_mask")) {
    s.masked = true;
    s.byte_mask = d.source(next++, 2);
  }
  if (reduce) decode_reduction(d, s);
  d.inst.extra = d.keep(s);
  d.inst.run = &run_bulk;
}

}  // namespace

void decode_bulk(Decoding& d) {
  const bool reduce = d.take("reduce");
  d.take("async");
  d.take("bulk");
  if (d.ptx.has("tensor")) return decode_bulk_tensor(d, reduce);
  if (d.take("commit_group")) {
    d.inst.run = &run_commit;
  } else if (d.take("wait_group")) {
    decode_wait(d);
  } else {
    decode_copy(d, reduce);
  }
}

}  // namespace tw::sim
