#include "tilewright/base/format.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/lower/address.h"
#include "tilewright/lower/dispatch/dispatch.h"

// stmatrix.x4 (PTX ISA, "Warp-level matrix store instruction: stmatrix"): a warp writes four 8 x 8 blocks of
// 16-bit elements; lane 8i + r gives the address of row r of block i. An accumulator of wgmma, narrowed to 16
// bits, is made of such blocks.
namespace tw::lowering {
namespace {

using ir::Expr;

void emit_blocks(Context& c, const ir::Tile& dst, const ir::Tile& src, int64_t m, int64_t n) {
  Emitter& e = c.emit;
  const auto& words = c.registers.at(src.buffer.get());
  Expr t(c.thread), lane = t % 32;
  // Blocks 0 and 1 stand one above the other, 2 and 3 to their right.
  Expr row = Expr(c.warp) % 4 * 16 + lane % 16, column = lane / 16 * 8;
  for (int64_t block = 0; block < m / 64; ++block) {
    for (int64_t first = 0; first < n; first += 16) {
      std::vector<Expr> at{row + Expr(block * 64), column + Expr(first)};
      std::vector<ptx::Operand> four;
      for (int64_t i = 0; i < 4; ++i)
        four.push_back(ptx::reg(words[static_cast<size_t>(block * n / 4 + first / 4 + i)]));
      e.emit("stmatrix.sync.aligned.m8n8.x4.shared.b16",
             {e.address(element_address(c, dst, at)), ptx::vector(four)});
    }
  }
}

}  // namespace

Answer copy_stmatrix(Context& c, const Site& site) {
  const ir::Tile &dst = site.op.operands[0], &src = site.op.operands[1];
  if (src.buffer->space != ir::Space::registers || dst.buffer->space != ir::Space::shared)
    return std::string("moves from registers to shared memory");
  if (site.op.scope != ir::Scope::warpgroup) return std::string("is an operation of a warpgroup");
  if (bits(src.buffer->dtype) != 16) return std::string("moves 16-bit elements");
  std::vector<int64_t> shape = src.shape();
  if (!src.whole() || shape.size() != 2 || shape[0] % 64 != 0 || shape[1] % 16 != 0)
    return std::string("moves a whole accumulator, its width a multiple of 16");
  std::vector<int64_t> blocks{shape[0] / 64, 1}, fragment{64, shape[1]};
  if (!src.buffer->layout.tile_layout().equivalent(
          wgmma_accumulator_fragment(shape[1]).tile(TileLayout::row_major(blocks), blocks, fragment)))
    return format("'{}' is not laid out as an accumulator of wgmma", src.buffer->name);
  if (dst.buffer->layout.aligned_run() % 8 != 0)
    return format("'{}' does not keep 8 elements together", dst.buffer->name);
  return Plan{5, [&c, dst, src, m = shape[0], n = shape[1]] { emit_blocks(c, dst, src, m, n); }};
}

}  // namespace tw::lowering
