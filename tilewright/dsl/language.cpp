#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/dsl/recorder.h"

namespace tw::dsl {
namespace {

void record(decltype(ir::Stmt::node) node, const Where& where) {
  Recorder::current(where).add(std::move(node), where);
}

ir::TileOp tile_op(ir::TileOpKind kind, ir::Scope scope, std::vector<ir::Tile> operands,
                   const Expr& value = {}, std::string_view dispatch = {}) {
  ir::TileOp op;
  op.kind = kind;
  op.scope = scope;
  op.operands = std::move(operands);
  op.value = value;
  op.dispatch = dispatch;
  return op;
}

ir::VarRef variable(std::string_view name, DType type, bool once, const SourceLoc& loc) {
  auto v = std::make_shared<ir::Variable>();
  v->name = name;
  v->type = type;
  v->assigned_once = once;
  v->loc = loc;
  return v;
}

}  // namespace

const Expr thread_id{ir::ScopeId::thread}, lane_id{ir::ScopeId::lane}, warp_id{ir::ScopeId::warp},
    warpgroup_id{ir::ScopeId::warpgroup};
const Expr cluster_rank{ir::ScopeId::cluster_rank};
const Dim3 cta_id{Expr(ir::ScopeId::cta_x), Expr(ir::ScopeId::cta_y), Expr(ir::ScopeId::cta_z)};
const Dim3 grid_dim{Expr(ir::ScopeId::grid_x), Expr(ir::ScopeId::grid_y), Expr(ir::ScopeId::grid_z)};

// ---- tiles ----

Tile Tile::operator[](const Expr& index) const {
  ir::Tile t = tile_;
  auto first = std::find_if(t.dims.begin(), t.dims.end(), [](const ir::TileDim& d) { return d.kept; });
  if (first == t.dims.end()) user_error(t.buffer->loc, "'{}' has no dimension left to index", t.buffer->name);
  first->offset = first->offset + index;
  first->extent = 1;
  first->kept = false;
  return Tile(std::move(t));
}

Tile Tile::tile(std::initializer_list<Expr> offset, std::initializer_list<int64_t> extents,
                Where where) const {
  ir::Tile t = tile_;
  size_t kept = t.shape().size();
  if (offset.size() != kept || (extents.size() != 0 && extents.size() != kept))
    user_error(where, "a tile of '{}' takes {} offsets{}, got {}", t.buffer->name, kept,
               extents.size() ? format(" and {} extents", kept) : "", offset.size());
  auto o = offset.begin();
  auto e = extents.begin();
  for (ir::TileDim& d : t.dims) {
    if (!d.kept) continue;
    d.offset = d.offset + *o++;
    d.extent = extents.size() ? *e++ : 0;
  }
  return Tile(std::move(t));
}

namespace {
ir::Tile element_of(const Tile& tile, std::initializer_list<Expr> index, const Where& where) {
  ir::Tile t = tile.ir();
  if (index.size() != t.shape().size())
    user_error(where, "an element of '{}' has {} indices, got {}", t.buffer->name, t.shape().size(),
               index.size());
  auto i = index.begin();
  for (ir::TileDim& d : t.dims) {
    if (!d.kept) continue;
    d = {d.offset + *i++, 1, false};
  }
  return t;
}
}  // namespace

Expr Tile::load(std::initializer_list<Expr> index, Where where) const {
  ir::Tile t = element_of(*this, index, where);
  if (t.buffer->space != ir::Space::global && t.buffer->space != ir::Space::shared)
    user_error(where, "'{}' is not in memory: only elements of global and shared buffers are loaded",
               t.buffer->name);
  std::vector<Expr> at;
  for (const ir::TileDim& d : t.dims) at.push_back(d.offset);
  return ir::load(t.buffer, t.buffer->dtype, std::move(at));
}

void Tile::store(std::initializer_list<Expr> index, const Expr& value, Where where) const {
  record(ir::Store{element_of(*this, index, where), value}, where);
}

// ---- element-wise expressions ----

TileExpr::TileExpr(const Tile& tile) : value_(ir::element(1, tile.dtype())), tiles_{tile.ir()} {}
TileExpr::TileExpr(const Expr& scalar) : value_(scalar) {}
TileExpr::TileExpr(double scalar) : value_(scalar) {}

namespace {

// Renumbers the elements of `e` to follow `before` operands.
Expr shifted(const Expr& e, int before) {
  if (before == 0) return e;
  if (e->op == ir::Op::element) return ir::element(e->index + before, e.type());
  if (e->args.empty()) return e;
  ir::ExprNode n = *e;
  for (Expr& a : n.args) a = shifted(a, before);
  return ir::make_node(n.op, n.type, std::move(n.args));
}

template <class F>
TileExpr combine(const TileExpr& a, const TileExpr& b, F f) {
  std::vector<ir::Tile> tiles = a.tiles();
  Expr right = shifted(b.value(), static_cast<int>(tiles.size()));
  tiles.insert(tiles.end(), b.tiles().begin(), b.tiles().end());
  return {f(a.value(), right), std::move(tiles)};
}

}  // namespace

TileExpr operator+(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return x + y; });
}
TileExpr operator-(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return x - y; });
}
TileExpr operator*(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return x * y; });
}
TileExpr operator/(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return x / y; });
}
TileExpr operator<(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return x < y; });
}
TileExpr min(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return ir::min(x, y); });
}
TileExpr max(const TileExpr& a, const TileExpr& b) {
  return combine(a, b, [](auto& x, auto& y) { return ir::max(x, y); });
}
TileExpr exp2(const TileExpr& a) { return {ir::unary(ir::Op::exp2, a.value()), a.tiles()}; }
TileExpr cast(DType type, const TileExpr& a) { return {ir::cast(type, a.value()), a.tiles()}; }
TileExpr coordinate(int dimension) { return {ir::coordinate(dimension), {}}; }
TileExpr select(const TileExpr& condition, const TileExpr& yes, const TileExpr& no) {
  TileExpr both = combine(yes, no, [](auto& x, auto& y) {
    return ir::make_node(ir::Op::select, x.type(), {true, x, y});
  });
  return combine(condition, both, [](auto& c, auto& s) { return ir::select(c, s->args[1], s->args[2]); });
}

// ---- run-time values and control flow ----

Var::Var(std::string_view name, const Expr& initial, Where where)
    : variable_(variable(name, initial.type(), false, where)) {
  const_cast<ir::Variable&>(*variable_).uniform = ir::is_uniform(initial);
  record(ir::Declare{variable_, initial}, where);
}

Var::Var(std::string_view name, const Expr& initial, int64_t least, Where where) : Var(name, initial, where) {
  const_cast<ir::Variable&>(*variable_).lo = least;
}

Var& Var::operator=(const Expr& value) { return assign(value, Where::current()); }

Var& Var::assign(const Expr& value, Where where) {
  // Written by the builder alone, before the kernel is handed over.
  if (!ir::is_uniform(value)) const_cast<ir::Variable&>(*variable_).uniform = false;
  record(ir::Assign{variable_, ir::cast(variable_->type, value)}, where);
  return *this;
}

void if_(const Expr& condition, const std::function<void()>& then, Where where) {
  record(ir::If{condition, Recorder::current(where).block(then), nullptr}, where);
}
void if_(const Expr& condition, const std::function<void()>& then, const std::function<void()>& otherwise,
         Where where) {
  Recorder& r = Recorder::current(where);
  auto yes = r.block(then), no = r.block(otherwise);
  record(ir::If{condition, yes, no}, where);
}

void for_range(const Expr& end, const std::function<void(Expr)>& body, Where where) {
  for_range(0, end, 1, body, where);
}
void for_range(const Expr& begin, const Expr& end, int64_t step, const std::function<void(Expr)>& body,
               Where where) {
  Recorder& r = Recorder::current(where);
  static constexpr const char* kNames[] = {"i", "j", "k", "l"};
  static thread_local int depth = 0;
  auto v = std::make_shared<ir::Variable>();
  v->name = kNames[depth % 4];
  v->type = ir::cast(end.type(), begin).type();
  v->lo = ir::range(begin).lo;
  if (auto hi = ir::range(end).hi) v->hi = *hi - 1;
  v->multiple_of = std::min(ir::alignment(begin), ir::alignment(Expr(step)));
  v->uniform = ir::is_uniform(begin) && ir::is_uniform(end);
  v->loc = where;
  ++depth;
  auto b = r.block([&] { body(Expr(ir::VarRef(v))); });
  --depth;
  record(ir::For{v, ir::cast(v->type, begin), end, step, b}, where);
}
void while_(const Expr& condition, const std::function<void()>& body, Where where) {
  record(ir::While{condition, Recorder::current(where).block(body)}, where);
}
void elected(const std::function<void()>& body, Where where) {
  record(ir::Elected{Recorder::current(where).block(body)}, where);
}

// ---- tile operations ----

void ScopeOps::copy(const Tile& dst, const Tile& src, const CopyOptions& options, Where where) const {
  record(tile_op(ir::TileOpKind::copy, scope_, {dst.ir(), src.ir()}, {}, options.dispatch), where);
}
void ScopeOps::copy_async(const Tile& dst, const Tile& src, const CopyAsyncOptions& options,
                          Where where) const {
  ir::TileOp op = tile_op(ir::TileOpKind::copy_async, scope_, {dst.ir(), src.ir()}, {}, options.dispatch);
  op.barrier = options.signal.barrier;
  op.stage = options.signal.stage;
  op.multicast = options.multicast;
  record(std::move(op), where);
}
void ScopeOps::fill(const Tile& dst, double value, Where where) const {
  record(tile_op(ir::TileOpKind::fill, scope_, {dst.ir()}, ir::constant(dst.dtype(), value), {}), where);
}
void ScopeOps::compute(const Tile& dst, const TileExpr& expression, Where where) const {
  std::vector<ir::Tile> operands{dst.ir()};
  operands.insert(operands.end(), expression.tiles().begin(), expression.tiles().end());
  record(tile_op(ir::TileOpKind::compute, scope_, std::move(operands), expression.value(), {}), where);
}
void ScopeOps::cast(const Tile& dst, const Tile& src, Where where) const {
  compute(dst, dsl::cast(dst.dtype(), src), where);
}
void ScopeOps::gemm_async(const Tile& acc, const Tile& a, const Tile& b, const GemmOptions& options,
                          Where where) const {
  record(tile_op(ir::TileOpKind::gemm_async, scope_, {acc.ir(), a.ir(), b.ir()}, options.accumulate,
                 options.dispatch),
         where);
}
void ScopeOps::sync(Where where) const { record(ir::Sync{scope_}, where); }

WarpRange ScopeOps::operator()(int index, int count) const {
  int warps = scope_ == ir::Scope::warpgroup ? 4 : 1;
  return {index * warps, count * warps};
}

// ---- barriers ----

Ring::Ring(int stages, Side side, Where where)
    : stage("stage", 0, where), phase("phase", static_cast<int>(side), where), stages_(stages) {
  if (stages < 1) user_error(where, "a ring has at least one stage, not {}", stages);
}

void Ring::advance(Where where) {
  Expr next = Expr(stage) + 1, last = next == stages_;
  phase.assign(Expr(phase) ^ cast(DType::i32, last), where);
  stage.assign(select(last, 0, next), where);
}

namespace {
ir::BarrierOp barrier_op(ir::BarrierOp::Kind kind, const ir::BufferRef& barrier, const Expr& stage,
                         const Expr& operand = {}) {
  ir::BarrierOp op;
  op.kind = kind;
  op.barrier = barrier;
  op.stage = stage;
  op.operand = operand;
  return op;
}
}  // namespace

void Barrier::wait(const Expr& stage, const Expr& parity, Where where) const {
  record(barrier_op(ir::BarrierOp::Kind::wait, buffer_, stage, parity), where);
}
void Barrier::wait_all(Ring& ring, Where where) const {
  for (int i = 0; i < ring.stages(); ++i) {
    wait(ring, where);
    ring.advance(where);
  }
}
void Barrier::arrive(const Expr& stage, Where where) const { arrive(thread, stage, where); }
void Barrier::arrive(const ScopeOps& together, const Expr& stage, Where where) const {
  ir::BarrierOp op = barrier_op(ir::BarrierOp::Kind::arrive, buffer_, stage, 1);
  op.scope = together.ir();
  if (op.scope != ir::Scope::thread && op.scope != ir::Scope::warp)
    user_error(where, "the lanes of a warp can arrive as one, those of a {} cannot", ir::name(op.scope));
  record(op, where);
}
void Barrier::arrive_remote(const Expr& stage, const Expr& rank, Where where) const {
  ir::BarrierOp op = barrier_op(ir::BarrierOp::Kind::arrive, buffer_, stage, 1);
  op.rank = rank;
  record(op, where);
}
void TmaBarrier::arrive(const Expr& stage, Where where) const {
  record(barrier_op(ir::BarrierOp::Kind::expect, buffer_, stage), where);
}
void MmaBarrier::commit(const Expr& stage, const CommitOptions& options, Where where) const {
  ir::BarrierOp op = barrier_op(ir::BarrierOp::Kind::commit, buffer_, stage);
  op.multicast = options.multicast;
  record(op, where);
}

}  // namespace tw::dsl

namespace tw::dsl::ptx {

void instruction(std::string_view opcode, std::vector<ir::Intrinsic::Operand> operands, ir::Scope scope,
                 Where where) {
  Recorder::current(where).add(ir::Intrinsic{std::string(opcode), nullptr, std::move(operands), scope},
                               where);
}
void clusterlaunchcontrol_try_cancel(const Tile& response, const Signal& signal, Where where) {
  Recorder::current(where).add(ir::TryCancel{response.ir(), signal.barrier, signal.stage}, where);
}
CancelledCluster clusterlaunchcontrol_query_cancel(const Tile& response, Where where) {
  auto found = variable("found", DType::b1, true, where),
       first = variable("first_cta", DType::i32, true, where);
  const_cast<ir::Variable&>(*first).lo = 0;
  Recorder::current(where).add(ir::QueryCancel{found, first, response.ir()}, where);
  return {Expr(found), Expr(first)};
}
void fence_proxy_async(Where where) {
  instruction("fence.proxy.async.shared::cta", {}, ir::Scope::thread, where);
}
void tcgen05_fence_before_thread_sync(Where where) {
  instruction("tcgen05.fence::before_thread_sync", {}, ir::Scope::thread, where);
}
void tcgen05_fence_after_thread_sync(Where where) {
  instruction("tcgen05.fence::after_thread_sync", {}, ir::Scope::thread, where);
}
void griddepcontrol_wait(Where where) { instruction("griddepcontrol.wait", {}, ir::Scope::thread, where); }
void griddepcontrol_launch_dependents(Where where) {
  instruction("griddepcontrol.launch_dependents", {}, ir::Scope::thread, where);
}
void wgmma_commit_group(Where where) {
  instruction("wgmma.commit_group.sync.aligned", {}, ir::Scope::warpgroup, where);
}
void bulk_commit_group(Where where) {
  instruction("cp.async.bulk.commit_group", {}, ir::Scope::thread, where);
}
void bulk_wait_group_read(int pending, Where where) {
  instruction("cp.async.bulk.wait_group.read", {Expr(pending)}, ir::Scope::thread, where);
}
void bulk_wait_group(int pending, Where where) {
  instruction("cp.async.bulk.wait_group", {Expr(pending)}, ir::Scope::thread, where);
}
void wgmma_wait_group(int pending, Where where) {
  instruction("wgmma.wait_group.sync.aligned", {Expr(pending)}, ir::Scope::warpgroup, where);
}

}  // namespace tw::dsl::ptx
