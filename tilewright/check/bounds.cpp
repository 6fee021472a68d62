#include "tilewright/check/scene.h"
#include "tilewright/sim/grid.h"

// Where accesses of shared memory may land.
namespace tw::check {

// An access through the address of one variable that lands in another. `unit`: bytes of an element of it.
void Checker::Scene::require_inside(uint32_t pc, size_t operand, const sim::Warp& warp, bool write,
                                    const sim::Cta& cta, uint64_t begin, uint64_t bytes, uint64_t unit) {
  const sim::SharedSymbol* v = origins_.of(pc, operand);
  if (!v) return;
  const uint64_t end = v->offset + uint64_t{v->bytes};
  if (begin >= v->offset && begin + bytes <= end) return;
  uint64_t element = begin;  // the first that is not inside
  while (element >= v->offset && element + unit <= end) element += unit;
  const ptx::Instruction* inst = instruction(pc);
  found(FaultKind::undefined, pc,
        tw::format(
            "{} {} {} bytes at offset {} of {}, which has {}: that is {} ({})",
            inst ? inst->text() : "an access", write ? "writes" : "reads", unit,
            static_cast<int64_t>(element) - v->offset, v->name, v->bytes,
            cta.name_of_shared(static_cast<uint32_t>(element < v->offset ? element : std::max(element, end))),
            where(warp, pc)),
        0, {}, "PTX does not say how variables lie to each other: make room for all elements, in their size");
}

}  // namespace tw::check
