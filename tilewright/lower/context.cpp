#include "tilewright/lower/context.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/lower/address.h"

namespace tw::lowering {

using ir::Expr;
using ir::ScopeId;

Expr Context::resolve(const Expr& e) const {
  if (e->op == ir::Op::scope_id) {
    Expr t(thread);
    switch (e->id) {
      case ScopeId::thread: return t;
      case ScopeId::lane: return t % 32;
      case ScopeId::warp: return Expr(warp);
      case ScopeId::warpgroup: return Expr(warp) / 4;
      case ScopeId::warp_in_warpgroup: return Expr(warp) % 4;
      case ScopeId::thread_in_warpgroup: return t % 128;
      case ScopeId::cta_x: return cta[0] ? Expr(cta[0]) : Expr(0);
      case ScopeId::cta_y: return cta[1] ? Expr(cta[1]) : Expr(0);
      case ScopeId::cta_z: return cta[2] ? Expr(cta[2]) : Expr(0);
      case ScopeId::grid_x: return grid[0] ? Expr(grid[0]) : kernel.grid[0];
      case ScopeId::grid_y: return grid[1] ? Expr(grid[1]) : kernel.grid[1];
      case ScopeId::grid_z: return grid[2] ? Expr(grid[2]) : kernel.grid[2];
      case ScopeId::cluster_rank: return cluster_rank ? Expr(cluster_rank) : Expr(0);
    }
  }
  if (e->op == ir::Op::load) {
    ir::Tile t{e->buffer, {}};
    for (const Expr& a : e->args) t.dims.push_back({a, 1, false});
    auto v = std::make_shared<ir::Variable>();
    v->name = to_string(t);
    v->type = e.type();
    v->uniform = false;
    ptx::RegId r = emit.fresh(register_type(e.type()));
    emit.emit(format("ld.{}.b{}", ir::name(e->buffer->space), bits(e.type())),
              {ptx::reg(r), emit.address(element_address(*this, t, {}))});
    emit.bind(v, r);
    return Expr(ir::VarRef(v));
  }
  return ir::rebuild(e, [this](const Expr& a) { return resolve(a); });
}

int Context::role(const std::string& name) {
  auto it = std::find(roles.begin(), roles.end(), name);
  if (it == roles.end()) it = roles.insert(roles.end(), name);
  return static_cast<int>(it - roles.begin());
}

Expr Context::index_in(ir::Scope scope) const {
  Expr t(thread);
  switch (scope) {
    case ir::Scope::thread: return 0;
    case ir::Scope::warp: return t % 32;
    case ir::Scope::warpgroup: return t % 128;
    default: return t;
  }
}

int Context::threads_of(ir::Scope scope) const {
  switch (scope) {
    case ir::Scope::thread: return 1;
    case ir::Scope::warp: return 32;
    case ir::Scope::warpgroup: return 128;
    default: return kernel.threads;
  }
}

int launch_registers(const ir::Kernel& kernel) { return std::min(255, 65536 / kernel.threads) / 8 * 8; }

Expr Context::axis_value(Axis a, const SourceLoc& loc) const {
  Expr t(thread);
  if (a == axis::laneid) return t % 32;
  if (a == axis::warpid) return Expr(warp);
  if (a == axis::wgid) return Expr(warp) / 4;
  if (a == axis::wid_in_wg) return Expr(warp) % 4;
  if (a == axis::tid_in_wg) return t % 128;
  if (a == axis::tx) return t;
  user_error(loc, "a register tile cannot be spread along axis '{}'", a.name());
}

}  // namespace tw::lowering
