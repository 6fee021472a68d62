// tcgen05.mma, tcgen05.cp and tcgen05.commit.
//
// Order: "Pipelined tcgen05 Instructions" orders an mma after earlier ones of the same shape and accumulator
// and after earlier copies; everything else overtakes freely. A commit signals when the operations its thread
// issued before are done.
#include <bit>
#include <cstring>

#include "tilewright/sim/grid.h"
#include "tilewright/sim/ops_tcgen05.h"
#include "tilewright/sim/program.h"

namespace tw::sim {
namespace {

// --- mma ---

struct Mma {
  MmaKind kind = MmaKind::f16;
  bool a_in_tensor_memory = false;
  Slot d, a, b, descriptor, enable, lanes[4];
  int64_t d_offset = 0, a_offset = 0;
  bool masked = false;
  int scale_exponent = 0;
};

class MmaOp final : public AsyncOp {
 public:
  void read(Cluster&) override {
    located(*this, [&] {
      TensorMemory& tensor = state->memory;
      AccumulatorTile tile = tensor.accumulator(d, shape.m, shape.n, shape.d);
      if (product.accumulate) {
        if (auto cell = tensor.first_unwritten(tile, d.column)) {
          throw Error(
              ErrorKind::fault, {},
              tw::format(
                  "matrix D: {} is accumulated to but nothing has written it; set enable-input-d to false "
                  "for the first product",
                  state->name_of(cell->lane, cell->column)));
        }
      }
      if (a_in_tensor_memory) {
        tensor.read_operand(a_address, tile, rows_);
        product.a = {linear_operand(shape.a, shape.m), rows_.data()};
      } else {
        product.a = place_in_shared(state->cta, a, shape.a, shape.transpose_a, shape.m, shape.k, 'A');
        check_written(state->cta, product.a.geometry, 'A');
      }
      product.b = place_in_shared(state->cta, b, shape.b, shape.transpose_b, shape.n, shape.k, 'B');
      check_written(state->cta, product.b.geometry, 'B');
      product.k = shape.k;
      tensor.unit.append(tile, product);
      tile_ = tile;
    });
  }
  void write(Cluster&) override { state->memory.mark_written(tile_, d.column, product.disabled_lanes); }
  bool may_reach(Milestone next) const override {
    if (next != Milestone::reads_done) return true;
    for (const auto& op : state->copies.ops()) {
      if (op->sequence < sequence && !op->reached(Milestone::writes_done)) return false;
    }
    for (const auto& op : state->products.ops()) {
      if (op.get() == this) break;
      const auto& earlier = static_cast<const MmaOp&>(*op);
      bool same = earlier.d.column == d.column && earlier.d.lane == d.lane && earlier.shape.m == shape.m &&
                  earlier.shape.n == shape.n;
      if (same && !op->reached(Milestone::writes_done)) return false;
    }
    return true;
  }
  std::string describe() const override {
    return tw::format("tcgen05.mma {} m{}n{}k{}", name(kind), shape.m, shape.n, shape.k);
  }

  Tcgen05* state = nullptr;
  MmaKind kind = MmaKind::f16;
  InstructionDescriptor shape;
  TensorAddress d, a_address;
  SharedMatrix a, b;
  bool a_in_tensor_memory = false;
  MatrixProduct product;

 private:
  AccumulatorTile tile_;
  alignas(64) std::array<std::byte, 128 * 32> rows_;
};

void issue(Tcgen05& t, Warp& w, uint32_t lane, std::shared_ptr<AsyncOp> op, std::string_view engine) {
  IssuedOps& mine = t.tensor_core[w.index() * kLanes + lane];
  mine.prune();
  mine.add(op);
  Cluster& c = w.cluster();
  c.issue(std::move(op), c.engine(engine, Engine::Order::any, static_cast<int>(w.cta().rank)), w, 1u << lane);
}

void issue_mma(Warp& w, const Mma& m, uint32_t lane) {
  Tcgen05& t = Tcgen05::of(w.cta());
  auto op = std::make_shared<MmaOp>();
  op->state = &t;
  op->kind = m.kind;
  op->d = TensorAddress::decode(tensor_address(w, m.d, m.d_offset, lane));
  op->a_in_tensor_memory = m.a_in_tensor_memory;
  located(w, 1u << lane, [&] {
    op->shape = decode_instruction_descriptor(m.kind, w.row<uint32_t>(m.descriptor)[lane], 1, false);
    op->b = decode_tcgen05_descriptor(w.row<uint64_t>(m.b)[lane]);
    check_operand_swizzle('B', op->shape.b, op->shape.transpose_b, op->b.swizzle);
    if (m.a_in_tensor_memory) {
      op->a_address = TensorAddress::decode(tensor_address(w, m.a, m.a_offset, lane));
      if (op->shape.transpose_a)
        w.fault(1u << lane, "matrix A in tensor memory cannot be transposed (Table 53)");
      if (bits(op->shape.a) < 8)
        not_modelled({}, "{} elements of matrix A in tensor memory", name(op->shape.a));
    } else {
      op->a = decode_tcgen05_descriptor(w.row<uint64_t>(m.a)[lane]);
      check_operand_swizzle('A', op->shape.a, op->shape.transpose_a, op->a.swizzle);
    }
    t.memory.accumulator(op->d, op->shape.m, op->shape.n, op->shape.d);
  });
  MatrixProduct& p = op->product;
  p.negate = op->shape.negate_a != op->shape.negate_b;
  p.saturate = op->shape.saturate;
  p.accumulate = (w.mask(m.enable) >> lane & 1) != 0;
  p.scale_exponent = p.accumulate ? m.scale_exponent : 0;
  for (size_t i = 0; m.masked && i < 4; ++i) p.disabled_lanes[i] = w.row<uint32_t>(m.lanes[i])[lane];
  t.products.prune();
  t.products.add(op);
  issue(t, w, lane, std::move(op), "tcgen05.mma");
}

// Single thread semantics: each active thread issues its own.
Flow run_mma(Warp& w, const Inst& i, uint32_t lanes) {
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    issue_mma(w, *static_cast<const Mma*>(i.extra), static_cast<uint32_t>(std::countr_zero(rest)));
  }
  return Flow::next;
}

// --- cp ---

struct Copy {
  CopyShape shape = CopyShape::c128x256b;
  Slot address, descriptor;
  int64_t offset = 0;
};

class CopyOp final : public AsyncOp {
 public:
  void read(Cluster&) override {
    located(*this, [&] {
      int rows = TensorMemory::copy_rows(shape), words = TensorMemory::copy_columns(shape);
      MatrixOperand o = place_in_shared(state->cta, source, DType::u8, false, rows, words * 4, 'A');
      check_written(state->cta, o.geometry, 'A');
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < words / 4; ++c) {
          std::memcpy(bytes_.data() + r * 32 + c * 16,
                      o.memory + o.geometry.address(static_cast<uint32_t>(r), static_cast<uint32_t>(c)), 16);
        }
      }
    });
  }
  void write(Cluster&) override {
    located(*this, [&] {
      state->memory.copy(base, shape, linear_operand(DType::u8, TensorMemory::copy_rows(shape)),
                         bytes_.data());
    });
  }
  std::string describe() const override { return "tcgen05.cp"; }

  Tcgen05* state = nullptr;
  CopyShape shape = CopyShape::c128x256b;
  TensorAddress base;
  SharedMatrix source;

 private:
  std::array<std::byte, 128 * 32> bytes_;
};

Flow run_cp(Warp& w, const Inst& i, uint32_t lanes) {
  const Copy& c = *static_cast<const Copy*>(i.extra);
  Tcgen05& t = Tcgen05::of(w.cta());
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    auto op = std::make_shared<CopyOp>();
    op->state = &t;
    op->shape = c.shape;
    op->base = TensorAddress::decode(tensor_address(w, c.address, c.offset, lane));
    located(w, 1u << lane,
            [&] { op->source = decode_tcgen05_descriptor(w.row<uint64_t>(c.descriptor)[lane]); });
    t.copies.prune();
    t.copies.add(op);
    issue(t, w, lane, std::move(op), "tcgen05.cp");
  }
  return Flow::next;
}

// --- commit ---

struct Commit {
  Slot address, mask;
  int64_t offset = 0;
  bool wide = false, shared = false, multicast = false;
};

class CommitOp final : public AsyncOp {
 public:
  bool may_reach(Milestone next) const override { return next != Milestone::writes_done || tracked.done(); }
  void signal(Cluster& cluster) override {
    for (uint32_t address : barriers) {
      located(*this,
              [&] { cluster.mbarrier_op(*warp, lanes, Cluster::BarrierOp::arrive, address, 1, this); });
    }
  }
  std::string describe() const override {
    return tw::format("tcgen05.commit of {} operations to the mbarrier at {:#x}", tracked.size(),
                      barriers.front());
  }
  IssuedOps tracked;
  std::vector<uint32_t> barriers;  // shared::cluster addresses
};

Flow run_commit(Warp& w, const Inst& i, uint32_t lanes) {
  const Commit& c = *static_cast<const Commit*>(i.extra);
  Tcgen05& t = Tcgen05::of(w.cta());
  Cluster& cluster = w.cluster();
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint64_t at = (c.wide ? w.row<uint64_t>(c.address)[lane] : w.row<uint32_t>(c.address)[lane]) +
                  static_cast<uint64_t>(c.offset);
    if (!c.shared) {
      if (at < kSharedWindow || at >= kSharedWindow + kWindowSize) {
        w.fault(1u << lane, "mbarrier address {:#x} is outside the window of shared::cluster", at);
      }
      at -= kSharedWindow;
    }
    auto op = std::make_shared<CommitOp>();
    op->tracked = t.tensor_core[w.index() * kLanes + lane];
    op->tracked.prune();
    const auto address = static_cast<uint32_t>(at);
    if (c.multicast) {
      const uint32_t mask = w.row<uint32_t>(c.mask)[lane] & 0xffff;
      if (mask == 0 || mask >> cluster.ctas.size() != 0) {
        w.fault(1u << lane, "ctaMask {:#x} names CTAs that a cluster of {} does not have", mask,
                cluster.ctas.size());
      }
      for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank) {
        if ((mask >> rank & 1) != 0) op->barriers.push_back((address & 0xffffff) | rank << 24);
      }
    } else {
      op->barriers.push_back(address);
    }
    for (uint32_t b : op->barriers) cluster.mbarrier(w, 1u << lane, b);  // faults now if there is none
    cluster.issue(std::move(op),
                  cluster.engine("tcgen05.commit", Engine::Order::any, static_cast<int>(w.cta().rank)), w,
                  1u << lane);
  }
  return Flow::next;
}

std::optional<MmaKind> kind_from_token(std::string_view token) {
  for (MmaKind k : {MmaKind::f16, MmaKind::tf32, MmaKind::f8f6f4, MmaKind::i8}) {
    if (token == std::string_view(name(k)).substr(1)) return k;
  }
  return std::nullopt;
}

}  // namespace

void decode_tcgen05_mma(Decoding& d) {
  for (std::string_view variant : {"ws", "sp", "ashift", "block_scale"}) {
    if (d.take(variant)) d.unsupported(tw::format("tcgen05.mma.{}", variant));
  }
  // Where A comes from does not depend on the collector buffer; only a hint is lost.
  d.take_one_of(
      {"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"});
  std::string_view token = d.take_next();
  auto kind = kind_from_token(token);
  if (!kind) d.unsupported(tw::format(".{}", token));
  Mma m;
  m.kind = *kind;
  auto address = d.address(0);
  m.d = address.base;
  m.d_offset = address.offset;
  m.a_in_tensor_memory = d.operand(1).is<ptx::Address>();
  if (m.a_in_tensor_memory) {
    auto a = d.address(1);
    m.a = a.base;
    m.a_offset = a.offset;
  } else {
    m.a = d.source(1, 8);
  }
  m.b = d.source(2, 8);
  m.descriptor = d.source(3, 4);
  size_t next = 4;
  if (const auto* v = d.operand(next).as<ptx::Vector>()) {
    if (v->elements.size() != 4)
      user_error(d.ptx.loc, "{}: disable-output-lane has 4 elements", d.ptx.text());
    for (size_t i = 0; i < 4; ++i) m.lanes[i] = d.source(v->elements[i], 4);
    m.masked = true;
    ++next;
  }
  m.enable = d.predicate(d.operand(next));
  ++next;
  if (next < d.operand_count()) {
    const auto* scale = d.operand(next).as<ptx::Immediate>();
    if (scale == nullptr || scale->bits > 15) {
      user_error(d.ptx.loc, "{}: scale-input-d must be an immediate in [0, 15]", d.ptx.text());
    }
    if (*kind != MmaKind::f16 && *kind != MmaKind::tf32) {
      user_error(d.ptx.loc, "{}: scale-input-d is for .kind::f16 and .kind::tf32", d.ptx.text());
    }
    m.scale_exponent = static_cast<int>(scale->bits);
  }
  d.inst.extra = d.keep(m);
  d.inst.run = &run_mma;
}

void decode_tcgen05_cp(Decoding& d) {
  Copy c;
  std::string_view shape = d.take_one_of({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"});
  std::string_view multicast = d.take_one_of({"warpx2::02_13", "warpx2::01_23", "warpx4"});
  if (shape == "128x256b") c.shape = CopyShape::c128x256b;
  else if (shape == "128x128b") c.shape = CopyShape::c128x128b;
  else if (shape == "64x128b" && multicast == "warpx2::02_13") c.shape = CopyShape::c64x128b_02_13;
  else if (shape == "64x128b" && multicast == "warpx2::01_23") c.shape = CopyShape::c64x128b_01_23;
  else if (shape == "32x128b" && multicast == "warpx4") c.shape = CopyShape::c32x128b;
  else d.unsupported(tw::format("the shape .{}", shape));
  auto address = d.address(0);
  c.address = address.base;
  c.offset = address.offset;
  c.descriptor = d.source(1, 8);
  d.inst.extra = d.keep(c);
  d.inst.run = &run_cp;
}

void decode_tcgen05_commit(Decoding& d) {
  Commit c;
  d.take("mbarrier::arrive::one");
  c.multicast = d.take("multicast::cluster");
  auto address = d.address(0);
  c.address = address.base;
  c.offset = address.offset;
  c.wide = address.wide;
  c.shared = d.take("shared::cluster") || address.variable == ptx::Space::shared;
  d.take_type();
  if (c.multicast) c.mask = d.source(1, 4);
  d.inst.extra = d.keep(c);
  d.inst.run = &run_commit;
}

}  // namespace tw::sim
