#include "tilewright/sim/program.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/program_builder.h"
#include "tilewright/sim/register_file.h"

namespace tw::sim {

namespace {

// Registers a thread starts with: .maxnreg; for a kernel that moves registers between warps (setmaxnreg) also
// what its launch bounds leave each thread. 0: unknown.
uint32_t registers_at_launch(const ptx::Function& entry, const Machine& machine) {
  auto product = [&](std::string_view name) {
    uint64_t n = 0;
    for (auto v : entry.directive(name)) n = (n == 0 ? 1 : n) * static_cast<uint64_t>(v);
    return n;
  };
  if (const uint64_t n = product("maxnreg")) return static_cast<uint32_t>(n);
  const bool moves = std::any_of(entry.body.begin(), entry.body.end(), [](const ptx::Statement& s) {
    const auto* inst = std::get_if<ptx::Instruction>(&s);
    return inst && inst->opcode() == "setmaxnreg";
  });
  const uint64_t threads = product("reqntid") ? product("reqntid") : product("maxntid");
  if (!moves || threads == 0) return 0;
  const uint64_t ctas = std::max<uint64_t>(1, product("minnctapersm"));
  return std::min(255u,
                  registers_that_fit(round_up<uint64_t>(threads, kLanes) * ctas, machine.registers_per_sm));
}

}  // namespace

Program::Program(std::shared_ptr<const ptx::Module> module, std::string_view entry, Machine machine,
                 std::shared_ptr<const ptx::DebugMap> names)
    : impl_(std::make_unique<Impl>()) {
  impl_->module = std::move(module);
  impl_->names = std::move(names);
  impl_->machine = std::move(machine);
  check_target(*impl_->module, impl_->machine);
  impl_->entry = impl_->module->function(entry);
  if (!impl_->entry || !impl_->entry->is_entry) {
    std::string known;
    for (const ptx::Function* f : impl_->module->entries()) known += (known.empty() ? "" : ", ") + f->name;
    user_error({}, "module {} has no entry '{}'; its entries: {}", impl_->module->name, entry,
               known.empty() ? "none" : known);
  }
  impl_->registers_per_thread = registers_at_launch(*impl_->entry, impl_->machine);
  ProgramBuilder(*impl_).build();
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
uint32_t Program::static_shared() const { return impl_->static_shared; }
uint32_t Program::param_bytes() const { return impl_->param_bytes; }

namespace {

uint64_t special_value(const RowInit& init, const Warp& warp, uint32_t lane) {
  const Cta& cta = warp.cta();
  const Grid& grid = cta.cluster.grid;
  const Dim3 &block = grid.launch.block, &shape = grid.cluster, &extent = grid.launch.grid;
  const uint32_t thread = warp.index() * kLanes + lane;
  const uint32_t rank = cta.rank;
  const uint32_t bit = 1u << lane;
  switch (init.what) {
    case SpecialRow::tid_x: return thread % block.x;
    case SpecialRow::tid_y: return thread / block.x % block.y;
    case SpecialRow::tid_z: return thread / (block.x * block.y);
    case SpecialRow::ntid_x: return block.x;
    case SpecialRow::ntid_y: return block.y;
    case SpecialRow::ntid_z: return block.z;
    case SpecialRow::ctaid_x: return cta.id.x;
    case SpecialRow::ctaid_y: return cta.id.y;
    case SpecialRow::ctaid_z: return cta.id.z;
    case SpecialRow::nctaid_x: return extent.x;
    case SpecialRow::nctaid_y: return extent.y;
    case SpecialRow::nctaid_z: return extent.z;
    case SpecialRow::laneid: return lane;
    case SpecialRow::warpid: return warp.index();
    case SpecialRow::nwarpid: return cta.warps.size();
    case SpecialRow::smid: return (cta.cluster.index * grid.cluster_ctas + rank) % grid.program.machine.sms;
    case SpecialRow::nsmid: return grid.program.machine.sms;
    case SpecialRow::gridid: return 1;
    case SpecialRow::lanemask_eq: return bit;
    case SpecialRow::lanemask_le: return bit | (bit - 1);
    case SpecialRow::lanemask_lt: return bit - 1;
    case SpecialRow::lanemask_ge: return ~(bit - 1);
    case SpecialRow::lanemask_gt: return ~(bit | (bit - 1));
    case SpecialRow::clusterid_x: return cta.id.x / shape.x;
    case SpecialRow::clusterid_y: return cta.id.y / shape.y;
    case SpecialRow::clusterid_z: return cta.id.z / shape.z;
    case SpecialRow::nclusterid_x: return extent.x / shape.x;
    case SpecialRow::nclusterid_y: return extent.y / shape.y;
    case SpecialRow::nclusterid_z: return extent.z / shape.z;
    case SpecialRow::cluster_ctaid_x: return rank % shape.x;
    case SpecialRow::cluster_ctaid_y: return rank / shape.x % shape.y;
    case SpecialRow::cluster_ctaid_z: return rank / (shape.x * shape.y);
    case SpecialRow::cluster_nctaid_x: return shape.x;
    case SpecialRow::cluster_nctaid_y: return shape.y;
    case SpecialRow::cluster_nctaid_z: return shape.z;
    case SpecialRow::cluster_ctarank: return rank;
    case SpecialRow::cluster_nctarank: return grid.cluster_ctas;
    case SpecialRow::dynamic_smem_size: return grid.launch.dynamic_shared;
    case SpecialRow::total_smem_size: return grid.shared_bytes;
    case SpecialRow::aggr_smem_size: return grid.shared_bytes + kSharedReserved;
    case SpecialRow::reserved_smem_offset_begin: return 0;
    case SpecialRow::reserved_smem_offset_end: return kSharedReserved;
    case SpecialRow::reserved_smem_offset_cap: return kSharedReserved;
    case SpecialRow::shared_symbol: return shared_address(rank, static_cast<uint32_t>(init.value));
    case SpecialRow::shared_symbol_generic:
      return kSharedWindow + shared_address(rank, static_cast<uint32_t>(init.value));
    case SpecialRow::is_explicit_cluster: return grid.cluster_ctas > 1 ? kAllLanes : 0;
  }
  return 0;
}

}  // namespace

void initialise_rows(const Program::Impl& program, Warp& warp) {
  *warp.row<uint32_t>({0, Slot::registers}) = kAllLanes;
  for (const RowInit& init : program.rows) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t value = special_value(init, warp, lane);
      if (init.wide) {
        warp.row<uint64_t>(init.slot)[lane] = value;
      } else {
        warp.row<uint32_t>(init.slot)[lane] = static_cast<uint32_t>(value);
      }
    }
  }
}

}  // namespace tw::sim
