// tcgen05.cp, tcgen05.commit, and how operations reach the tensor core. A commit signals when the operations
// its thread issued before are done.
#include <bit>
#include <cstring>

#include "tilewright/sim/ops_tcgen05.h"

namespace tw::sim {
namespace {

// --- cp ---

struct Copy {
  CopyShape shape = CopyShape::c128x256b;
  bool pair = false;
  Slot address, descriptor;
  int64_t offset = 0;
};

// Of a pair, each CTA's shared memory is copied to its own tensor memory.
class CopyOp final : public AsyncOp {
 public:
  void read(Cluster&) override {
    located(*this, [&] {
      int rows = TensorMemory::copy_rows(shape), words = TensorMemory::copy_columns(shape);
      for (size_t i = 0; i < group.count; ++i) {
        const Cta& cta = group.members[i]->cta;
        MatrixOperand o = place_in_shared(cta, source, DType::u8, false, rows, words * 4, 'A');
        check_read(*this, cta, o.geometry, 'A');
        bytes_[i].resize(128 * 32);
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < words / 4; ++c) {
            std::memcpy(bytes_[i].data() + r * 32 + c * 16,
                        o.memory + o.geometry.address(static_cast<uint32_t>(r), static_cast<uint32_t>(c)),
                        16);
          }
        }
      }
    });
  }
  void write(Cluster&) override {
    located(*this, [&] {
      const OperandGeometry rows = linear_operand(DType::u8, TensorMemory::copy_rows(shape));
      for (size_t i = 0; i < group.count; ++i)
        group.members[i]->memory.copy(base, shape, rows, bytes_[i].data());
    });
  }
  std::string describe() const override { return "tcgen05.cp"; }

  CtaGroup group;
  CopyShape shape = CopyShape::c128x256b;
  TensorAddress base;
  SharedMatrix source;

 private:
  std::array<std::vector<std::byte>, 2> bytes_;
};

Flow run_cp(Warp& w, const Inst& i, uint32_t lanes) {
  const Copy& c = *static_cast<const Copy*>(i.extra);
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    auto op = std::make_shared<CopyOp>();
    op->group = group_of(w, 1u << lane, c.pair);
    op->shape = c.shape;
    op->base = TensorAddress::decode(tensor_address(w, c.address, c.offset, lane));
    located(w, 1u << lane,
            [&] { op->source = decode_tcgen05_descriptor(w.row<uint64_t>(c.descriptor)[lane]); });
    IssuedOps& copies = op->group.home().copies;
    copies.prune();
    copies.add(op);
    issue_to_tensor_core(w, lane, std::move(op), "tcgen05.cp");
  }
  return Flow::next;
}

// --- commit ---

struct Commit {
  Slot address, mask;
  int64_t offset = 0;
  bool wide = false, shared = false, multicast = false, pair = false;
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
    group_of(w, 1u << lane, c.pair);  // the peer must be active
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

}  // namespace

void issue_to_tensor_core(Warp& w, uint32_t lane, std::shared_ptr<AsyncOp> op, std::string_view engine) {
  IssuedOps& mine = Tcgen05::of(w.cta()).tensor_core[w.index() * kLanes + lane];
  mine.prune();
  mine.add(op);
  Cluster& c = w.cluster();
  c.issue(std::move(op), c.engine(engine, Engine::Order::any, static_cast<int>(w.cta().rank)), w, 1u << lane);
}

void decode_tcgen05_cp(Decoding& d, bool pair) {
  Copy c;
  c.pair = pair;
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

void decode_tcgen05_commit(Decoding& d, bool pair) {
  Commit c;
  c.pair = pair;
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
