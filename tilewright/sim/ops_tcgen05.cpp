// tcgen05: PTX ISA, "TensorCore 5th Generation Family Instructions": loads, stores, waits, fences.
#include "tilewright/sim/ops_tcgen05.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "tilewright/sim/grid.h"
#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/program.h"

namespace tw::sim {

namespace {

// "All of the Tensor Memory that was allocated in a kernel, must be explicitly deallocated before the kernel
// exits."
void check_all_freed(Warp& last) {
  auto live = Tcgen05::of(last.cta()).memory.allocator.live();
  if (live.empty()) return;
  last.fault(kAllLanes, "tensor memory columns [{}, {}) are still allocated when the CTA ends",
             live.front().column, live.front().column + live.front().columns);
}

}  // namespace

Tcgen05& Tcgen05::of(Cta& cta) {
  return cta.extensions.get<Tcgen05>([&] {
    auto t = std::make_unique<Tcgen05>(cta);
    t->loads.resize(cta.warps.size());
    t->stores.resize(cta.warps.size());
    cta.at_end.push_back(&check_all_freed);
    return t;
  });
}

std::string Tcgen05::name_of(int lane, int column) const {
  std::string place = tw::format("tensor memory lane {}, column {}", lane, column);
  if (const auto& names = cta.cluster.grid.program.names) {
    for (const ptx::Region& r : names->tensor_memory) {
      auto c = static_cast<uint64_t>(column);
      if (c >= r.begin && c < r.end) return tw::format("{}, column {} ({})", r.name, c - r.begin, place);
    }
  }
  return place;
}

CtaGroup group_of(const Warp& w, uint32_t lanes, bool pair) {
  Cta& cta = w.cta();
  if (!pair) return {{&Tcgen05::of(cta), nullptr}, 1};
  const uint32_t peer = cta.rank ^ 1;
  const auto& ctas = cta.cluster.ctas;
  if (peer >= ctas.size()) {
    w.fault(lanes, ".cta_group::2 in a cluster of {}: CTA rank {} has no peer CTA", ctas.size(), cta.rank);
  }
  if (ctas[peer]->exited()) {
    w.fault(lanes, "the peer CTA (rank {}) has exited; with .cta_group::2 it must still be active", peer);
  }
  return {{&Tcgen05::of(*ctas[cta.rank & ~1u]), &Tcgen05::of(*ctas[cta.rank | 1u])}, 2};
}

bool take_cta_group(Decoding& d) {
  const std::string_view group = d.take_one_of({"cta_group::1", "cta_group::2"});
  if (group.empty()) user_error(d.ptx.loc, "{}: .cta_group::1 or .cta_group::2 is missing", d.ptx.text());
  const bool pair = group == "cta_group::2";
  d.agree_on_cta_group(pair ? 2 : 1);
  return pair;
}

uint32_t tensor_address(const Warp& w, Slot s, int64_t offset, uint32_t lane) {
  return w.row<uint32_t>(s)[lane] + static_cast<uint32_t>(offset);
}

void require_all_lanes(const Warp& w, uint32_t lanes) {
  if (lanes != w.live())
    w.fault(w.live() & ~lanes, "{} needs all threads of the warp", w.instruction().text());
}

uint32_t uniform(const Warp& w, Slot s, uint32_t lanes, const char* what) {
  const auto* row = w.row<uint32_t>(s);
  const int first = std::countr_zero(lanes);
  for (uint32_t l = 0; l < kLanes; ++l) {
    if ((lanes >> l & 1) != 0 && row[l] != row[first])
      w.fault(1u << l, "{} differs between the threads of the warp", what);
  }
  return row[first];
}

namespace {

// --- ld, st ---

struct Transfer {
  TensorTransfer shape;
  std::vector<Slot> registers;
  Slot address;
  int64_t offset = 0;
};

template <class Pointer>
std::vector<Pointer> rows_of(Warp& w, const std::vector<Slot>& slots) {
  std::vector<Pointer> rows;
  rows.reserve(slots.size());
  for (Slot s : slots) rows.push_back(w.row<uint32_t>(s));
  return rows;
}

// The cells that a transfer of one warp takes: a rectangle, or one for each half of .16x32bx2.
void touch_cells(const AsyncOp& op, AccessKind kind, TensorAddress base, const TensorTransfer& t) {
  const Cta& cta = op.warp->cta();
  Observer* observer = cta.cluster.observer();
  if (!observer) return;
  const bool halves = t.shape == TensorShape::s16x32bx2;
  const int threads = static_cast<int>(kLanes) / (halves ? 2 : 1);
  for (int first = 0; first < static_cast<int>(kLanes); first += threads) {
    TensorAddress low{TensorMemory::kLanes, TensorMemory::kColumns}, high{0, 0};
    for (int r = 0; r < t.registers(); ++r) {
      for (int thread = first; thread < first + threads; ++thread) {
        const TensorAddress c = t.cell(thread, r);
        low = {std::min(low.lane, c.lane), std::min(low.column, c.column)};
        high = {std::max(high.lane, c.lane), std::max(high.column, c.column + (t.pack16 ? 1 : 0))};
      }
    }
    AsyncAccess a{kind, MemorySpace::tensor, &cta};
    a.lane = base.lane + low.lane, a.lanes = high.lane - low.lane + 1;
    a.column = base.column + low.column, a.columns = high.column - low.column + 1;
    observer->async_access(op, a);
  }
}

// A register dependency on tcgen05.ld is honoured without a wait ("Register dependencies, same thread"), so
// the registers are written when it issues; what stays in flight is only its completion.

class LoadOp final : public AsyncOp {
 public:
  std::string describe() const override { return "tcgen05.ld"; }
};

class StoreOp final : public AsyncOp {
 public:
  void write(Cluster&) override {
    std::vector<const uint32_t*> rows;
    for (const auto& r : values) rows.push_back(r.data());
    located(*this, [&] {
      Tcgen05::of(warp->cta()).memory.store(base, shape, static_cast<int>(warp->index() % 4), rows);
    });
    touch_cells(*this, AccessKind::write, base, shape);
  }
  std::string describe() const override { return "tcgen05.st"; }
  TensorAddress base;
  TensorTransfer shape;
  std::vector<std::array<uint32_t, kLanes>> values;
};

Flow run_ld(Warp& w, const Inst& i, uint32_t lanes) {
  require_all_lanes(w, lanes);
  const Transfer& x = *static_cast<const Transfer*>(i.extra);
  Tcgen05& t = Tcgen05::of(w.cta());
  const auto base =
      TensorAddress::decode(uniform(w, x.address, lanes, "taddr") + static_cast<uint32_t>(x.offset));
  const int quarter = static_cast<int>(w.index() % 4);
  located(w, lanes, [&] { t.memory.load(base, x.shape, quarter, rows_of<uint32_t*>(w, x.registers)); });
  auto op = std::make_shared<LoadOp>();
  t.loads[w.index()].add(op);
  Cluster& c = w.cluster();
  c.issue(op, c.engine("tcgen05.ld", Engine::Order::any, static_cast<int>(w.cta().rank)), w, lanes);
  touch_cells(*op, AccessKind::read, base, x.shape);
  return Flow::next;
}

Flow run_st(Warp& w, const Inst& i, uint32_t lanes) {
  require_all_lanes(w, lanes);
  const Transfer& x = *static_cast<const Transfer*>(i.extra);
  Tcgen05& t = Tcgen05::of(w.cta());
  auto op = std::make_shared<StoreOp>();
  op->base = TensorAddress::decode(uniform(w, x.address, lanes, "taddr") + static_cast<uint32_t>(x.offset));
  op->shape = x.shape;
  // The ISA does not say so; a B200 answers with a misaligned address (triton-lang/triton, pull request
  // 10321).
  if (const int second = op->base.column + x.shape.half_offset;
      x.shape.shape == TensorShape::s16x32bx2 && x.shape.pack16 && second % 2 != 0)
    w.fault(lanes, "the second half of a {} store that unpacks begins at column {}: it must be even",
            name(x.shape.shape), second);
  located(w, lanes, [&] { t.memory.check(op->base, x.shape, static_cast<int>(w.index() % 4), false); });
  for (const uint32_t* row : rows_of<const uint32_t*>(w, x.registers)) {
    std::copy_n(row, kLanes, op->values.emplace_back().begin());
  }
  t.stores[w.index()].add(op);
  Cluster& c = w.cluster();
  c.issue(std::move(op), c.engine("tcgen05.st", Engine::Order::any, static_cast<int>(w.cta().rank)), w,
          lanes);
  return Flow::next;
}

void decode_transfer(Decoding& d, bool load) {
  if (d.take("red")) d.unsupported("tcgen05.ld.red");
  Transfer x;
  std::string_view shape = d.take_one_of({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  for (TensorShape s : {TensorShape::s32x32b, TensorShape::s16x64b, TensorShape::s16x128b,
                        TensorShape::s16x256b, TensorShape::s16x32bx2}) {
    if (shape == std::string_view(name(s)).substr(1)) x.shape.shape = s;
  }
  std::string_view num = d.take_one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (shape.empty() || num.empty()) d.unsupported("this shape");
  std::from_chars(num.data() + 1, num.data() + num.size(), x.shape.num);
  x.shape.pack16 = d.take(load ? "pack::16b" : "unpack::16b");
  d.take_type();
  size_t next = load ? 1 : 0;
  auto address = d.address(next++);
  x.address = address.base;
  x.offset = address.offset;
  if (address.wide) d.unsupported("a 64-bit tensor memory address");
  if (x.shape.shape == TensorShape::s16x32bx2) {
    const auto* split = d.operand(next++).as<ptx::Immediate>();
    if (split == nullptr) d.unsupported("immHalfSplitoff that is no immediate");
    x.shape.half_offset = static_cast<int>(split->bits);
  }
  const ptx::Operand& registers = d.operand(load ? 0 : next);
  if (const auto* v = registers.as<ptx::Vector>()) {
    for (const ptx::Operand& e : v->elements)
      x.registers.push_back(load ? d.destination(e, 4) : d.source(e, 4));
  } else {
    x.registers.push_back(load ? d.destination(registers, 4) : d.source(registers, 4));
  }
  int expected = 0;
  try {
    expected = x.shape.registers();
  } catch (const Error& e) {
    user_error(d.ptx.loc, "{}: {}", d.ptx.text(), e.message());
  }
  if (static_cast<int>(x.registers.size()) != expected) {
    user_error(d.ptx.loc, "{}: {} registers, the shape has {}", d.ptx.text(), x.registers.size(), expected);
  }
  d.inst.extra = d.keep(std::move(x));
  d.inst.run = load ? &run_ld : &run_st;
}

// --- wait, fence ---

// Wait::a: 0 loads, 1 stores.
IssuedOps& waited(Warp& w, uint64_t what) {
  Tcgen05& t = Tcgen05::of(w.cta());
  return (what == 0 ? t.loads : t.stores)[w.index()];
}
bool transfers_done(Warp& w, const Wait& wait) { return waited(w, wait.a).done(); }
std::string describe_wait(const Warp& w, const Wait& wait) {
  IssuedOps& ops = waited(const_cast<Warp&>(w), wait.a);
  return tw::format("tcgen05.wait::{}: {} operations", wait.a == 0 ? "ld" : "st", ops.size());
}
constexpr WaitKind kTransferWait{"tcgen05.wait", &transfers_done, &describe_wait, false};

Flow run_wait(Warp& w, const Inst& i, uint32_t lanes) {
  require_all_lanes(w, lanes);
  IssuedOps& ops = waited(w, i.aux);
  ops.prune();
  return ops.done() ? passed(w, lanes) : w.suspend(kTransferWait, i, lanes, i.aux);
}

Flow run_fence(Warp& w, const Inst&, uint32_t lanes) {
  if (Observer* o = w.cluster().observer()) o->fence(w, w.instruction(), lanes);
  return Flow::next;
}

void decode_tcgen05(Decoding& d) {
  if (d.arch() != "sm_100a" && d.arch() != "sm_103a") {
    user_error(d.ptx.loc, "{} requires sm_100a or sm_103a; the machine is {}", d.ptx.text(), d.arch());
  }
  std::string_view what = d.take_next();
  if (d.take("sync")) {
    d.take("aligned");
    d.inst.gather = Gather::aligned;
  }
  if (what == "ld" || what == "st") return decode_transfer(d, what == "ld");
  if (what == "wait::ld" || what == "wait::st") {
    d.inst.aux = what == "wait::ld" ? 0 : 1;
    d.inst.run = &run_wait;
    return;
  }
  if (what.starts_with("fence::")) {
    d.inst.run = &run_fence;
    return;
  }
  // The ISA does not say which way "down" is, nor which lanes a refresh by cp.4x256b takes.
  if (what == "shift") d.unsupported("tcgen05.shift");
  const bool pair = take_cta_group(d);
  if (what == "mma") return decode_tcgen05_mma(d, pair);
  if (what == "cp") return decode_tcgen05_cp(d, pair);
  if (what == "commit") return decode_tcgen05_commit(d, pair);
  if (what == "alloc" || what == "dealloc" || what == "relinquish_alloc_permit")
    return decode_tcgen05_alloc(d, what, pair);
  d.unsupported(tw::format("tcgen05.{}", what));
}

}  // namespace

void register_tcgen05(Registry& r) { r.add("tcgen05", &decode_tcgen05); }

}  // namespace tw::sim
