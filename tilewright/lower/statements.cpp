#include "tilewright/lower/statements.h"

#include "tilewright/base/error.h"
#include "tilewright/lower/address.h"
#include "tilewright/lower/dispatch/dispatch.h"

namespace tw::lowering {

using ir::Expr;

namespace {
Expr barrier_offset(const Context& c, const ir::Buffer& barrier, const Expr& stage) {
  return Expr(static_cast<int64_t>(c.plan.shared.at(&barrier))) + c.resolve(stage) * Expr(8);
}
}  // namespace

Expr barrier_address(const Context& c, const ir::Buffer& barrier, const Expr& stage) {
  return Expr(c.shared_base) + barrier_offset(c, barrier, stage);
}
Expr signal_address(const Context& c, const ir::Buffer& barrier, const Expr& stage) {
  const ir::VarRef& base = barrier.scope == ir::Scope::cta_pair  ? c.pair_base
                           : barrier.scope == ir::Scope::cluster ? c.cluster_base
                                                                 : c.shared_base;
  return Expr(base) + barrier_offset(c, barrier, stage);
}

namespace {

using Variables = std::unordered_set<const ir::Variable*>;

// Variables that a block may change.
void assigned_in(const ir::Block& block, Variables& out) {
  for (const ir::Stmt& s : block) {
    if (auto* a = std::get_if<ir::Assign>(&s.node)) out.insert(a->variable.get());
    else if (auto* i = std::get_if<ir::Intrinsic>(&s.node)) {
      if (i->result) out.insert(i->result.get());
    } else if (auto* f = std::get_if<ir::For>(&s.node)) assigned_in(*f->body, out);
    else if (auto* w = std::get_if<ir::While>(&s.node)) assigned_in(*w->body, out);
    else if (auto* r = std::get_if<ir::Role>(&s.node)) assigned_in(*r->body, out);
    else if (auto* e = std::get_if<ir::Elected>(&s.node)) assigned_in(*e->body, out);
    else if (auto* i2 = std::get_if<ir::If>(&s.node)) {
      assigned_in(*i2->then, out);
      if (i2->otherwise) assigned_in(*i2->otherwise, out);
    }
  }
}

class Writer {
 public:
  explicit Writer(Context& c) : c_(c), e_(c.emit) {}

  void block(const ir::Block& block, const ir::ActiveSet& active) {
    for (const ir::Stmt& s : block) {
      loc_ = s.loc;
      e_.at(s.loc);
      std::visit([&](const auto& n) { statement(n, active); }, s.node);
    }
  }

 private:
  void branch_if_not(const ptx::Operand& predicate, const std::string& target) {
    const auto* p = predicate.as<ptx::RegOperand>();
    e_.emit_if(p->negated ? ptx::reg(p->reg) : ptx::negated(p->reg), "bra", {ptx::symbol(target)});
  }

  void statement(const ir::Declare& d, const ir::ActiveSet&) { e_.declare(d.variable, c_.resolve(d.value)); }
  void statement(const ir::Assign& a, const ir::ActiveSet&) { e_.assign(a.variable, c_.resolve(a.value)); }

  void statement(const ir::Store& s, const ir::ActiveSet&) {
    ptx::RegId value = e_.reg(c_.resolve(s.value));
    e_.emit(format("st.{}.b{}", ir::name(s.element.buffer->space), bits(s.element.buffer->dtype)),
            {e_.address(element_address(c_, s.element, {})), ptx::reg(value)});
  }

  void guarded(const ptx::Operand& predicate, const ir::Block& body, const ir::ActiveSet& active,
               Emitter::RegionKind kind) {
    std::string end = e_.fresh_label("skip");
    branch_if_not(predicate, end);
    e_.open(kind);
    block(body, active);
    e_.close();
    e_.label(end);
  }

  void statement(const ir::If& i, const ir::ActiveSet& active) {
    Expr condition = c_.resolve(i.condition);
    SourceLoc here = loc_;
    ir::ActiveSet yes = active.guarded(i.condition, here), no = active.guarded(!i.condition, here);
    if (auto fixed = condition.constant()) {
      if (*fixed) block(*i.then, yes);
      else if (i.otherwise) block(*i.otherwise, no);
      return;
    }
    ptx::Operand p = e_.value(condition);
    if (!i.otherwise) return guarded(p, *i.then, yes, Emitter::RegionKind::branch);
    std::string otherwise = e_.fresh_label("else"), end = e_.fresh_label("end");
    branch_if_not(p, otherwise);
    e_.open(Emitter::RegionKind::branch);
    block(*i.then, yes);
    e_.emit("bra", {ptx::symbol(end)});
    e_.close();
    e_.label(otherwise);
    e_.open(Emitter::RegionKind::branch);
    block(*i.otherwise, no);
    e_.close();
    e_.label(end);
  }

  // The test stands at the end; a loop that may not run at all is guarded once.
  void statement(const ir::For& f, const ir::ActiveSet& active) {
    Expr begin = c_.resolve(f.begin), end = c_.resolve(f.end);
    Expr runs = begin < end;
    if (runs.is(0)) return;
    if (runs.is(1)) return loop(f, begin, end, active);
    // What is hoisted out of the loop stays behind this guard.
    std::string done = e_.fresh_label("done");
    branch_if_not(e_.value(runs), done);
    e_.open(Emitter::RegionKind::branch);
    loop(f, begin, end, active);
    e_.close();
    e_.label(done);
  }

  void loop(const ir::For& f, const Expr& begin, const Expr& end, const ir::ActiveSet& active) {
    ir::For resolved = f;
    resolved.begin = begin;
    resolved.end = end;
    bool same_count = ir::is_uniform(f.begin) && ir::is_uniform(f.end);
    ir::ActiveSet inside = same_count ? active : active.guarded(Expr(f.variable) < f.end, loc_);
    Variables assigned;
    assigned_in(*f.body, assigned);
    counted_loop(e_, resolved, assigned, [&] { block(*f.body, inside); });
  }

  void statement(const ir::While& w, const ir::ActiveSet& active) {
    std::string top = e_.fresh_label("while"), done = e_.fresh_label("done");
    Variables assigned;
    assigned_in(*w.body, assigned);
    SourceLoc here = loc_;
    e_.open(Emitter::RegionKind::loop, assigned);
    branch_if_not(e_.value(c_.resolve(w.condition)), done);
    block(*w.body, active.guarded(w.condition, here));
    e_.emit("bra", {ptx::symbol(top)});
    e_.close_loop(top);
    e_.label(done);
  }

  void statement(const ir::Role& r, const ir::ActiveSet& active) {
    Expr warp(c_.warp);
    Expr mine = warp >= r.first_warp && warp < r.first_warp + r.warps;
    ir::ActiveSet inside = active.warps(r.first_warp, r.warps, loc_);
    e_.comment("role " + r.name);
    int index = c_.role(r.name), outer = e_.role();
    std::string end = e_.fresh_label("skip");
    if (!mine.is(1)) branch_if_not(e_.value(mine), end);
    e_.role(index);
    e_.open(Emitter::RegionKind::role);
    if (r.registers != 0) {
      // "setmaxnreg": what a role gives back, another may take.
      const char* direction = r.registers > c_.launch_registers() ? "inc" : "dec";
      e_.emit(format("setmaxnreg.{}.sync.aligned.u32", direction), {ptx::integer(r.registers)});
    }
    block(*r.body, inside);
    e_.close();
    e_.role(outer);
    if (!mine.is(1)) e_.label(end);
  }

  void statement(const ir::Elected& el, const ir::ActiveSet& active) {
    ptx::RegId p = e_.fresh(ptx::Type::pred);
    e_.emit("elect.sync", {ptx::pair(ptx::sink(), ptx::reg(p)), ptx::integer(-1)});
    guarded(ptx::reg(p), *el.body, active.elected(loc_), Emitter::RegionKind::branch);
  }

  void statement(const ir::Sync& s, const ir::ActiveSet& active) {
    switch (s.scope) {
      case ir::Scope::thread:
      case ir::Scope::cta_pair: break;  // nothing to wait for; refused by the verifier
      case ir::Scope::warp: e_.emit("bar.warp.sync", {ptx::integer(-1)}); break;
      case ir::Scope::warpgroup:
        if (c_.kernel.threads == 128) {
          e_.emit("barrier.sync.aligned", {ptx::integer(0)});
          break;
        }
        // Barrier 0 is the CTA's; each warpgroup has one of its own.
        e_.emit("barrier.sync.aligned", {active.warp_count() == 4 ? ptx::integer(active.first_warp() / 4 + 1)
                                                                  : ptx::reg(e_.reg(Expr(c_.warp) / 4 + 1)),
                                         ptx::integer(128)});
        break;
      case ir::Scope::cta: e_.emit("barrier.sync.aligned", {ptx::integer(0)}); break;
      case ir::Scope::cluster:
        e_.emit("barrier.cluster.arrive.aligned", {});
        e_.emit("barrier.cluster.wait.aligned", {});
        break;
    }
  }

  void statement(const ir::TileOp& op, const ir::ActiveSet& active) {
    std::string text = format("{}.{} {}", ir::name(op.scope), ir::name(op.kind), to_string(op.operands[0]));
    for (size_t i = 1; i < op.operands.size(); ++i)
      text += (i == 1 ? " <- " : ", ") + to_string(op.operands[i]);
    e_.comment(text);
    dispatch(c_, Site{op, active, loc_});
  }

  void statement(const ir::BarrierOp& b, const ir::ActiveSet& active) {
    switch (b.kind) {
      case ir::BarrierOp::Kind::wait: return wait(b);
      case ir::BarrierOp::Kind::arrive: return arrive(b, active);
      case ir::BarrierOp::Kind::expect: return expect(b, active);
      case ir::BarrierOp::Kind::commit: return commit(b, active);
    }
  }

  void wait(const ir::BarrierOp& b) {
    ptx::Operand at = e_.address(barrier_address(c_, *b.barrier, b.stage));
    ptx::Operand parity = ptx::reg(e_.reg(c_.resolve(b.operand)));
    ptx::RegId done = e_.fresh(ptx::Type::pred);
    std::string top = e_.fresh_label("wait");
    e_.label(top);
    e_.emit("mbarrier.try_wait.parity.shared::cta.b64", {ptx::reg(done), at, parity});
    e_.emit_if(ptx::negated(done), "bra", {ptx::symbol(top)});
  }

  void arrive(const ir::BarrierOp& b, const ir::ActiveSet& active) {
    // Without .release.cluster: the default orders as much here, and ptxas makes no GPU-wide fence of it.
    std::string opcode = "mbarrier.arrive.shared::cta.b64";
    ptx::Operand at = e_.address(signal_address(c_, *b.barrier, b.stage));
    if (b.rank.defined()) {
      ptx::RegId remote = e_.fresh(ptx::Type::b32);
      e_.emit("mapa.shared::cluster.u32",
              {ptx::reg(remote), ptx::reg(e_.reg(barrier_address(c_, *b.barrier, b.stage))),
               ptx::reg(e_.reg(c_.resolve(b.rank)))});
      at = ptx::address(ptx::reg(remote));
    }
    if (b.rank.defined() || b.barrier->scope != ir::Scope::cta)
      opcode = "mbarrier.arrive.shared::cluster.b64";
    if (b.scope == ir::Scope::thread || active.one_lane_a_warp()) return e_.emit(opcode, {ptx::sink(), at});
    e_.emit("bar.warp.sync", {ptx::integer(-1)});
    ptx::RegId one = e_.fresh(ptx::Type::pred);
    e_.emit("elect.sync", {ptx::pair(ptx::sink(), ptx::reg(one)), ptx::integer(-1)});
    e_.emit_if(ptx::reg(one), opcode, {ptx::sink(), at});
  }

  void expect(const ir::BarrierOp& b, const ir::ActiveSet& active) {
    ptx::Operand at = e_.address(barrier_address(c_, *b.barrier, b.stage)),
                 bytes = e_.value(c_.resolve(b.operand));
    std::string opcode = "mbarrier.arrive.expect_tx.shared::cta.b64";
    if (!active.in_home_of(b.barrier->scope))
      e_.emit_if(e_.value(Expr(c_.cluster_rank) % 2 == 0), opcode, {ptx::sink(), at, bytes});
    else e_.emit(opcode, {ptx::sink(), at, bytes});
  }

  void commit(const ir::BarrierOp& b, const ir::ActiveSet& active) {
    if (!ir::is_blackwell(c_.kernel.arch))
      user_error(loc_, "commit belongs to tcgen05; {} has none", ir::name(c_.kernel.arch));
    if (!active.one_thread())
      user_error(loc_, "commit arrives once for each thread that runs it: active are {}; elect one",
                 active.to_string());
    std::string opcode =
        format("tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster", c_.plan.cta_group);
    std::vector<ptx::Operand> operands{e_.address(signal_address(c_, *b.barrier, b.stage))};
    if (b.multicast != 0) {
      opcode += ".multicast::cluster";
      operands.push_back(ptx::reg(e_.reg(ir::integer(DType::u16, b.multicast))));
    }
    e_.emit(opcode + ".b64", std::move(operands));
  }

  void statement(const ir::TryCancel& t, const ir::ActiveSet&) {
    const bool alone = c_.kernel.ctas() == 1;
    std::string opcode =
        format("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{}.b128",
               alone ? "" : ".multicast::cluster::all");
    std::vector<Expr> first(t.response.shape().size(), Expr(0));
    std::vector<ptx::Operand> operands{e_.address(element_address(c_, t.response, first)),
                                       e_.address(barrier_address(c_, *t.barrier, t.stage))};
    if (alone) e_.emit(opcode, std::move(operands));
    else e_.emit_if(e_.value(Expr(c_.cluster_rank) == 0), opcode, std::move(operands));
  }

  void statement(const ir::QueryCancel& q, const ir::ActiveSet&) {
    std::vector<Expr> first(q.response.shape().size(), Expr(0));
    ptx::RegId response = e_.fresh(ptx::Type::b128), found = e_.fresh(ptx::Type::pred),
               cta = e_.fresh(ptx::Type::b32);
    e_.emit("ld.shared.b128", {ptx::reg(response), e_.address(element_address(c_, q.response, first))});
    e_.emit("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128", {ptx::reg(found), ptx::reg(response)});
    e_.emit("mov.b32", {ptx::reg(cta), ptx::integer(0)});
    e_.emit_if(ptx::reg(found), "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128",
               {ptx::reg(cta), ptx::reg(response)});
    e_.bind(q.cancelled, found);
    e_.bind(q.first_cta, cta);
  }

  void statement(const ir::Intrinsic& i, const ir::ActiveSet&) {
    std::vector<ptx::Operand> operands;
    if (i.result) {
      ptx::RegId r = e_.fresh(register_type(i.result->type));
      operands.push_back(ptx::reg(r));
      e_.bind(i.result, r);
    }
    for (const ir::Intrinsic::Operand& o : i.operands) {
      if (const Expr* x = std::get_if<Expr>(&o)) {
        operands.push_back(e_.value(c_.resolve(*x)));
      } else {
        const ir::Tile& t = std::get<ir::Tile>(o);
        std::vector<Expr> first(t.shape().size(), Expr(0));
        operands.push_back(e_.address(element_address(c_, t, first)));
      }
    }
    try {
      e_.emit(i.opcode, std::move(operands));
    } catch (const Error& error) {  // the author's own opcode: his error, not ours
      throw Error(ErrorKind::user, loc_, error.message(), error.notes());
    }
  }

  Context& c_;
  Emitter& e_;
  SourceLoc loc_;
};

}  // namespace

void counted_loop(Emitter& e, const ir::For& loop, const std::unordered_set<const ir::Variable*>& assigned,
                  const std::function<void()>& body) {
  SourceLoc here = e.loc();
  std::string top = e.fresh_label("loop");
  ptx::Operand limit = e.value(loop.end);
  e.declare(loop.variable, loop.begin);
  e.open(Emitter::RegionKind::loop, assigned, &loop);
  body();
  e.at(here);
  e.turn();
  ptx::RegId counter = e.register_of(loop.variable), again = e.fresh(ptx::Type::pred);
  std::string type = type_suffix(loop.variable->type);
  e.emit("add." + type, {ptx::reg(counter), ptx::reg(counter), ptx::integer(loop.step)});
  e.emit("setp.lt." + type, {ptx::reg(again), ptx::reg(counter), limit});
  e.emit_if(ptx::reg(again), "bra", {ptx::symbol(top)});
  e.close_loop(top);
}

void lower_block(Context& c, const ir::Block& block, const ir::ActiveSet& active) {
  Writer(c).block(block, active);
}

}  // namespace tw::lowering
