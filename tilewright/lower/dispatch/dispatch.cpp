#include "tilewright/lower/dispatch/dispatch.h"

#include "tilewright/base/error.h"

namespace tw::lowering {

std::span<const Rule> rules() {
  using ir::TileOpKind;
  static constexpr Rule kRules[] = {
      {"vector", TileOpKind::copy, copy_vector},
      {"registers", TileOpKind::copy, copy_registers},
      {"stmatrix", TileOpKind::copy, copy_stmatrix},
      {"tcgen05.ld", TileOpKind::copy, copy_tensor_memory},
      {"tma", TileOpKind::copy_async, copy_tma},
      {"registers", TileOpKind::fill, fill_registers},
      {"registers", TileOpKind::compute, compute_registers},
      {"tcgen05", TileOpKind::gemm_async, gemm_tcgen05},
      {"wgmma", TileOpKind::gemm_async, gemm_wgmma},
  };
  return kRules;
}

void dispatch(Context& c, const Site& site) {
  const Plan* best = nullptr;
  std::vector<Answer> answers;
  answers.reserve(rules().size());
  std::vector<Note> reasons;
  std::string known;
  for (const Rule& r : rules()) {
    if (r.kind != site.op.kind) continue;
    known += (known.empty() ? "" : ", ") + std::string(r.name);
    if (!site.op.dispatch.empty() && site.op.dispatch != r.name) continue;
    answers.push_back(r.match(c, site));
    if (const Plan* p = std::get_if<Plan>(&answers.back())) {
      if (!best || p->cost < best->cost) best = p;
    } else {
      reasons.push_back({site.loc, format("rule '{}': {}", r.name, std::get<std::string>(answers.back()))});
    }
  }
  if (!best) {
    std::string what = format("{}.{}", ir::name(site.op.scope), ir::name(site.op.kind));
    if (answers.empty())
      user_error(site.loc, "{} has no dispatch '{}' (there are: {})", what, site.op.dispatch, known);
    std::string operands;
    for (const ir::Tile& t : site.op.operands)
      operands += (operands.empty() ? "" : ", ") +
                  format("{} {} in {}", name(t.buffer->dtype), to_string(t), ir::name(t.buffer->space));
    throw Error(ErrorKind::user, site.loc, format("no dispatch of {} fits ({})", what, operands), reasons);
  }
  best->emit();
}

}  // namespace tw::lowering
