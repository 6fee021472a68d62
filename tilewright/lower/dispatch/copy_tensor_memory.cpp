#include <algorithm>

#include "tilewright/base/format.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/lower/dispatch/dispatch.h"

// tcgen05.ld.32x32b: each warp of a warpgroup reads its quarter of the lanes, thread r the columns of lane r.
namespace tw::lowering {
namespace {

using ir::Expr;

void emit_load(Context& c, const ir::Tile& dst, const ir::Tile& src, int64_t columns) {
  Emitter& e = c.emit;
  const auto& regs = c.registers.at(dst.buffer.get());
  Expr warp = Expr(c.warp) % 4;
  Expr base = Expr(c.tensor_base) + warp * Expr(32 << 16) +
              Expr(static_cast<int>(c.plan.columns.at(src.buffer.get()))) + c.resolve(src.dims[1].offset);
  for (int64_t first = 0; first < columns;) {
    int64_t n = 128;
    while (first + n > columns) n /= 2;
    std::vector<ptx::Operand> words;
    for (int64_t i = 0; i < n; ++i) words.push_back(ptx::reg(regs[static_cast<size_t>(first + i)]));
    e.emit(format("tcgen05.ld.sync.aligned.32x32b.x{}.b32", n),
           {ptx::vector(words), ptx::address(ptx::reg(e.reg(base + Expr(first))))});
    first += n;
  }
  e.emit("tcgen05.wait::ld.sync.aligned", {});
}

}  // namespace

Answer copy_tensor_memory(Context& c, const Site& site) {
  const ir::Tile &dst = site.op.operands[0], &src = site.op.operands[1];
  if (src.buffer->space != ir::Space::tensor_memory || dst.buffer->space != ir::Space::registers)
    return std::string("moves from tensor memory to registers");
  if (site.op.scope != ir::Scope::warpgroup) return std::string("is an operation of a warpgroup");
  std::vector<int64_t> shape = src.shape();
  if (shape.size() != 2 || shape[0] != 128 || !src.dims[0].offset.is(0))
    return std::string("reads all 128 lanes");
  if (!dst.whole()) return std::string("fills a whole register tile");
  if (bits(dst.buffer->dtype) != 32) return std::string("moves 32-bit elements");
  if (!dst.buffer->layout.tile_layout().equivalent(row_per_thread_layout(shape[1])))
    return format("'{}' is not laid out as one row a thread", dst.buffer->name);
  return Plan{1, [&c, dst, src, columns = shape[1]] { emit_load(c, dst, src, columns); }};
}

}  // namespace tw::lowering
