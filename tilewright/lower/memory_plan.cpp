#include "tilewright/lower/memory_plan.h"

#include <algorithm>
#include <bit>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw::lowering {
namespace {

// PTX ISA and CUDA Programming Guide, compute capabilities 9.0, 10.0, 10.3: 227 KiB a CTA; 512 columns.
constexpr uint64_t kSharedPerCta = 227 * 1024;
constexpr uint32_t kTensorMemoryColumns = 512;

std::vector<int64_t> shape_of(const ir::Buffer& b) { return b.extents(); }

[[noreturn]] void too_much(const ir::Kernel& k, const std::string& what, const std::vector<Note>& parts,
                           const SourceLoc& loc) {
  throw Error(ErrorKind::user, loc ? loc : k.loc, format("'{}' needs {}", k.name, what), parts);
}

void plan_shared(const ir::Kernel& k, MemoryPlan& plan, ptx::DebugMap& names) {
  std::vector<ir::BufferRef> order;
  for (const ir::BufferRef& b : k.buffers)
    if (b->space == ir::Space::shared) order.push_back(b);
  // Strictest alignment first: no padding between tiles.
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a->align > b->align; });
  std::vector<Note> parts;
  for (const ir::BufferRef& b : order) {
    uint64_t bytes = static_cast<uint64_t>(b->layout.span()) * static_cast<uint64_t>(bits(b->dtype)) / 8;
    uint64_t begin = round_up(plan.shared_bytes, uint64_t{b->align});
    plan.shared[b.get()] = begin;
    plan.shared_bytes = begin + bytes;
    const bool staged = b->is_barrier ? b->shape[0].constant() != 1 : b->shape.size() > 2;
    ptx::Region r{b->name, begin, begin + bytes, b->dtype, shape_of(*b), staged, b->is_barrier, b->loc};
    names.shared.push_back(std::move(r));
    parts.push_back({b->loc, format("'{}' takes {} bytes", b->name, bytes)});
  }
  if (plan.tensor_memory_columns != 0) {
    plan.tensor_memory_slot = round_up(plan.shared_bytes, uint64_t{16});
    plan.shared_bytes = plan.tensor_memory_slot + 4;
    names.shared.push_back({"tensor memory base",
                            plan.tensor_memory_slot,
                            plan.shared_bytes,
                            DType::u32,
                            {1},
                            false,
                            false,
                            k.loc});
  }
  if (plan.shared_bytes > kSharedPerCta)
    too_much(k, format("{} bytes of shared memory, a CTA has {}", plan.shared_bytes, kSharedPerCta), parts,
             {});
}

void plan_tensor_memory(const ir::Kernel& k, MemoryPlan& plan, ptx::DebugMap& names) {
  uint32_t used = 0;
  std::vector<Note> parts;
  const ir::Buffer* first = nullptr;
  for (const ir::BufferRef& b : k.buffers) {
    if (b->space != ir::Space::tensor_memory) continue;
    if (!first) first = b.get();
    if (b->scope != first->scope)
      throw Error(ErrorKind::user, b->loc,
                  format("'{}' belongs to a {}, '{}' to a {}: a kernel's tcgen05 instructions have one "
                         ".cta_group",
                         b->name, ir::name(b->scope), first->name, ir::name(first->scope)),
                  {{first->loc, format("'{}' is declared here", first->name)}});
    if (b->scope == ir::Scope::cta_pair) plan.cta_group = 2;
    uint32_t columns = static_cast<uint32_t>(b->layout.tile_layout().span(axis::TCol));
    plan.columns[b.get()] = used;
    names.tensor_memory.push_back(
        {b->name, used, used + columns, b->dtype, shape_of(*b), false, false, b->loc});
    parts.push_back({b->loc, format("'{}' takes {} columns", b->name, columns)});
    used += columns;
  }
  if (used == 0) return;
  if (used > kTensorMemoryColumns)
    too_much(k, format("{} columns of tensor memory, an SM has {}", used, kTensorMemoryColumns), parts, {});
  plan.tensor_memory_columns = std::max(32u, std::bit_ceil(used));
}

}  // namespace

MemoryPlan plan_memory(const ir::Kernel& kernel, ptx::DebugMap& names) {
  MemoryPlan plan;
  plan_tensor_memory(kernel, plan, names);
  plan_shared(kernel, plan, names);
  return plan;
}

}  // namespace tw::lowering
