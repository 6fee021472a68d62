#include "tilewright/base/format.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/lower/dispatch/dispatch.h"
#include "tilewright/lower/dispatch/mma_operand.h"

// wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate"): A and B in shared
// memory, the accumulator in the registers of a warpgroup, 64 rows an instruction.
namespace tw::lowering {
namespace {

using ir::Expr;

struct Types {
  const char* ab;
  const char* d;
  int64_t k;
  bool transposable;  // the instruction takes operands that say which matrix is MN-major
};

const Types* types_of(DType t) {
  static constexpr Types kF16{"f16", "f32", 16, true}, kBf16{"bf16", "f32", 16, true},
      kTf32{"tf32", "f32", 8, false}, kE4m3{"e4m3", "f32", 32, false}, kE5m2{"e5m2", "f32", 32, false},
      kI8{"s8", "s32", 32, false}, kU8{"u8", "s32", 32, false};
  switch (t) {
    case DType::f16: return &kF16;
    case DType::bf16: return &kBf16;
    case DType::tf32:
    case DType::f32: return &kTf32;
    case DType::e4m3: return &kE4m3;
    case DType::e5m2: return &kE5m2;
    case DType::i8: return &kI8;
    case DType::u8: return &kU8;
    default: return nullptr;
  }
}

// "Matrix-descriptor format": as on Blackwell, but the swizzle has two bits at 62.
ptx::Operand descriptor(Emitter& e, const MmaOperand& o, int64_t offset) {
  uint32_t swizzle = o.swizzle_bytes == 128 ? 1 : o.swizzle_bytes == 64 ? 2 : o.swizzle_bytes == 32 ? 3 : 0;
  return descriptor(e, o, offset, static_cast<uint32_t>(o.stride_bytes >> 4) | swizzle << 30);
}

struct Product {
  const Types *a, *b;
  int64_t m, n;
  ir::Tile acc;
  MmaOperand oa, ob;
  Expr accumulate;
};

void emit_product(Context& c, const Product& p) {
  Emitter& e = c.emit;
  const auto& regs = c.registers.at(p.acc.buffer.get());
  e.emit("wgmma.fence.sync.aligned", {});
  std::string opcode =
      format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}", p.n, p.a->k, p.a->d, p.a->ab, p.b->ab);
  for (int64_t block = 0; block < p.m / 64; ++block) {
    std::vector<ptx::Operand> words;
    for (int64_t i = 0; i < p.n / 2; ++i)
      words.push_back(ptx::reg(regs[static_cast<size_t>(block * p.n / 2 + i)]));
    for (size_t k = 0; k < p.oa.k_offsets.size(); ++k) {
      Expr scale_d = k == 0 ? c.resolve(p.accumulate) : Expr(true);
      std::vector<ptx::Operand> operands{
          ptx::vector(words), descriptor(e, p.oa, p.oa.k_offsets[k] + row_offset(p.oa, block * 64)),
          descriptor(e, p.ob, p.ob.k_offsets[k]), ptx::reg(e.reg(scale_d))};
      bool scales = p.a->d[0] == 'f';  // integers have no imm-scale operands
      if (scales) operands.insert(operands.end(), {ptx::integer(1), ptx::integer(1)});
      if (p.a->transposable) operands.insert(operands.end(), {ptx::integer(0), ptx::integer(0)});
      e.emit(opcode, std::move(operands));
    }
  }
}

}  // namespace

Answer gemm_wgmma(Context& c, const Site& site) {
  const ir::Tile &acc = site.op.operands[0], &a = site.op.operands[1], &b = site.op.operands[2];
  if (c.kernel.arch != ir::Arch::sm_90a) return format("{} has no wgmma", ir::name(c.kernel.arch));
  if (site.op.scope != ir::Scope::warpgroup)
    return std::string("is an operation of a warpgroup: use warpgroup.gemm_async");
  const Types *ta = types_of(a.buffer->dtype), *tb = types_of(b.buffer->dtype);
  if (!ta || !tb || ta->k != tb->k || (ta->k == 16 && ta != tb))
    return format("no wgmma multiplies {} by {}", name(a.buffer->dtype), name(b.buffer->dtype));
  if (acc.buffer->space != ir::Space::registers || !acc.whole())
    return format("the accumulator {} is not a whole register tile", to_string(acc));
  if (acc.buffer->dtype != (ta->d[0] == 's' ? DType::i32 : DType::f32))
    return format("accumulates in {}", ta->d);
  int64_t m = acc.shape()[0], n = acc.shape()[1];
  if (m % 64 != 0) return format("M is a multiple of 64, not {}", m);
  if (n % 8 != 0 || n > 256) return format("N is a multiple of 8 up to 256, not {}", n);
  std::vector<int64_t> blocks{m / 64, 1}, fragment{64, n};
  if (!acc.buffer->layout.tile_layout().equivalent(
          wgmma_accumulator_fragment(n).tile(TileLayout::row_major(blocks), blocks, fragment)))
    return format("'{}' is not laid out as an accumulator of wgmma: use wgmma_accumulator", acc.buffer->name);
  auto oa = mma_operand(c, a, ta->k), ob = mma_operand(c, b, ta->k);
  if (auto* why = std::get_if<std::string>(&oa)) return *why;
  if (auto* why = std::get_if<std::string>(&ob)) return *why;
  Product p{ta, tb, m, n, acc, std::get<MmaOperand>(oa), std::get<MmaOperand>(ob), site.op.value};
  return Plan{1, [&c, p] { emit_product(c, p); }};
}

}  // namespace tw::lowering
