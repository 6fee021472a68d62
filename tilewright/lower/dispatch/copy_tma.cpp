#include "tilewright/base/error.h"
#include "tilewright/lower/dispatch/dispatch.h"
#include "tilewright/lower/statements.h"
#include "tilewright/lower/tma_plan.h"

// cp.async.bulk.tensor (PTX ISA): the copy engine moves boxes of a tensor, one thread issues them.
namespace tw::lowering {
namespace {

using ir::Expr;

void emit_boxes(Context& c, const TmaPlan& plan, const ir::Tile& global, const ir::Tile& shared,
                const ir::TileOp& op) {
  Emitter& e = c.emit;
  ptx::Operand map = ptx::reg(e.reg(Expr(c.tensor_map(plan, *global.buffer))));
  Expr base = Expr(c.shared_base) + Expr(static_cast<int64_t>(c.plan.shared.at(shared.buffer.get())));
  for (const TmaInstruction& i : plan.instructions) {
    std::vector<ptx::Operand> at;
    for (const Expr& x : i.coordinates) at.push_back(ptx::reg(e.reg(c.resolve(x))));
    ptx::Operand box = ptx::tensor_address(map, at), place = e.address(base + c.resolve(i.shared_offset));
    std::string rank = format("cp.async.bulk.tensor.{}d", at.size());
    if (!op.barrier) {
      e.emit(rank + ".global.shared::cta.tile.bulk_group", {box, place});
      continue;
    }
    std::vector<ptx::Operand> operands{place, box, e.address(signal_address(c, *op.barrier, op.stage))};
    std::string opcode = rank + ".shared::cluster.global.tile.mbarrier::complete_tx::bytes";
    if (op.multicast != 0) {
      opcode += ".multicast::cluster";
      operands.push_back(ptx::reg(e.reg(ir::integer(DType::u16, op.multicast))));
    }
    // The barrier may be the peer's.
    if (op.barrier->scope == ir::Scope::cta_pair) opcode += ".cta_group::2";
    e.emit(opcode, std::move(operands));
  }
}

}  // namespace

Answer copy_tma(Context& c, const Site& site) {
  const ir::Tile &dst = site.op.operands[0], &src = site.op.operands[1];
  bool load = src.buffer->space == ir::Space::global && dst.buffer->space == ir::Space::shared;
  bool store = src.buffer->space == ir::Space::shared && dst.buffer->space == ir::Space::global;
  if (!load && !store) return std::string("moves between global and shared memory");
  if (site.op.scope != ir::Scope::thread)
    return std::string("is issued by one thread: use thread.copy_async");
  // A store may be issued by one lane of each of several warps, each with its own part.
  bool one_each = site.active.count() == static_cast<size_t>(site.active.warp_count());
  if (load ? !site.active.one_thread() : !one_each)
    return format("is issued by one thread, but active are {}", site.active.to_string());
  if (site.op.barrier && site.op.barrier->scope == ir::Scope::cluster)
    return format("signals the barrier of its own CTA or pair; '{}' is the cluster's", site.op.barrier->name);
  if (site.op.barrier && site.op.barrier->scope == ir::Scope::cta_pair && !ir::is_blackwell(c.kernel.arch))
    return format("signals the barrier '{}' of a CTA pair, which {} does not know", site.op.barrier->name,
                  ir::name(c.kernel.arch));
  const ir::Tile &global = load ? src : dst, &shared = load ? dst : src;
  TmaOptions options;
  options.direction = load ? TmaDirection::load : TmaDirection::store;
  // What follows along a row is wanted next: memory fetches 256 bytes at a time into L2.
  options.l2 = TensorMap::L2Promotion::b256;
  TmaPlanOr plan = plan_tma(global, shared, options);
  if (auto* why = std::get_if<std::string>(&plan)) return *why;
  return Plan{1, [&c, plan = std::get<TmaPlan>(plan), global, shared, op = site.op] {
                emit_boxes(c, plan, global, shared, op);
              }};
}

}  // namespace tw::lowering
