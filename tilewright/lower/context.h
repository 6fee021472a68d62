#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewright/ir/active_set.h"
#include "tilewright/ir/kernel.h"
#include "tilewright/lower/emitter.h"
#include "tilewright/lower/memory_plan.h"
#include "tilewright/lower/tma_plan.h"

namespace tw::lowering {

// Registers a thread starts with when roles trade them: the SM's, shared equally.
int launch_registers(const ir::Kernel& kernel);

// What the passes and dispatch rules share while one kernel is lowered.
struct Context {
  const ir::Kernel& kernel;
  Emitter& emit;
  const MemoryPlan& plan;
  std::vector<std::string>& notes;  // what the author should know
  std::vector<std::string>& roles;  // names, by the index that instructions carry

  ir::VarRef thread;  // %tid.x, with its exact range
  // Its warp: %tid.x / 32, taken from lane 0, so that the assembler knows it is the same in all lanes.
  ir::VarRef warp;
  ir::VarRef cta[3];        // %ctaid; null: 0
  ir::VarRef grid[3];       // %nctaid; null: the kernel says how many
  ir::VarRef cluster_rank;  // null: 0
  ir::VarRef shared_base;   // address of the dynamic shared memory
  ir::VarRef matrix_base;   // the same without the CTA's rank: what matrix descriptors hold
  // .shared::cluster addresses of the dynamic shared memory of the even CTA of the pair, and of CTA 0.
  ir::VarRef pair_base, cluster_base;
  ir::VarRef tensor_base;  // what tcgen05.alloc returned
  std::unordered_map<const ir::Buffer*, ir::VarRef> global_base;
  // The generic address of a tensor map parameter for this plan over a tensor; one for equal plans.
  std::function<ir::VarRef(const TmaPlan& plan, const ir::Buffer& tensor)> tensor_map;
  // Registers of register tiles: one a 32-bit element, one a pair of 16-bit elements.
  std::unordered_map<const ir::Buffer*, std::vector<ptx::RegId>> registers;

  // The same expression over this kernel's variables: every id of a thread becomes a function of its index in
  // the CTA.
  // An element of memory becomes a variable that is loaded here and now.
  ir::Expr resolve(const ir::Expr& e) const;
  int role(const std::string& name);  // its index
  // A thread's index in its scope, and how many threads a scope has.
  ir::Expr index_in(ir::Scope scope) const;
  int threads_of(ir::Scope scope) const;
  int launch_registers() const { return lowering::launch_registers(kernel); }
  ir::Expr axis_value(Axis axis, const SourceLoc& loc) const;
};

}  // namespace tw::lowering
