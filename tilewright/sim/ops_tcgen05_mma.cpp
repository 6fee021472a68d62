// tcgen05.mma.
//
// Order: "Pipelined tcgen05 Instructions" orders an mma after earlier ones of the same shape and accumulator
// and after earlier copies; everything else overtakes freely.
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
  bool pair = false;
  Slot d, a, b, descriptor, enable, lanes[8];
  int64_t d_offset = 0, a_offset = 0;
  bool masked = false;
  int scale_exponent = 0;
};

class MmaOp final : public AsyncOp {
 public:
  void read(Cluster&) override {
    located(*this, [&] {
      std::array<MatrixOperand, 2> a_operands, b_operands;
      const int parts = static_cast<int>(group.count);
      for (size_t i = 0; i < group.count; ++i) {
        const Cta& cta = group.members[i]->cta;
        if (!a_in_tensor_memory)
          a_operands[i] = operand(cta, a, shape.a, shape.transpose_a, shape.m / parts, 'A');
        b_operands[i] = operand(cta, b, shape.b, shape.transpose_b, shape.n / parts, 'B');
      }
      product.k = shape.k;
      each_tile([&](const Tile& t) {
        if (product.accumulate) check_accumulator(t);
        std::array<std::byte, 128 * 32> rows;
        if (a_in_tensor_memory) {
          t.state.memory.read_operand(a_address, shape.m == 64 ? d.lane : 0, t.d, rows);
          product.a = {linear_operand(shape.a, t.d.m), rows.data()};
        } else {
          product.a = a_operands[t.member];
        }
        product.b = b_operands[t.half];
        product.b_upper = t.whole ? b_operands[1] : MatrixOperand{};
        t.state.memory.append(t.d, product);
        touch_accumulator(t);
      });
    });
  }
  void write(Cluster&) override {
    if (product.accumulate) return;  // all of D was written before
    each_tile([&](const Tile& t) { t.state.memory.mark_written(t.d, d.column, product.disabled_lanes); });
  }
  bool may_reach(Milestone next) const override {
    if (next != Milestone::reads_done) return true;
    const Tcgen05& home = group.home();
    for (const auto& op : home.copies.ops()) {
      if (op->sequence < sequence && !op->reached(Milestone::writes_done)) return false;
    }
    for (const auto& op : home.products.ops()) {
      if (op.get() == this) break;
      const auto& earlier = static_cast<const MmaOp&>(*op);
      bool same = earlier.d.column == d.column && earlier.d.lane == d.lane && earlier.shape.m == shape.m &&
                  earlier.shape.n == shape.n;
      if (same && !op->reached(Milestone::writes_done)) return false;
    }
    return true;
  }
  std::string describe() const override {
    return tw::format("tcgen05.mma{} {} m{}n{}k{}", group.count == 2 ? " of a CTA pair" : "", name(kind),
                      shape.m, shape.n, shape.k);
  }

  // The rules that the accumulator's place breaks, if any.
  void check_place() {
    each_tile([](const Tile&) {});
  }

  CtaGroup group;
  MmaKind kind = MmaKind::f16;
  InstructionDescriptor shape;
  TensorAddress d, a_address;
  SharedMatrix a, b;
  bool a_in_tensor_memory = false;
  MatrixProduct product;

 private:
  // What one pass over an accumulator computes. A pair splits A and D by rows and B by columns, the even CTA
  // has the first half of each (CUTLASS, SM100_MMA_*_2x1SM_*: ALayout, BLayout, CLayout; "Data Path Layout
  // Organization", layouts A and B).
  struct Tile {
    Tcgen05& state;
    AccumulatorTile d;
    size_t member;  // of the group: whose rows of A and D
    size_t half;    // whose columns of B
    bool whole;     // the columns of both
  };
  template <class F>
  void each_tile(F f) const {
    for (size_t i = 0; i < group.count; ++i) {
      Tcgen05& s = *group.members[i];
      TensorMemory& memory = s.memory;
      if (group.count == 1) {
        f(Tile{s, memory.accumulator(d, shape.m, shape.n, shape.d), i, 0, false});
      } else if (shape.m == 256) {
        f(Tile{s, memory.accumulator(d, 128, shape.n, shape.d), i, 0, true});
      } else {
        f(Tile{s, memory.half_accumulator(d, 0, shape.n, shape.d), i, 0, false});
        f(Tile{s, memory.half_accumulator(d, 1, shape.n, shape.d), i, 1, false});
      }
    }
  }
  // D is read and written in one go, in the pipeline's order.
  void touch_accumulator(const Tile& t) const {
    Observer* observer = t.state.cta.cluster.observer();
    if (!observer) return;
    const int width = shape.n / (group.count == 2 && shape.m == 128 ? 2 : 1);
    AsyncAccess cells{AccessKind::write, MemorySpace::tensor, &t.state.cta};
    cells.lanes = TensorMemory::kLanes, cells.column = d.column, cells.columns = width;
    observer->async_access(*this, cells);
    if (!a_in_tensor_memory) return;
    cells.kind = AccessKind::read, cells.column = a_address.column, cells.columns = 8;
    observer->async_access(*this, cells);
  }
  MatrixOperand operand(const Cta& cta, const SharedMatrix& matrix, DType type, bool transpose, int extent,
                        char letter) const {
    MatrixOperand o = place_in_shared(cta, matrix, type, transpose, extent, shape.k, letter);
    check_read(*this, cta, o.geometry, letter);
    return o;
  }
  void check_accumulator(const Tile& t) const {
    const auto cell = t.state.memory.first_unwritten(t.d, d.column);
    if (!cell) return;
    throw Error(ErrorKind::fault, {},
                tw::format("matrix D: {} is accumulated to but nothing has written it; set enable-input-d to "
                           "false for the first product",
                           t.state.name_of(cell->lane, cell->column)));
  }
};

// Eight words for a pair; the ISA does not say which CTA's lanes the first four are.
std::array<uint32_t, 4> disabled_lanes(const Warp& w, const Mma& m, uint32_t lane) {
  std::array<uint32_t, 4> mask{};
  for (size_t i = 0; i < 4; ++i) {
    mask[i] = w.row<uint32_t>(m.lanes[i])[lane];
    if (m.pair && w.row<uint32_t>(m.lanes[i + 4])[lane] != mask[i])
      w.raise(ErrorKind::not_modelled, 1u << lane,
              "disable-output-lane that differs between the CTAs of a pair");
  }
  return mask;
}

void issue_mma(Warp& w, const Mma& m, uint32_t lane) {
  auto op = std::make_shared<MmaOp>();
  op->group = group_of(w, 1u << lane, m.pair);
  op->kind = m.kind;
  op->d = TensorAddress::decode(tensor_address(w, m.d, m.d_offset, lane));
  op->a_in_tensor_memory = m.a_in_tensor_memory;
  located(w, 1u << lane, [&] {
    op->shape =
        decode_instruction_descriptor(m.kind, w.row<uint32_t>(m.descriptor)[lane], m.pair ? 2 : 1, false);
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
    op->check_place();
  });
  MatrixProduct& p = op->product;
  p.negate = op->shape.negate_a != op->shape.negate_b;
  p.saturate = op->shape.saturate;
  p.accumulate = (w.mask(m.enable) >> lane & 1) != 0;
  p.scale_exponent = p.accumulate ? m.scale_exponent : 0;
  if (m.masked) p.disabled_lanes = disabled_lanes(w, m, lane);
  IssuedOps& products = op->group.home().products;
  products.prune();
  products.add(op);
  issue_to_tensor_core(w, lane, std::move(op), "tcgen05.mma");
}

// Single thread semantics: each active thread issues its own.
Flow run_mma(Warp& w, const Inst& i, uint32_t lanes) {
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    issue_mma(w, *static_cast<const Mma*>(i.extra), static_cast<uint32_t>(std::countr_zero(rest)));
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

void decode_tcgen05_mma(Decoding& d, bool pair) {
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
  m.pair = pair;
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
    const size_t words = pair ? 8 : 4;
    if (v->elements.size() != words)
      user_error(d.ptx.loc, "{}: disable-output-lane has {} elements", d.ptx.text(), words);
    for (size_t i = 0; i < words; ++i) m.lanes[i] = d.source(v->elements[i], 4);
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

}  // namespace tw::sim
