#include "tilewright/lower/register_tile.h"

#include "tilewright/base/error.h"

namespace tw::lowering {

using ir::Expr;

namespace {
ptx::RegId word(const Context& c, const ir::Buffer& b, int64_t index) {
  return c.registers.at(&b)[static_cast<size_t>(index * bits(b.dtype) / 32)];
}
}  // namespace

ptx::RegId read_element(Context& c, const ir::Buffer& b, int64_t index) {
  if (bits(b.dtype) == 32) return word(c, b, index);
  ptx::RegId half = c.emit.fresh(ptx::Type::b16);
  std::vector<ptx::Operand> halves{ptx::sink(), ptx::sink()};
  halves[static_cast<size_t>(index % 2)] = ptx::reg(half);
  c.emit.emit("mov.b32", {ptx::vector(halves), ptx::reg(word(c, b, index))});
  return half;
}

void write_element(Context& c, const ir::Buffer& b, int64_t index, ptx::RegId value) {
  ptx::RegId w = word(c, b, index);
  if (bits(b.dtype) == 32) {
    c.emit.emit("mov.b32", {ptx::reg(w), ptx::reg(value)});
    return;
  }
  ptx::RegId other = read_element(c, b, index ^ 1);
  ptx::Operand low = ptx::reg(index % 2 ? other : value), high = ptx::reg(index % 2 ? value : other);
  c.emit.emit("mov.b32", {ptx::reg(w), ptx::vector({low, high})});
}

void write_pair(Context& c, const ir::Buffer& b, int64_t index, const Expr& low, const Expr& high) {
  ptx::Operand w = ptx::reg(word(c, b, index));
  auto narrows = [&](const Expr& e) { return e->op == ir::Op::cast && e->args[0].type() == DType::f32; };
  if (narrows(low) && narrows(high)) {
    ptx::RegId l = c.emit.reg(c.resolve(low->args[0])), h = c.emit.reg(c.resolve(high->args[0]));
    c.emit.emit(format("cvt.rn.{}x2.f32", name(b.dtype)), {w, ptx::reg(h), ptx::reg(l)});
    return;
  }
  ptx::RegId l = c.emit.reg(c.resolve(low)), h = c.emit.reg(c.resolve(high));
  c.emit.emit("mov.b32", {w, ptx::vector({ptx::reg(l), ptx::reg(h)})});
}

Expr element_value(Context& c, const ir::Buffer& b, int64_t index) {
  auto v = std::make_shared<ir::Variable>();
  v->name = format("{}[{}]", b.name, index);
  v->type = b.dtype;
  v->uniform = false;
  c.emit.bind(v, read_element(c, b, index));
  return Expr(ir::VarRef(v));
}

Expr instantiate(const Expr& e, const std::function<Expr(const Expr&)>& leaf) {
  if (e->op == ir::Op::element || e->op == ir::Op::coordinate) return leaf(e);
  return ir::rebuild(e, [&](const Expr& a) { return instantiate(a, leaf); });
}

}  // namespace tw::lowering
