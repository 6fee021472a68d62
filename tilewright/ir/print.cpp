#include <type_traits>

#include "tilewright/base/format.h"
#include "tilewright/ir/kernel.h"
#include "tilewright/layout/text.h"

namespace tw::ir {
namespace {

int precedence(Op op) {
  switch (op) {
    case Op::logical_or: return 1;
    case Op::logical_and: return 2;
    case Op::bit_or: return 3;
    case Op::bit_xor: return 4;
    case Op::bit_and: return 5;
    case Op::eq:
    case Op::ne: return 6;
    case Op::lt:
    case Op::le: return 7;
    case Op::shl:
    case Op::shr: return 8;
    case Op::add: return 9;
    case Op::mul:
    case Op::div:
    case Op::mod: return 10;
    default: return 20;
  }
}

std::string text(const Expr& e, int outer) {
  int own = precedence(e->op);
  std::string s;
  if (e->op == Op::constant) {
    if (is_float(e.type())) return format("{}", e->real);
    if (e.type() == DType::b1) return e->integer ? "true" : "false";
    return format("{}", e->integer);
  }
  if (e->op == Op::variable) return e->variable->name;
  if (e->op == Op::scope_id) return name(e->id);
  if (e->op == Op::element) return format("#{}", e->index);
  if (e->op == Op::coordinate) return format("coordinate({})", e->index);
  if (own < 20) {
    for (size_t i = 0; i < e->args.size(); ++i) {
      if (i) s += format(" {} ", name(e->op));
      s += text(e->args[i], own + (i > 0));
    }
    return own < outer ? "(" + s + ")" : s;
  }
  if (e->op == Op::logical_not || e->op == Op::neg) return name(e->op) + text(e->args[0], 19);
  std::string head = e->op == Op::cast ? std::string(name(e.type())) : std::string(name(e->op));
  if (e->op == Op::load) head = e->buffer->name;
  for (const Expr& a : e->args) s += (s.empty() ? "" : ", ") + text(a, 0);
  return e->op == Op::load ? head + "[" + s + "]" : head + "(" + s + ")";
}

std::string list(const std::vector<Expr>& shape) {
  std::string s;
  for (const Expr& e : shape) s += (s.empty() ? "" : ", ") + to_string(e);
  return s;
}

std::string owner(const Buffer& b) {
  return b.scope == Scope::cta ? "" : format(", of the {}", name(b.scope));
}

class Printer {
 public:
  explicit Printer(bool locations) : locations_(locations) {}

  std::string kernel(const Kernel& k) {
    std::string cluster =
        k.ctas() > 1 ? format(", clusters of ({}, {}, {})", k.cluster[0], k.cluster[1], k.cluster[2]) : "";
    line(format("kernel {} for {}: grid ({}, {}, {}), {} threads{}", k.name, name(k.arch),
                to_string(k.grid[0]), to_string(k.grid[1]), to_string(k.grid[2]), k.threads, cluster),
         k.loc);
    ++depth_;
    for (const VarRef& v : k.sizes) line(format("size {}", v->name), v->loc);
    for (const VarRef& v : k.scalars) line(format("scalar {}: {}", v->name, name(v->type)), v->loc);
    for (const BufferRef& b : k.globals)
      line(format("global {}: {}[{}]", b->name, name(b->dtype), list(b->shape)), b->loc);
    for (const BufferRef& b : k.buffers) {
      if (b->is_barrier) {
        line(format("barrier {}[{}], {} arrivals{}", b->name, list(b->shape), b->arrivals, owner(*b)),
             b->loc);
      } else {
        line(format("{} {}: {}[{}] at {}{}", name(b->space), b->name, name(b->dtype), list(b->shape),
                    to_string(b->layout), owner(*b)),
             b->loc);
      }
    }
    for (const Requirement& r : k.requirements)
      line(format("require {}: {}", to_string(r.condition), r.text), r.loc);
    block(k.body);
    return std::move(out_);
  }

 private:
  void line(const std::string& s, const SourceLoc& loc) {
    std::string text(static_cast<size_t>(depth_) * 2, ' ');
    text += s;
    if (locations_ && loc) {
      if (text.size() < 88) text.resize(88, ' ');
      text += "  // " + to_string(loc);
    }
    out_ += text + "\n";
  }

  void block(const Block& b) {
    for (const Stmt& s : b) std::visit([&](const auto& n) { statement(n, s.loc); }, s.node);
  }
  void body(const Block& b) {
    ++depth_;
    block(b);
    --depth_;
  }

  void statement(const Declare& d, const SourceLoc& l) {
    line(format("{} {} = {}", name(d.variable->type), d.variable->name, to_string(d.value)), l);
  }
  void statement(const Assign& a, const SourceLoc& l) {
    line(format("{} = {}", a.variable->name, to_string(a.value)), l);
  }
  void statement(const Store& s, const SourceLoc& l) {
    line(format("{} = {}", to_string(s.element), to_string(s.value)), l);
  }
  void statement(const If& i, const SourceLoc& l) {
    line(format("if {}", to_string(i.condition)), l);
    body(*i.then);
    if (i.otherwise) {
      line("else", l);
      body(*i.otherwise);
    }
  }
  void statement(const For& f, const SourceLoc& l) {
    line(format("for {} in {} .. {}{}", f.variable->name, to_string(f.begin), to_string(f.end),
                f.step == 1 ? "" : format(" step {}", f.step)),
         l);
    body(*f.body);
  }
  void statement(const While& w, const SourceLoc& l) {
    line(format("while {}", to_string(w.condition)), l);
    body(*w.body);
  }
  void statement(const Role& r, const SourceLoc& l) {
    line(format("role {}: warps {}..{}{}", r.name, r.first_warp, r.first_warp + r.warps - 1,
                r.registers ? format(", {} registers", r.registers) : ""),
         l);
    body(*r.body);
  }
  void statement(const Elected& e, const SourceLoc& l) {
    line("elected", l);
    body(*e.body);
  }
  void statement(const Sync& s, const SourceLoc& l) { line(format("{}.sync", name(s.scope)), l); }
  void statement(const TileOp& op, const SourceLoc& l) {
    std::string s = format("{}.{} {} <-", name(op.scope), name(op.kind), to_string(op.operands[0]));
    for (size_t i = 1; i < op.operands.size(); ++i) s += (i > 1 ? ", " : " ") + to_string(op.operands[i]);
    if (op.kind == TileOpKind::gemm_async) s += format(", accumulate {}", to_string(op.value));
    else if (op.value.defined()) s += (op.operands.size() > 1 ? " : " : " ") + to_string(op.value);
    if (op.barrier) s += format(", signal {}[{}]", op.barrier->name, to_string(op.stage));
    if (op.multicast) s += format(", multicast {:#x}", op.multicast);
    if (!op.dispatch.empty()) s += format(" dispatch {}", op.dispatch);
    line(s, l);
  }
  void statement(const BarrierOp& b, const SourceLoc& l) {
    std::string at = format("{}[{}]", b.barrier->name, to_string(b.stage));
    switch (b.kind) {
      case BarrierOp::Kind::wait: line(format("wait {} parity {}", at, to_string(b.operand)), l); break;
      case BarrierOp::Kind::arrive:
        line(format("{}.arrive {} count {}{}", name(b.scope), at, to_string(b.operand),
                    b.rank.defined() ? format(" in CTA {}", to_string(b.rank)) : ""),
             l);
        break;
      case BarrierOp::Kind::expect:
        line(format("arrive {} expecting {} bytes", at, to_string(b.operand)), l);
        break;
      case BarrierOp::Kind::commit:
        line(format("commit {}{}", at, b.multicast ? format(", multicast {:#x}", b.multicast) : ""), l);
        break;
    }
  }
  void statement(const TryCancel& t, const SourceLoc& l) {
    line(format("try_cancel {}, signal {}[{}]", to_string(t.response), t.barrier->name, to_string(t.stage)),
         l);
  }
  void statement(const QueryCancel& q, const SourceLoc& l) {
    line(format("{}, {} = query_cancel {}", q.cancelled->name, q.first_cta->name, to_string(q.response)), l);
  }
  void statement(const Intrinsic& i, const SourceLoc& l) {
    std::string s = i.result ? i.result->name + " = " + i.opcode : i.opcode;
    bool first = true;
    for (const Intrinsic::Operand& o : i.operands) {
      s += first ? " " : ", ";
      first = false;
      s += std::visit([](const auto& x) { return to_string(x); }, o);
    }
    line(s, l);
  }

  bool locations_;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const Expr& e) { return e.defined() ? text(e, 0) : "?"; }

std::string to_string(const Tile& tile) {
  std::string s;
  for (const TileDim& d : tile.dims) {
    if (!s.empty()) s += ", ";
    if (!d.kept) s += to_string(d.offset);
    else if (d.extent == 0) s += to_string(d.offset) + " : +?";
    else if (auto c = d.offset.constant()) s += format("{}:{}", *c, *c + d.extent);
    else s += format("{} : +{}", to_string(d.offset), d.extent);
  }
  return tile.buffer->name + "[" + s + "]";
}

std::string print(const Kernel& kernel, bool locations) { return Printer(locations).kernel(kernel); }

}  // namespace tw::ir
