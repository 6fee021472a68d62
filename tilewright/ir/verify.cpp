#include <algorithm>
#include <bit>
#include <map>
#include <unordered_set>
#include <utility>

#include "tilewright/base/error.h"
#include "tilewright/ir/active_set.h"
#include "tilewright/ir/kernel.h"

namespace tw::ir {
namespace {

std::string show(const std::vector<int64_t>& shape) {
  std::string s;
  for (int64_t e : shape) s += (s.empty() ? "" : " x ") + (e ? format("{}", e) : std::string("?"));
  return s;
}

class Verifier {
 public:
  explicit Verifier(const Kernel& k) : kernel_(k) {
    for (const BufferRef& b : k.globals) buffers_.insert(b.get());
    for (const BufferRef& b : k.buffers) buffers_.insert(b.get());
    for (const VarRef& v : k.sizes) variables_.insert(v.get());
    for (const VarRef& v : k.scalars) variables_.insert(v.get());
  }

  Block block(const Block& in, const ActiveSet& active) {
    Block out;
    std::vector<const Variable*> declared;
    std::map<const Buffer*, Bound> outer = std::exchange(bound_, {});
    for (const Stmt& s : in) {
      loc_ = s.loc;
      if (active.empty()) user_error(s.loc, "no thread reaches this statement").with_guard(active);
      out.push_back(
          {std::visit([&](const auto& n) -> decltype(s.node) { return statement(n, active); }, s.node),
           s.loc});
      if (auto* d = std::get_if<Declare>(&s.node)) declared.push_back(d->variable.get());
    }
    for (const Variable* v : declared) variables_.erase(v);
    for (const auto& [barrier, bound] : bound_)
      throw Error(ErrorKind::user, bound.loc,
                  format("no arrive on '{}' follows this copy in its block, so nobody expects its {} bytes",
                         barrier->name, bound.bytes),
                  {{barrier->loc, format("'{}' is declared here", barrier->name)}});
    bound_ = std::move(outer);
    return out;
  }

 private:
  struct Bound {  // copies that will signal a barrier, in the block being checked
    int64_t bytes = 0;
    SourceLoc loc;
  };
  struct Raised {
    Error error;
    [[noreturn]] void with_guard(const ActiveSet& active) const {
      if (!active.narrowed_at()) throw error;
      throw error.with_note(active.narrowed_at(), "active threads are narrowed here: " + active.to_string());
    }
  };
  template <class... Args>
  static Raised user_error(const SourceLoc& loc, fmt::format_string<Args...> text, Args&&... args) {
    return {Error(ErrorKind::user, loc, tw::vformat(text, fmt::make_format_args(args...)))};
  }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw Error(ErrorKind::user, loc_, tw::vformat(text, fmt::make_format_args(args...)));
  }

  void fits(Scope scope, const ActiveSet& active, const std::string& what) const {
    if (auto why = active.unfit(scope)) {
      user_error(loc_, "{} needs whole {}s, but {}", what, scope == Scope::cta ? "CTA" : name(scope), *why)
          .with_guard(active);
    }
  }

  void known(const Expr& e) const {
    if (!e.defined()) fail("an expression is missing");
    visit(e, [&](const Expr& x) {
      if (x->op == Op::variable && !variables_.contains(x->variable.get()))
        throw Error(
            ErrorKind::user, loc_, format("variable '{}' is not alive here", x->variable->name),
            {{x->variable->loc, "it is declared here, in a block that has ended or in another kernel"}});
      if (x->op == Op::load && !buffers_.contains(x->buffer.get()))
        fail("buffer '{}' belongs to another kernel", x->buffer->name);
    });
  }

  // What an offset can be in the active threads of any CTA of the cluster.
  Range reach(const Expr& offset, const ActiveSet& active) const {
    Range all;
    for (int rank = 0; rank < kernel_.ctas(); ++rank) {
      Range r = active.range(at_rank(offset, rank));
      if (!r.lo) return range(offset);
      all.lo = std::min(all.lo.value_or(*r.lo), *r.lo);
      all.hi = std::max(all.hi.value_or(*r.hi), *r.hi);
    }
    return all;
  }

  // over_edge: a tile of global memory may leave its tensor, as those of copy engines do.
  void known(const Tile& t, const ActiveSet& active, bool over_edge = false) const {
    const Buffer& b = *t.buffer;
    if (!buffers_.contains(&b)) fail("buffer '{}' belongs to another kernel", b.name);
    if (t.dims.size() != b.shape.size())
      fail("'{}' has {} dimensions, the tile gives {}", b.name, b.shape.size(), t.dims.size());
    const bool fixed = std::all_of(t.dims.begin(), t.dims.end(),
                                   [](const TileDim& d) { return d.offset.constant().has_value(); });
    for (size_t i = 0; i < t.dims.size(); ++i) {
      const TileDim& d = t.dims[i];
      known(d.offset);
      auto size = b.shape[i].constant(), offset = d.offset.constant();
      if (!size) continue;
      Range r = reach(d.offset, active);
      int64_t low = offset.value_or(r.lo.value_or(0)), high = offset.value_or(r.hi.value_or(low));
      // Tiles of global memory may reach over the edge: that is checked against the shape when they are
      // copied. One that is the same in every CTA does so by mistake, unless the tensor is smaller than a
      // tile.
      if (b.space == Space::global && (!fixed || *offset == 0 || over_edge)) continue;
      if (low < 0 || (offset ? low : high) + d.extent > *size)
        throw Error(
            ErrorKind::user, loc_,
            format("tile {} leaves '{}': dimension {} has {} elements", to_string(t), b.name, i, *size),
            {{b.loc, format("'{}' is declared here", b.name)}});
    }
  }

  // Gives open extents of `a` the extents of `b`.
  void infer(Tile& a, const Tile& b) const {
    std::vector<int64_t> other = b.shape();
    size_t i = 0;
    bool short_rank = a.shape().size() != other.size();
    for (TileDim& d : a.dims) {
      if (!d.kept) continue;
      if (d.extent == 0) {
        if (short_rank) fail("cannot infer the extents of {} from {}", to_string(a), to_string(b));
        d.extent = other[i];
      }
      ++i;
    }
  }

  void same_shape(const Tile& a, const Tile& b, const char* what) const {
    if (a.shape() != b.shape())
      throw Error(ErrorKind::user, loc_,
                  format("{}: shapes differ: {} is {}, {} is {}", what, to_string(a), show(a.shape()),
                         to_string(b), show(b.shape())),
                  {{a.buffer->loc, format("'{}' is declared here", a.buffer->name)},
                   {b.buffer->loc, format("'{}' is declared here", b.buffer->name)}});
  }

  Declare statement(const Declare& d, const ActiveSet&) {
    known(d.value);
    variables_.insert(d.variable.get());
    return d;
  }
  Assign statement(const Assign& a, const ActiveSet&) {
    known(Expr(a.variable));
    known(a.value);
    if (a.variable->assigned_once)
      fail("'{}' is a constant of this kernel and cannot be assigned", a.variable->name);
    return a;
  }
  Store statement(const Store& s, const ActiveSet& active) {
    known(s.element, active);
    known(s.value);
    const Buffer& b = *s.element.buffer;
    if (!s.element.shape().empty()) fail("a store writes one element; {} is a tile", to_string(s.element));
    if (b.space != Space::global && b.space != Space::shared) fail("'{}' is not in memory", b.name);
    if (s.value.type() != b.dtype)
      fail("'{}' holds {}, the value is {}; use cast", b.name, name(b.dtype), name(s.value.type()));
    return s;
  }
  If statement(const If& i, const ActiveSet& active) {
    known(i.condition);
    if (i.condition.type() != DType::b1)
      fail("a condition must be a truth value, got {}", name(i.condition.type()));
    If out = i;
    SourceLoc here = loc_;
    out.then = std::make_shared<Block>(block(*i.then, active.guarded(i.condition, here)));
    if (i.otherwise)
      out.otherwise = std::make_shared<Block>(block(*i.otherwise, active.guarded(!i.condition, here)));
    return out;
  }
  For statement(const For& f, const ActiveSet& active) {
    known(f.begin);
    known(f.end);
    if (f.step <= 0) fail("the step of loop '{}' is {}; it must be positive", f.variable->name, f.step);
    For out = f;
    variables_.insert(f.variable.get());
    // A trip count that differs between threads leaves an unknown part of them active.
    bool same_count = is_uniform(f.begin) && is_uniform(f.end);
    ActiveSet inside = same_count ? active : active.guarded(Expr(f.variable) < f.end, loc_);
    out.body = std::make_shared<Block>(block(*f.body, inside));
    variables_.erase(f.variable.get());
    return out;
  }
  While statement(const While& w, const ActiveSet& active) {
    known(w.condition);
    While out = w;
    out.body = std::make_shared<Block>(block(*w.body, active.guarded(w.condition, loc_)));
    return out;
  }
  Role statement(const Role& r, const ActiveSet& active) {
    if (r.first_warp < 0 || r.first_warp + r.warps > kernel_.warps())
      fail("role '{}' takes warps {}..{}, the CTA has {}", r.name, r.first_warp, r.first_warp + r.warps - 1,
           kernel_.warps());
    if (r.registers != 0) {
      if (r.registers < 24 || r.registers > 256 || r.registers % 8 != 0)
        fail("role '{}': registers are 24 to 256 in steps of 8, not {}", r.name, r.registers);
      if (r.first_warp % 4 != 0 || r.warps % 4 != 0)
        fail("role '{}': registers are given to whole warpgroups, not to warps {}..{}", r.name, r.first_warp,
             r.first_warp + r.warps - 1);
    }
    Role out = r;
    out.body = std::make_shared<Block>(block(*r.body, active.warps(r.first_warp, r.warps, loc_)));
    return out;
  }
  Elected statement(const Elected& e, const ActiveSet& active) {
    fits(Scope::warp, active, "electing a lane");
    Elected out = e;
    out.body = std::make_shared<Block>(block(*e.body, active.elected(loc_)));
    return out;
  }
  Sync statement(const Sync& s, const ActiveSet& active) {
    if (s.scope == Scope::cta_pair) fail("no barrier spans a CTA pair alone: use cluster.sync");
    fits(s.scope, active, format("{}.sync", name(s.scope)));
    if (s.scope == Scope::cluster && kernel_.ctas() > 1 && !active.in_every_cta())
      user_error(loc_, "cluster.sync needs every CTA of the cluster").with_guard(active);
    return s;
  }
  BarrierOp statement(const BarrierOp& b, const ActiveSet& active) {
    known(b.stage);
    if (b.operand.defined()) known(b.operand);
    if (!buffers_.contains(b.barrier.get())) fail("barrier '{}' belongs to another kernel", b.barrier->name);
    Range r = range(b.stage);
    int64_t stages = *b.barrier->shape[0].constant();
    if ((r.lo && *r.lo >= stages) || (b.stage.constant() && *b.stage.constant() < 0))
      fail("barrier '{}' has {} stages, stage {} is asked for", b.barrier->name, stages, to_string(b.stage));
    if (b.rank.defined()) known(b.rank);
    of_owner(b, active);
    // An elected lane stands for its warp.
    if (b.kind == BarrierOp::Kind::arrive && !active.one_lane_a_warp())
      fits(b.scope, active, format("{}.arrive", name(b.scope)));
    if (b.multicast >> kernel_.ctas() != 0)
      fail("commit to '{}': the mask {:#x} names CTAs beyond the cluster's {}", b.barrier->name, b.multicast,
           kernel_.ctas());
    if (b.kind != BarrierOp::Kind::expect || b.operand.defined()) return b;
    auto bound = bound_.extract(b.barrier.get());
    if (bound.empty()) fail("no copy of this block is bound to '{}' before its arrive", b.barrier->name);
    // The even CTA expects what its peer loads as well, when that runs the same copies.
    const bool both = b.barrier->scope == Scope::cta_pair && active.in_both_of_a_pair();
    BarrierOp out = b;
    out.operand = Expr(bound.mapped().bytes * (both ? 2 : 1));
    return out;
  }
  // What the CTA that holds a barrier of several must do itself.
  void of_owner(const BarrierOp& b, const ActiveSet& active) const {
    const Scope owner = b.barrier->scope;
    if (owner == Scope::cta) return;
    const char* home = owner == Scope::cta_pair ? "the even CTA of each pair" : "CTA 0 of the cluster";
    if (b.rank.defined()) fail("'{}' lies in {}: to arrive there takes no rank", b.barrier->name, home);
    if (b.kind == BarrierOp::Kind::wait && !active.in_home_of(owner))
      throw Error(ErrorKind::user, loc_,
                  format("'{}' lies in {}, which alone can wait for it: guard the wait with cluster_rank",
                         b.barrier->name, home),
                  {{b.barrier->loc, format("'{}' is declared here", b.barrier->name)}});
    if (b.kind == BarrierOp::Kind::expect && !active.reaches_home_of(owner))
      fail("'{}' lies in {}, which expects the bytes but does not come here", b.barrier->name, home);
  }
  TryCancel statement(const TryCancel& t, const ActiveSet& active) {
    response(t.response, active);
    known(t.stage);
    if (!active.in_every_cta())
      fail("try_cancel is for every CTA of the cluster: CTA 0 asks, all are answered");
    if (!active.one_thread())
      fail("try_cancel asks once for each thread that runs it: active are {}; elect one", active.to_string());
    Bound& bound = bound_[t.barrier.get()];
    bound.bytes += kResponseBytes;
    bound.loc = loc_;
    return t;
  }
  QueryCancel statement(const QueryCancel& q, const ActiveSet& active) {
    response(q.response, active);
    variables_.insert(q.cancelled.get());
    variables_.insert(q.first_cta.get());
    return q;
  }
  static constexpr int64_t kResponseBytes = 16;
  void response(const Tile& t, const ActiveSet& active) const {
    if (!is_blackwell(kernel_.arch)) fail("{} has no cluster launch control", name(kernel_.arch));
    int64_t bytes = bits(t.buffer->dtype) / 8;
    for (int64_t e : t.shape()) bytes *= e;
    if (t.buffer->space != Space::shared || bytes != kResponseBytes)
      fail("the answer of try_cancel is {} bytes in shared memory; {} is {} in {}", kResponseBytes,
           to_string(t), bytes, name(t.buffer->space));
    known(t, active);
  }
  Intrinsic statement(const Intrinsic& i, const ActiveSet& active) {
    fits(i.scope, active, i.opcode);
    for (const Intrinsic::Operand& o : i.operands) {
      if (const Expr* x = std::get_if<Expr>(&o)) known(*x);
      else known(std::get<Tile>(o), active);
    }
    if (i.result) variables_.insert(i.result.get());
    return i;
  }

  TileOp statement(const TileOp& op, const ActiveSet& active) {
    // What a pair does together, one thread of it issues: a matter of dispatch.
    if (op.scope != Scope::cta_pair) fits(op.scope, active, format("{}.{}", name(op.scope), name(op.kind)));
    TileOp out = op;
    switch (op.kind) {
      case TileOpKind::copy: copy(out); break;
      case TileOpKind::copy_async: copy_async(out); break;
      case TileOpKind::fill: break;
      case TileOpKind::compute: compute(out); break;
      case TileOpKind::gemm_async: gemm(out); break;
    }
    for (const Tile& t : out.operands) {
      for (const TileDim& d : t.dims)
        if (d.kept && d.extent <= 0)
          fail("the extents of {} are open and nothing determines them", to_string(t));
      known(t, active, op.kind == TileOpKind::copy_async);
    }
    return out;
  }

  void copy(TileOp& op) const {
    infer(op.operands[0], op.operands[1]);
    infer(op.operands[1], op.operands[0]);
    const Buffer &to = *op.operands[0].buffer, &from = *op.operands[1].buffer;
    if (to.dtype != from.dtype)
      fail("copy does not convert: '{}' holds {}, '{}' holds {}; use cast", to.name, name(to.dtype),
           from.name, name(from.dtype));
    same_shape(op.operands[0], op.operands[1], "copy");
  }

  void copy_async(TileOp& op) {
    copy(op);
    const Buffer& to = *op.operands[0].buffer;
    if (!op.barrier) {
      if (to.space == Space::shared)
        fail("a copy to shared memory signals a barrier; '{}' is given none", to.name);
      return;
    }
    known(op.stage);
    if (!buffers_.contains(op.barrier.get()))
      fail("barrier '{}' belongs to another kernel", op.barrier->name);
    int64_t bytes = bits(to.dtype) / 8;
    for (int64_t e : op.operands[0].shape()) bytes *= e;
    // Each CTA of a multicast receives as much from every CTA that takes part.
    Bound& bound = bound_[op.barrier.get()];
    bound.bytes += bytes * std::max(1, std::popcount(op.multicast));
    bound.loc = loc_;
  }

  void compute(TileOp& op) const {
    for (size_t i = 1; i < op.operands.size(); ++i) {
      infer(op.operands[i], op.operands[0]);
      same_shape(op.operands[0], op.operands[i], "element-wise operation");
    }
    DType to = op.operands[0].buffer->dtype, from = op.value.type();
    if (to != from)
      fail("'{}' holds {}, the expression gives {}; use cast", op.operands[0].buffer->name, name(to),
           name(from));
  }

  void gemm(TileOp& op) const {
    auto c = op.operands[0].shape(), a = op.operands[1].shape(), b = op.operands[2].shape();
    if (c.size() != 2 || a.size() != 2 || b.size() != 2)
      fail("gemm_async takes matrices: accumulator {}, A {}, B {}", show(c), show(a), show(b));
    if (op.scope == Scope::cta_pair) {
      if (a[0] != c[0] || 2 * b[0] != c[1] || a[1] != b[1])
        fail(
            "cta_pair.gemm_async: each CTA holds half the rows of A and D and half the rows of B; "
            "accumulator "
            "{} (M/2 x N), A {} (M/2 x K), B {} (N/2 x K) do not fit together",
            show(c), show(a), show(b));
    } else if (a[0] != c[0] || b[0] != c[1] || a[1] != b[1])
      fail("gemm_async: accumulator {} (M x N), A {} (M x K), B {} (N x K) do not fit together", show(c),
           show(a), show(b));
    DType x = op.operands[1].buffer->dtype, y = op.operands[2].buffer->dtype;
    if (bits(x) != bits(y)) fail("gemm_async: A holds {}, B holds {}", name(x), name(y));
  }

  const Kernel& kernel_;
  std::map<const Buffer*, Bound> bound_;
  std::unordered_set<const Buffer*> buffers_;
  std::unordered_set<const Variable*> variables_;
  SourceLoc loc_;
};

}  // namespace

Kernel verify(Kernel kernel) {
  if (kernel.threads <= 0 || kernel.threads > 1024 || kernel.threads % 32 != 0)
    user_error(kernel.loc, "a CTA has 32 to 1024 threads in whole warps; '{}' asks for {}", kernel.name,
               kernel.threads);
  int ctas = kernel.ctas();
  if (ctas < 1 || ctas > 16)
    user_error(kernel.loc, "a cluster has 1 to 16 CTAs; '{}' asks for {}", kernel.name, ctas);
  for (const BufferRef& b : kernel.buffers)
    if (b->scope == Scope::cta_pair && ctas % 2 != 0)
      user_error(b->loc, "'{}' belongs to a CTA pair; '{}' has clusters of {} CTA{}", b->name, kernel.name,
                 ctas, ctas == 1 ? "" : "s");
  kernel.body = Verifier(kernel).block(kernel.body, ActiveSet::all(kernel.threads, ctas));
  return kernel;
}

}  // namespace tw::ir
