// wgmma: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
//
// The four warps of a warpgroup execute an instruction each in its own time; it is issued as one operation
// when the last of them has come. Accumulators live in a dense tile while a chain of operations uses the same
// registers, and return to the registers when a wait covers the chain: until then the ISA leaves the
// registers undefined.
#include <array>
#include <bit>
#include <charconv>
#include <deque>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/matrix_op.h"
#include "tilewright/sim/wgmma_fragment.h"

namespace tw::sim {
namespace {

constexpr int kWarps = 4;

// One wgmma.mma_async, decoded.
struct Mma {
  DType a = DType::f16, b = DType::f16, d = DType::f32;
  int n = 0, k = 0;
  bool a_in_registers = false;
  bool saturate = false, negate = false, transpose_a = false, transpose_b = false;
  std::vector<Slot> d_registers, a_registers;
  Slot a_descriptor, b_descriptor, scale_d;
};

class MmaOp;

// State of a warpgroup.
struct Warpgroup {
  Cta* cta = nullptr;
  int first_warp = 0;

  std::deque<std::shared_ptr<MmaOp>> gathering;  // not all warps have come yet
  uint64_t issued = 0;                           // operations all warps have joined
  uint64_t completed = 0;                        // operations written, in order
  std::array<uint64_t, kWarps> joined{};         // operations each warp has executed
  // Per warp: for each commit the number of operations before it, newest last.
  std::array<std::deque<uint64_t>, kWarps> commits;

  MatrixUnit unit;
  std::vector<uint32_t> cells;  // the dense tile, [n][64]
  const Mma* tile = nullptr;    // whose registers it stands for; nullptr: none
  uint64_t tile_last = 0;       // index, from 1, of the last operation on it

  Warp& warp(int i) const { return cta->warps[static_cast<size_t>(first_warp + i)]; }
  AccumulatorTile accumulator(const Mma& m) { return {cells.data(), 64, 64, m.n, {0, 16, 32, 48}, m.d}; }
  void load_tile(const Mma& m);
  void take_tile(const Mma& m, bool accumulate);
  void release_tile();
};

struct Warpgroups {
  std::vector<std::unique_ptr<Warpgroup>> of;
};

Warpgroup& warpgroup_of(Warp& w, uint32_t lanes) {
  Cta& cta = w.cta();
  auto& groups = cta.extensions.get<Warpgroups>([&] {
    auto all = std::make_unique<Warpgroups>();
    for (size_t i = 0; i + kWarps <= cta.warps.size(); i += kWarps) {
      all->of.push_back(std::make_unique<Warpgroup>());
      all->of.back()->cta = &cta;
      all->of.back()->first_warp = static_cast<int>(i);
      all->of.back()->cells.resize(64 * 256);
    }
    return all;
  });
  size_t index = w.index() / kWarps;
  if (index >= groups.of.size()) {
    w.fault(lanes, "warp {} belongs to no warpgroup: the CTA's last {} warps are fewer than {}", w.index(),
            cta.warps.size() % kWarps, kWarps);
  }
  return *groups.of[index];
}

template <class Pointer>
std::vector<Pointer> rows_of(Warp& w, const std::vector<Slot>& slots) {
  std::vector<Pointer> rows;
  rows.reserve(slots.size());
  for (Slot s : slots) rows.push_back(w.row<uint32_t>(s));
  return rows;
}

void Warpgroup::load_tile(const Mma& m) {
  for (int i = 0; i < kWarps; ++i) {
    wgmma_gather(m.d, m.n, i, rows_of<const uint32_t*>(warp(i), m.d_registers), cells.data());
  }
}

// Makes the tile stand for m's accumulator registers.
void Warpgroup::take_tile(const Mma& m, bool accumulate) {
  if (tile != nullptr &&
      (tile == &m || (tile->d_registers == m.d_registers && tile->d == m.d && tile->n == m.n)))
    return;
  release_tile();
  tile = &m;
  if (accumulate) load_tile(m);
}

void Warpgroup::release_tile() {
  if (tile == nullptr) return;
  unit.flush();
  for (int i = 0; i < kWarps; ++i) {
    wgmma_scatter(tile->d, tile->n, i, cells.data(), rows_of<uint32_t*>(warp(i), tile->d_registers));
  }
  tile = nullptr;
}

// One operation of a warpgroup.
class MmaOp final : public AsyncOp {
 public:
  MmaOp(Warpgroup& owner, const Mma& instruction) : group(owner), mma(instruction) {}

  void read(Cluster&) override {
    located(*this, [&] {
      group.take_tile(mma, accumulate);
      MatrixProduct p;
      if (mma.a_in_registers) {
        for (int i = 0; i < kWarps; ++i) {
          wgmma_gather_a(i, rows_of<const uint32_t*>(group.warp(i), mma.a_registers), a_rows_.data());
        }
        p.a = {linear_operand(mma.a, 64), a_rows_.data()};
      } else {
        p.a = place_in_shared(*group.cta, a, mma.a, mma.transpose_a, 64, mma.k, 'A');
        check_read(*this, *group.cta, p.a.geometry, 'A');
      }
      p.b = place_in_shared(*group.cta, b, mma.b, mma.transpose_b, mma.n, mma.k, 'B');
      check_read(*this, *group.cta, p.b.geometry, 'B');
      p.k = mma.k;
      p.negate = mma.negate;
      p.saturate = mma.saturate;
      p.accumulate = accumulate;
      group.unit.append(group.accumulator(mma), p);
      group.tile_last = index;
    });
  }
  void write(Cluster&) override { ++group.completed; }
  std::string describe() const override {
    return tw::format("wgmma.mma_async m64n{}k{} of warpgroup {}", mma.n, mma.k, group.first_warp / kWarps);
  }

  Warpgroup& group;
  const Mma& mma;
  SharedMatrix a, b;
  uint64_t a_bits = 0, b_bits = 0;
  bool accumulate = false;
  uint64_t index = 0;  // from 1
  int warps = 0;       // that have joined
  uint32_t first_pc = 0;

 private:
  alignas(64) std::array<std::byte, 64 * 32> a_rows_;
};

void require_all_lanes(Warp& w, uint32_t lanes) {
  if (lanes != kAllLanes)
    w.fault(kAllLanes & ~lanes, "a warpgroup instruction needs all threads of the warp");
}

uint64_t uniform(Warp& w, Slot s, uint32_t lanes, const char* what) {
  const auto* row = w.row<uint64_t>(s);
  for (uint32_t l = 1; l < kLanes; ++l) {
    if (row[l] != row[0]) w.fault(1u << l, "{} differs between the threads of the warp", what);
  }
  (void)lanes;
  return row[0];
}

Flow run_mma(Warp& w, const Inst& inst, uint32_t lanes) {
  const Mma& m = *static_cast<const Mma*>(inst.extra);
  require_all_lanes(w, lanes);
  Warpgroup& g = warpgroup_of(w, lanes);
  const size_t rank = w.index() % kWarps;
  const uint64_t index = ++g.joined[rank];
  const uint64_t a_bits = m.a_in_registers ? 0 : uniform(w, m.a_descriptor, lanes, "a-desc");
  const uint64_t b_bits = uniform(w, m.b_descriptor, lanes, "b-desc");
  const uint32_t scale_d = w.mask(m.scale_d);
  if (scale_d != 0 && scale_d != kAllLanes)
    w.fault(~scale_d, "scale-d differs between the threads of the warp");
  const size_t place = static_cast<size_t>(index - g.issued - 1);
  if (place == g.gathering.size()) {
    auto op = std::make_shared<MmaOp>(g, m);
    op->warp = &w;
    op->pc = op->first_pc = w.pc();
    op->lanes = lanes;
    op->index = index;
    op->a_bits = a_bits;
    op->b_bits = b_bits;
    op->accumulate = scale_d != 0;
    located(w, lanes, [&] {
      if (!m.a_in_registers) op->a = decode_wgmma_descriptor(a_bits);
      op->b = decode_wgmma_descriptor(b_bits);
    });
    g.gathering.push_back(std::move(op));
  }
  MmaOp& op = *g.gathering[place];
  if (op.first_pc != w.pc()) {
    w.fault(lanes,
            "the warps of the warpgroup execute different wgmma.mma_async instructions: {} is not what {} "
            "executed",
            w.where(lanes), op.warp->where(op.lanes));
  }
  if (op.a_bits != a_bits || op.b_bits != b_bits) {
    w.fault(lanes,
            "the matrix descriptors differ between the warps of the warpgroup: a {:#x} and {:#x}, b {:#x} "
            "and {:#x}",
            op.a_bits, a_bits, op.b_bits, b_bits);
  }
  if (op.accumulate != (scale_d != 0)) w.fault(lanes, "scale-d differs between the warps of the warpgroup");
  if (++op.warps < kWarps) return Flow::next;
  std::shared_ptr<MmaOp> whole = g.gathering.front();
  g.gathering.pop_front();
  ++g.issued;
  Cluster& cluster = w.cluster();
  Engine& engine = cluster.engine(tw::format("wgmma of warpgroup {}", w.index() / kWarps),
                                  Engine::Order::in_order, static_cast<int>(w.cta().rank));
  cluster.issue(std::move(whole), engine, w, lanes);
  return Flow::next;
}

// --- fence, commit_group, wait_group ---

Flow run_fence(Warp& w, const Inst&, uint32_t lanes) {
  require_all_lanes(w, lanes);
  warpgroup_of(w, lanes);
  if (Observer* o = w.cluster().observer()) o->fence(w, w.instruction(), lanes);
  return Flow::next;
}

Flow run_commit(Warp& w, const Inst&, uint32_t lanes) {
  require_all_lanes(w, lanes);
  Warpgroup& g = warpgroup_of(w, lanes);
  const size_t rank = w.index() % kWarps;
  g.commits[rank].push_back(g.joined[rank]);
  return Flow::next;
}

// Wait::a: the operations that must be complete.
bool wait_ready(Warp& w, const Wait& wait) { return warpgroup_of(w, wait.lanes).completed >= wait.a; }
std::string describe_wait(const Warp& w, const Wait& wait) {
  Warpgroup& g = warpgroup_of(const_cast<Warp&>(w), wait.lanes);
  std::string text = tw::format("wgmma.wait_group: {} of {} operations are complete", g.completed, wait.a);
  if (!g.gathering.empty()) {
    text += tw::format("; {} of 4 warps have executed the next wgmma.mma_async", g.gathering.front()->warps);
  }
  return text;
}
constexpr WaitKind kWait{"wgmma.wait_group", &wait_ready, &describe_wait, false};

Flow run_wait(Warp& w, const Inst& inst, uint32_t lanes) {
  require_all_lanes(w, lanes);
  Warpgroup& g = warpgroup_of(w, lanes);
  auto& commits = g.commits[w.index() % kWarps];
  const auto pending = static_cast<size_t>(inst.imm);
  while (commits.size() > pending + 1) commits.pop_front();
  const uint64_t covered = commits.size() > pending ? commits.front() : 0;
  if (g.completed < covered) return w.suspend(kWait, inst, lanes, covered);
  if (g.tile != nullptr && g.tile_last <= covered) g.release_tile();
  return passed(w, lanes);
}

// --- decoding ---

DType element(Decoding& d, std::string_view token) {
  if (token == "s8") return DType::i8;
  if (token == "s32") return DType::i32;
  for (DType t : {DType::f16, DType::bf16, DType::tf32, DType::f32, DType::e4m3, DType::e5m2, DType::u8}) {
    if (token == name(t)) return t;
  }
  d.unsupported(tw::format("the type .{}", token));
}

int64_t immediate(Decoding& d, size_t i, const char* what) {
  const auto* value = d.operand(i).as<ptx::Immediate>();
  if (value == nullptr) d.unsupported(tw::format("{} that is no immediate", what));
  return static_cast<int64_t>(value->bits);
}

bool negates(Decoding& d, size_t i, const char* what) {
  int64_t v = immediate(d, i, what);
  if (v != 1 && v != -1) user_error(d.ptx.loc, "{}: {} is {}; it must be 1 or -1", d.ptx.text(), what, v);
  return v == -1;
}

bool transposes(Decoding& d, size_t i, const char* what) {
  int64_t v = immediate(d, i, what);
  if (v != 0 && v != 1) user_error(d.ptx.loc, "{}: {} is {}; it must be 0 or 1", d.ptx.text(), what, v);
  return v == 1;
}

// "m64n128k16"
void decode_shape(Decoding& d, std::string_view token, Mma& m) {
  size_t n = token.find('n'), k = token.find('k');
  if (!token.starts_with("m64") || n == token.npos || k == token.npos)
    d.unsupported(tw::format("the shape .{}", token));
  std::from_chars(token.data() + n + 1, token.data() + k, m.n);
  std::from_chars(token.data() + k + 1, token.data() + token.size(), m.k);
}

// "Matrix Shape": the table of the section.
void check_shape(Decoding& d, const Mma& m) {
  int k = m.a == DType::tf32 ? 8 : bits(m.a) == 16 ? 16 : 32;
  bool integer = is_integer(m.a);
  bool n_ok = m.n >= 8 && m.n <= 256 && m.n % 8 == 0 && (!integer || m.n <= 32 ? true : m.n % 16 == 0);
  if (m.k != k || !n_ok) {
    user_error(d.ptx.loc, "{}: {} operands have k{} and n8 to n256 in steps of {}", d.ptx.text(), name(m.a),
               k, integer ? "8 up to 32, then 16" : "8");
  }
}

std::vector<Slot> register_slots(Decoding& d, const ptx::Operand& o, int expected, const char* what) {
  const auto* v = o.as<ptx::Vector>();
  if (v == nullptr || static_cast<int>(v->elements.size()) != expected) {
    user_error(d.ptx.loc, "{}: {} must be a vector of {} registers", d.ptx.text(), what, expected);
  }
  std::vector<Slot> slots;
  for (const ptx::Operand& e : v->elements) slots.push_back(d.source(e, 4));
  return slots;
}

void decode_mma(Decoding& d) {
  if (d.take("sp")) d.unsupported("sparse wgmma");
  Mma m;
  m.saturate = d.take("satfinite");
  decode_shape(d, d.take_next(), m);
  m.d = element(d, d.take_next());
  m.a = element(d, d.take_next());
  m.b = element(d, d.take_next());
  check_shape(d, m);
  m.d_registers = register_slots(d, d.operand(0), wgmma_accumulator_registers(m.d, m.n), "d");
  m.a_in_registers = d.operand(1).is<ptx::Vector>();
  if (m.a_in_registers) m.a_registers = register_slots(d, d.operand(1), 4, "a");
  else m.a_descriptor = d.source(1, 8);
  m.b_descriptor = d.source(2, 8);
  m.scale_d = d.predicate(d.operand(3));
  size_t next = 4;
  if (!is_integer(m.a)) {
    bool negate_a = negates(d, next++, "imm-scale-a");
    m.negate = negates(d, next++, "imm-scale-b") != negate_a;
    if (bits(m.a) == 16) {
      if (!m.a_in_registers) m.transpose_a = transposes(d, next++, "imm-trans-a");
      m.transpose_b = transposes(d, next++, "imm-trans-b");
    }
  }
  d.inst.extra = d.keep(std::move(m));
  d.inst.run = &run_mma;
}

void decode_wgmma(Decoding& d) {
  if (d.arch() != "sm_90a") {
    user_error(d.ptx.loc, "{} requires sm_90a; the machine is {}", d.ptx.text(), d.arch());
  }
  std::string_view what = d.take_next();
  d.take("sync");
  d.take("aligned");
  d.inst.gather = Gather::aligned;
  if (what == "mma_async") return decode_mma(d);
  if (what == "fence") d.inst.run = &run_fence;
  if (what == "commit_group") d.inst.run = &run_commit;
  if (what == "wait_group") {
    d.inst.imm = immediate(d, 0, "N");
    d.inst.run = &run_wait;
  }
  if (d.inst.run == nullptr) d.unsupported(tw::format("wgmma.{}", what));
}

}  // namespace

void register_wgmma(Registry& r) { r.add("wgmma", &decode_wgmma); }

}  // namespace tw::sim
