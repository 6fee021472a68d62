#include "tilewright/base/format.h"
#include "tilewright/lower/dispatch/dispatch.h"
#include "tilewright/lower/dispatch/mma_operand.h"

// tcgen05.mma (PTX ISA, "TensorCore 5th Generation"): A and B in shared memory, the accumulator in tensor
// memory, issued by one thread.
namespace tw::lowering {
namespace {

using ir::Expr;

struct Kind {
  const char* name;
  int64_t k;          // of one instruction
  uint32_t format;    // of A and B in the instruction descriptor
  uint32_t d_format;  // of D
};

const Kind* kind_of(DType t) {
  static constexpr Kind kF16{"f16", 16, 0, 1}, kBf16{"f16", 16, 1, 1}, kTf32{"tf32", 8, 2, 1},
      kE4m3{"f8f6f4", 32, 0, 1}, kE5m2{"f8f6f4", 32, 1, 1}, kU8{"i8", 32, 0, 2}, kI8{"i8", 32, 1, 2};
  switch (t) {
    case DType::f16: return &kF16;
    case DType::bf16: return &kBf16;
    case DType::tf32:
    case DType::f32: return &kTf32;
    case DType::e4m3: return &kE4m3;
    case DType::e5m2: return &kE5m2;
    case DType::u8: return &kU8;
    case DType::i8: return &kI8;
    default: return nullptr;
  }
}

// "Instruction descriptor": D, A and B formats, N >> 3 at bit 17, M >> 4 at bit 24.
uint32_t instruction_descriptor(const Kind& a, const Kind& b, int64_t m, int64_t n) {
  return a.d_format << 4 | a.format << 7 | b.format << 10 | static_cast<uint32_t>(n >> 3) << 17 |
         static_cast<uint32_t>(m >> 4) << 24;
}

// "Shared memory descriptor": the high word has the stride, 0b001 in bits 46-48, the swizzle from bit 61.
ptx::Operand descriptor(Emitter& e, const MmaOperand& o, int64_t offset) {
  uint32_t swizzle = o.swizzle_bytes == 128 ? 2 : o.swizzle_bytes == 64 ? 4 : o.swizzle_bytes == 32 ? 6 : 0;
  return descriptor(e, o, offset, static_cast<uint32_t>(o.stride_bytes >> 4) | 1 << 14 | swizzle << 29);
}

}  // namespace

Answer gemm_tcgen05(Context& c, const Site& site) {
  const ir::Tile &acc = site.op.operands[0], &a = site.op.operands[1], &b = site.op.operands[2];
  if (!ir::is_blackwell(c.kernel.arch)) return format("{} has no tcgen05", ir::name(c.kernel.arch));
  const bool pair = site.op.scope == ir::Scope::cta_pair;
  if (site.op.scope != ir::Scope::thread && !pair)
    return std::string("is issued by one thread: use thread.gemm_async, or cta_pair.gemm_async");
  if (!site.active.one_thread())
    return format("is issued by one thread, but active are {}", site.active.to_string());
  if (pair && site.active.in_both_of_a_pair())
    return std::string("is issued by one CTA of the pair, but both are active: guard it with cluster_rank");
  const Kind *ka = kind_of(a.buffer->dtype), *kb = kind_of(b.buffer->dtype);
  if (!ka || !kb || std::string_view(ka->name) != kb->name)
    return format("no kind multiplies {} by {}", name(a.buffer->dtype), name(b.buffer->dtype));
  if (acc.buffer->space != ir::Space::tensor_memory)
    return format("the accumulator '{}' is not in tensor memory", acc.buffer->name);
  if ((acc.buffer->scope == ir::Scope::cta_pair) != pair)
    return format("the accumulator '{}' belongs to a {}", acc.buffer->name, ir::name(acc.buffer->scope));
  if (acc.buffer->dtype != (ka->d_format == 2 ? DType::i32 : DType::f32))
    return format("accumulates in {}", ka->d_format == 2 ? "i32" : "f32");
  // "Data Path Layout Organization": rows of M = 256 over a pair lie as in layout A, a row a lane.
  const int64_t lanes = acc.shape()[0], m = pair ? 2 * lanes : lanes, n = acc.shape()[1];
  if ((pair ? m != 256 : m != 128 && m != 64) || !acc.dims[0].offset.is(0))
    return format("M is {}, not {}", pair ? "256 over a pair" : "64 or 128", m);
  const int64_t step = pair ? 16 : m == 128 ? 16 : 8;
  if (n % step != 0 || n > 256) return format("N is a multiple of {} up to 256, not {}", step, n);
  auto oa = mma_operand(c, a, ka->k), ob = mma_operand(c, b, ka->k);
  if (auto* why = std::get_if<std::string>(&oa)) return *why;
  if (auto* why = std::get_if<std::string>(&ob)) return *why;
  return Plan{1, [&c, ka, kb, m, n, acc, oa = std::get<MmaOperand>(oa), ob = std::get<MmaOperand>(ob),
                  accumulate = site.op.value] {
                Emitter& e = c.emit;
                Expr d = Expr(c.tensor_base) + Expr(static_cast<int>(c.plan.columns.at(acc.buffer.get()))) +
                         c.resolve(acc.dims[1].offset);
                ptx::Operand idesc =
                    ptx::reg(e.reg(ir::integer(DType::u32, instruction_descriptor(*ka, *kb, m, n))));
                for (size_t i = 0; i < oa.k_offsets.size(); ++i) {
                  ptx::Operand enable = ptx::reg(e.reg(i == 0 ? c.resolve(accumulate) : Expr(true)));
                  e.emit(format("tcgen05.mma.cta_group::{}.kind::{}", c.plan.cta_group, ka->name),
                         {ptx::address(ptx::reg(e.reg(d))), descriptor(e, oa, oa.k_offsets[i]),
                          descriptor(e, ob, ob.k_offsets[i]), idesc, enable});
                }
              }};
}

}  // namespace tw::lowering
