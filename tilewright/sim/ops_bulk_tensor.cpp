#include <bit>
#include <cstring>
#include <memory>

#include "tilewright/base/math.h"
#include "tilewright/sim/atomic_op.h"
#include "tilewright/sim/bulk.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/tensor_box.h"

// PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor"; tile mode.
namespace tw::sim {

namespace {

using ptx::Type;

constexpr uint32_t kSharedAlign =
    128;  // CUDA Programming Guide, "Multi-dimensional TMA alignment requirements"

// The tensor maps that a cluster has used, decoded.
class TensorMaps {
 public:
  // nullptr: the bytes are no tensor map.
  const TensorMapSpec* find(const std::byte* object) {
    for (const auto& entry : entries_) {
      if (std::memcmp(entry->object.data(), object, kTensorMapBytes) == 0) return &entry->spec;
    }
    auto entry = std::make_unique<Entry>();
    std::memcpy(entry->object.data(), object, kTensorMapBytes);
    const auto spec = decode(std::span<const std::byte, kTensorMapBytes>(entry->object));
    if (!spec) return nullptr;
    entry->spec = *spec;
    entries_.push_back(std::move(entry));
    return &entries_.back()->spec;
  }

 private:
  struct Entry {
    TensorMapObject object;
    TensorMapSpec spec;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
};

// A box and the global memory of the part of it that lies inside the tensor.
struct BoxInMemory {
  TensorBox box;
  GlobalRange range;  // from box.low() to box.high()

  GlobalRange row(uint64_t address) const {
    return {range.allocation, address - range.allocation->address, box.row_inside()};
  }
};

// Tells the observer, if there is one, of a box's rows in global memory; those of one pitch together.
void tell_rows(const Cluster& cluster, const AsyncOp& op, AccessKind kind, const TensorBox& box) {
  if (!cluster.observer()) return;
  uint64_t first = 0, last = 0, pitch = 0;
  uint32_t rows = 0;
  const auto tell = [&] {
    if (rows) cluster.touches(op, kind, first, box.row_inside(), rows, pitch);
  };
  box.for_rows([&](uint32_t, uint64_t address) {
    if (rows == 1 && address > first) pitch = address - first;
    if (rows == 0 || address != last + pitch) {
      tell();
      first = address;
      rows = 0;
      pitch = 0;
    }
    last = address;
    ++rows;
  });
  tell();
}

bool is_tf32(TensorMapSpec::Type t) {
  return t == TensorMapSpec::Type::tf32 || t == TensorMapSpec::Type::tf32_ftz;
}

// Single precision to tf32, as a load of type tf32 does it: to nearest even, subnormals too, every NaN to the
// same (conformance cases load_values_*). With and without ftz.
uint32_t rounded_to_tf32(uint32_t bits) {
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFFE000;
  return (bits + 0xFFF + (bits >> 13 & 1)) & ~uint32_t{0x1FFF};
}

// What fills elements outside the tensor where the map asks for NaN: these 16 bits, once, twice or four times
// an element, also in tensors of tf32 (conformance cases nan_fill_*).
constexpr uint16_t kNanFill = 0x7FF7;

class TensorLoad final : public SignallingOp {
 public:
  TensorLoad(const BoxInMemory& from, Destinations to, const TensorMapSpec& map)
      : SignallingOp(std::move(to), from.box.bytes()),
        from_(from),
        fill_(map.nan_fill ? kNanFill : uint16_t{0}),
        to_tf32_(is_tf32(map.type)),
        data_(std::make_unique_for_overwrite<std::byte[]>(from.box.footprint())) {}
  void read(Cluster& cluster) override {
    tell_rows(cluster, *this, AccessKind::read, from_.box);
    if (from_.range.allocation && !from_.range.allocation->all_written())
      from_.box.for_rows(
          [&](uint32_t, uint64_t address) { require_written(*warp, lanes, from_.row(address)); });
    const std::span<std::byte> box(data_.get(), from_.box.footprint());
    from_.box.load(box, from_.range.allocation ? from_.range.data() : nullptr, fill_);
    if (to_tf32_)
      from_.box.for_pieces(
          [&](uint32_t place, uint64_t, uint32_t bytes) { round_to_tf32(box.subspan(place, bytes)); });
  }
  void write(Cluster&) override {
    from_.box.for_taken([&](uint32_t place, uint32_t bytes) { deliver(data_.get(), place, bytes); });
  }
  std::string describe() const override {
    return tw::format("cp.async.bulk.tensor, a box of {} bytes", bytes_);
  }

 private:
  static void round_to_tf32(std::span<std::byte> piece) {
    for (size_t at = 0; at < piece.size(); at += 4) {
      uint32_t bits;
      std::memcpy(&bits, &piece[at], 4);
      bits = rounded_to_tf32(bits);
      std::memcpy(&piece[at], &bits, 4);
    }
  }
  BoxInMemory from_;
  uint16_t fill_;
  bool to_tf32_;
  std::unique_ptr<std::byte[]> data_;
};

struct Reduction {
  AtomicOp op;
  Type type;
};

// Stores and reductions write whole 16 bytes: where a row of the tensor ends inside of 16, also what follows
// it there (conformance cases store_clipped_odd, reduce_clipped).
TensorMapSpec in_whole_pieces(TensorMapSpec map) {
  map.dims[0] = round_up<uint64_t>(map.dims[0], 16 / map.element_bytes());
  return map;
}

class TensorStore final : public AsyncOp {
 public:
  // `to`: what is written; `inside`: the part of it that belongs to the tensor.
  TensorStore(const SharedRange& from, const BoxInMemory& to, const BoxInMemory& inside,
              std::optional<Reduction> reduction)
      : from_(from),
        to_(to),
        inside_(inside),
        reduction_(reduction),
        data_(std::make_unique_for_overwrite<std::byte[]>(from.bytes)) {}
  void read(Cluster& cluster) override {
    cluster.touches(*this, AccessKind::read, *from_.cta, from_.offset, from_.bytes);
    if (!from_.cta->shared.written().written(from_.offset, from_.bytes)) {
      inside_.box.for_pieces([&](uint32_t place, uint64_t, uint32_t bytes) {
        require_written(*warp, lanes, SharedRange{from_.cta, from_.offset + place, bytes});
      });
    }
    std::memcpy(data_.get(), from_.data(), from_.bytes);
  }
  void write(Cluster& cluster) override {
    if (!to_.range.allocation) return;
    tell_rows(cluster, *this, reduction_ ? AccessKind::atomic : AccessKind::write, to_.box);
    if (reduction_) return reduce();
    to_.box.store({data_.get(), from_.bytes}, to_.range.data());
    if (!to_.range.allocation->all_written()) {
      to_.box.for_rows([&](uint32_t, uint64_t address) {
        const GlobalRange row = to_.row(address);
        row.allocation->mark(row.offset, row.bytes);
      });
    }
  }
  // Reductions of several clusters on the same elements follow each other in a fixed order.
  bool needs_order(Milestone next) const override { return reduction_ && next == Milestone::writes_done; }
  std::string describe() const override {
    return tw::format("cp.{}async.bulk.tensor, a box of {} bytes", reduction_ ? "reduce." : "", from_.bytes);
  }

 private:
  void reduce() {
    inside_.box.for_rows(
        [&](uint32_t, uint64_t address) { require_written(*warp, lanes, inside_.row(address)); });
    const auto size = static_cast<uint32_t>(ptx::bytes(reduction_->type));
    to_.box.for_pieces([&](uint32_t place, uint64_t address, uint32_t bytes) {
      std::byte* to = to_.range.data() + (address - to_.box.low());
      for (uint32_t at = 0; at < bytes; at += size) {
        uint64_t old = 0, operand = 0;
        std::memcpy(&old, to + at, size);
        std::memcpy(&operand, data_.get() + place + at, size);
        const uint64_t fresh = atomic_result(reduction_->op, reduction_->type, old, operand, false);
        std::memcpy(to + at, &fresh, size);
      }
    });
  }
  SharedRange from_;
  BoxInMemory to_, inside_;
  std::optional<Reduction> reduction_;
  std::unique_ptr<std::byte[]> data_;
};

enum class TensorOp : uint8_t { load, store, reduce, prefetch };

struct TensorSpec {
  TensorOp what = TensorOp::load;
  uint32_t rank = 1;
  AddressRow map, shared, mbarrier;
  Slot coordinates[kMaxTensorRank];
  bool own_destination = false;  // .shared::cta
  bool multicast = false, pair = false;
  Slot cta_mask;
  AtomicOp op = AtomicOp::add;
};

const TensorMapSpec& tensor_map(Warp& w, const TensorSpec& s, uint32_t lane) {
  const uint32_t one = 1u << lane;
  Addresses a{};
  a.lane[lane] = s.map.of(w, lane);
  LanePointers p;
  if (global_lanes(AddressSpace::generic, one, a))
    resolve_for_later(w, one, AddressSpace::global, a, kTensorMapBytes, kTensorMapAlign, AccessKind::read, p);
  else resolve(w, one, AddressSpace::generic, a, kTensorMapBytes, kTensorMapAlign, AccessKind::read, p);
  auto& maps = w.cluster().extensions.get<TensorMaps>([] { return std::make_unique<TensorMaps>(); });
  const TensorMapSpec* map = maps.find(p.lane[lane]);
  if (!map) w.fault(one, "the 128 bytes at {:#x} are no tensor map", a.lane[lane]);
  if (const std::string broken = broken_rule(*map); !broken.empty()) w.fault(one, "tensor map: {}", broken);
  if (map->rank != s.rank)
    w.fault(one, "the instruction takes a tensor of {} dimensions, its tensor map has {}", s.rank, map->rank);
  if (map->interleave != TensorMapSpec::Interleave::none)
    w.raise(ErrorKind::not_modelled, one, "tensor maps with an interleaved layout");
  return *map;
}

// Stated by the PTX ISA for sub-byte types only ("Restriction on Tensor Copy instructions"); a GPU takes any
// other coordinate of a copy for an illegal instruction, wherever the box lies (conformance cases fault_*).
void require_whole_pieces(Warp& w, uint32_t lanes, const TensorMapSpec& map, const Coordinates& at) {
  const int64_t bytes = int64_t{at[0]} * map.element_bytes();
  if (bytes % 16 != 0)
    w.fault(
        lanes,
        "coordinate 0 is {}, with elements of {} {} bytes: the innermost coordinate of a tensor copy must "
        "be a multiple of 16 bytes",
        at[0], name(map.type), bytes);
}

BoxInMemory box_at(Warp& w, uint32_t lanes, const TensorMapSpec& map, const Coordinates& at,
                   uint32_t shared_address) {
  BoxInMemory box{TensorBox(map, at, shared_address), {}};
  if (!box.box.outside())
    box.range = global_range(w, lanes, box.box.low(), box.box.high() - box.box.low(), 1);
  return box;
}

// The engine reads the tensor map when it carries the operation out.
void issue(Warp& w, const TensorSpec& s, uint32_t lane, std::shared_ptr<AsyncOp> op) {
  const AsyncOp& issued = *op;
  w.cluster().issue(std::move(op), copy_engine(w), w, 1u << lane);
  Addresses a{};
  a.lane[lane] = s.map.of(w, lane);
  if (!w.cluster().observer() || !global_lanes(AddressSpace::generic, 1u << lane, a)) return;
  AsyncAccess access{
      .kind = AccessKind::read, .space = MemorySpace::global, .cta = nullptr, .bytes = kTensorMapBytes};
  access.address = a.lane[lane];
  access.tensor_map = true;
  w.cluster().observer()->async_access(issued, access);
}

void issue_load(Warp& w, const TensorSpec& s, const TensorMapSpec& map, const Coordinates& at,
                uint32_t lane) {
  const uint32_t one = 1u << lane;
  const uint64_t target = s.shared.of(w, lane), barrier = s.mbarrier.of(w, lane);
  const BoxInMemory from = box_at(w, one, map, at, static_cast<uint32_t>(target));
  const uint32_t bytes = from.box.footprint();
  const SharedRange to = s.own_destination
                             ? own_shared_range(w, one, target, bytes, kSharedAlign, "destination")
                             : shared_range(w, one, target, bytes, kSharedAlign);
  const SharedRange told = shared_range(w, one, barrier, 8, 8);
  const uint32_t distance = told.cta->rank ^ to.cta->rank;
  Destinations all{{to}, {static_cast<uint32_t>(barrier)}};
  if (s.multicast) {
    all = multicast(w, one, to, static_cast<uint32_t>(barrier), w.row<uint32_t>(s.cta_mask)[lane] & 0xFFFF,
                    s.pair);
  } else if (distance > (s.pair ? 1u : 0u)) {
    w.fault(one, "the mbarrier lies in CTA rank {} and the destination in {}; with .cta_group::{} {}",
            told.cta->rank, to.cta->rank, s.pair ? 2 : 1,
            s.pair ? "they must lie in one pair" : "they must lie in one CTA");
  }
  for (const SharedRange& range : all.ranges)
    from.box.for_taken([&](uint32_t place, uint32_t taken) {
      require_no_mbarrier(w, one, {range.cta, range.offset + place, taken});
    });
  issue(w, s, lane, std::make_shared<TensorLoad>(from, std::move(all), map));
}

// PTX ISA, "cp.reduce.async.bulk.tensor", table of operations and element types.
std::optional<Type> reduced_type(AtomicOp op, TensorMapSpec::Type t) {
  using enum TensorMapSpec::Type;
  const bool integer = t == u32 || t == s32 || t == u64 || t == s64;
  switch (op) {
    case AtomicOp::inc:
    case AtomicOp::dec: return t == u32 ? std::optional(Type::u32) : std::nullopt;
    case AtomicOp::and_:
    case AtomicOp::or_:
    case AtomicOp::xor_:
      // The table says .b32 and .b64; a GPU takes s64 for an illegal instruction, s32 not.
      if (!integer || t == s64) return std::nullopt;
      return t == u64 ? Type::b64 : Type::b32;
    default: break;
  }
  const bool add = op == AtomicOp::add;
  switch (t) {
    case u32: return Type::u32;
    case s32: return Type::s32;
    case u64: return Type::u64;
    case s64: return add ? std::nullopt : std::optional(Type::s64);
    case f32: return add ? std::optional(Type::f32) : std::nullopt;
    case f16: return Type::f16;
    case bf16: return Type::bf16;
    default: return std::nullopt;
  }
}

void issue_store(Warp& w, const TensorSpec& s, const TensorMapSpec& map, const Coordinates& at,
                 uint32_t lane) {
  const uint32_t one = 1u << lane;
  std::optional<Reduction> reduction;
  if (s.what == TensorOp::reduce) {
    if (map.type == TensorMapSpec::Type::f32_ftz || is_tf32(map.type))
      w.raise(ErrorKind::not_modelled, one, tw::format("tensor reductions of type {}", name(map.type)));
    const auto type = reduced_type(s.op, map.type);
    if (!type) w.fault(one, "this reduction does not exist for tensors of type {}", name(map.type));
    reduction = Reduction{s.op, *type};
  }
  for (uint32_t i = 0; i < map.rank; ++i) {
    // PTX ISA, "Restriction on Tensor Copy instructions".
    if (at[i] < 0) w.fault(one, "coordinate {} of a tensor store is {}; it must not be negative", i, at[i]);
  }
  const uint64_t source = s.shared.of(w, lane);
  const BoxInMemory inside = box_at(w, one, map, at, static_cast<uint32_t>(source));
  const BoxInMemory to = map.dims[0] * map.element_bytes() % 16 == 0
                             ? inside
                             : box_at(w, one, in_whole_pieces(map), at, static_cast<uint32_t>(source));
  const SharedRange from = own_shared_range(w, one, source, inside.box.footprint(), kSharedAlign, "source");
  auto op = std::make_shared<TensorStore>(from, to, inside, reduction);
  issue(w, s, lane, op);
  w.bulk.add(std::move(op));
}

Flow run_tensor(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const TensorSpec*>(i.extra);
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const TensorMapSpec& map = tensor_map(w, s, lane);
    Coordinates at{};
    for (uint32_t n = 0; n < s.rank; ++n) at[n] = w.row<int32_t>(s.coordinates[n])[lane];
    require_whole_pieces(w, 1u << lane, map, at);
    if (s.what == TensorOp::load) issue_load(w, s, map, at, lane);
    else if (s.what == TensorOp::prefetch) box_at(w, 1u << lane, map, at, 0);
    else issue_store(w, s, map, at, lane);
  }
  return Flow::next;
}

// ---- decoding ----

void decode_tensor_operand(Decoding& d, TensorSpec& s, size_t operand) {
  const auto* tensor = d.operand(operand).as<ptx::TensorAddress>();
  if (!tensor) d.unsupported("a tensor operand of this form");
  const auto map = d.address(tensor->map.front());
  // ptxas says "State space mismatch between instruction and address" of other variables.
  if (map.variable != ptx::Space::none && map.variable != ptx::Space::global)
    throw Error(
        ErrorKind::user, d.ptx.loc,
        tw::format("{} takes the generic address of a tensor map, in a register (cvta), not a .{} variable",
                   d.ptx.text(), ptx::name(map.variable)));
  s.map = {map.base, map.wide, map.offset};
  if (tensor->coordinates.size() != s.rank)
    throw Error(
        ErrorKind::user, d.ptx.loc,
        tw::format("{} has {} coordinates, it needs {}", d.ptx.text(), tensor->coordinates.size(), s.rank));
  for (size_t i = 0; i < s.rank; ++i) s.coordinates[i] = d.source(tensor->coordinates[i], 4);
}

void take_mode(Decoding& d) {
  for (std::string_view mode :
       {"tile::gather4", "tile::scatter4", "im2col", "im2col::w", "im2col::w::128", "im2col_no_offs"}) {
    if (d.ptx.has(mode)) d.unsupported(tw::format("the mode .{}", mode));
  }
  d.take("tile");
}

}  // namespace

void decode_bulk_tensor(Decoding& d, bool reduce) {
  TensorSpec s;
  d.take("tensor");
  const std::string_view dim = d.take_one_of({"1d", "2d", "3d", "4d", "5d"});
  if (dim.empty()) d.unsupported("a tensor of this rank");
  s.rank = static_cast<uint32_t>(dim[0] - '0');
  take_mode(d);
  const bool hint = d.take("L2::cache_hint");
  const bool prefetch = d.take("prefetch");
  d.take("L2");
  // The first space is the destination.
  const std::string_view to = d.take_one_of({"global", "shared::cta", "shared::cluster"});
  d.take_one_of({"global", "shared::cta", "shared::cluster"});
  size_t next = 0;
  if (prefetch) {
    s.what = TensorOp::prefetch;
    decode_tensor_operand(d, s, next++);
  } else if (to == "global") {
    s.what = reduce ? TensorOp::reduce : TensorOp::store;
    d.take("bulk_group");
    decode_tensor_operand(d, s, next++);
    s.shared = address_row(d, next++);
    if (reduce) {
      s.op = take_atomic_op(d);
      d.mark_ordered();
    }
  } else {
    s.own_destination = to == "shared::cta";
    d.take("mbarrier::complete_tx::bytes");
    s.pair = d.take_one_of({"cta_group::1", "cta_group::2"}) == "cta_group::2";
    s.shared = address_row(d, next++);
    decode_tensor_operand(d, s, next++);
    s.mbarrier = address_row(d, next++);
    if (d.take("multicast::cluster")) {
      s.multicast = true;
      s.cta_mask = d.source(next++, 2);
    }
  }
  if (hint) d.source(next++, 8);
  d.inst.extra = d.keep(s);
  d.inst.run = &run_tensor;
}

}  // namespace tw::sim
