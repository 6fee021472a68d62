#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/ptx/debug_map.h"
#include "tilewright/ptx/module.h"
#include "tilewright/sim/call.h"
#include "tilewright/sim/inst.h"
#include "tilewright/sim/simulator.h"

// What decoding makes of an entry; Program owns one, clusters read it.
namespace tw::sim {

// Registers whose value is fixed when a warp starts.
enum class SpecialRow : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  dynamic_smem_size,
  total_smem_size,
  aggr_smem_size,
  reserved_smem_offset_begin,
  reserved_smem_offset_end,
  reserved_smem_offset_cap,
  shared_symbol,  // address of shared memory: `value` is the offset from the CTA's shared base
  shared_symbol_generic,
};

struct RowInit {
  SpecialRow what;
  Slot slot;
  bool wide = false;
  uint64_t value = 0;
};

struct Code {
  std::vector<Inst> insts;                      // one more than the text has: falling off the end exits
  std::vector<uint32_t> order;                  // per pc: position in the block order (block_order.h)
  std::vector<uint32_t> loop;                   // per pc: its outermost loop (block_order.h)
  std::vector<const ptx::Instruction*> source;  // per pc; nullptr for the implicit exit
};

struct GlobalSymbol {  // a module-scope .global variable
  const ptx::Variable* variable;
  Slot slot;  // 64-bit row in the launch's constants; generic address + offset
  int64_t offset = 0;
};

struct SharedSymbol {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

struct Program::Impl {
  std::shared_ptr<const ptx::Module> module;
  std::shared_ptr<const ptx::DebugMap> names;
  const ptx::Function* entry = nullptr;
  Machine machine;
  Code code;
  uint32_t register_bytes = 0;       // of one warp's file
  std::vector<std::byte> constants;  // rows of immediates
  uint32_t launch_bytes = 0;         // rows that depend on the launch
  std::vector<RowInit> rows;
  std::vector<GlobalSymbol> globals;
  std::vector<SharedSymbol> shared_symbols;
  std::vector<std::byte> const_memory;  // module-scope .const variables
  uint32_t static_shared = 0;
  uint32_t param_bytes = 0;
  uint32_t local_bytes = 0;           // per thread
  int cta_group = 0;                  // that all tcgen05 instructions name; 0: there are none
  bool ordered = false;               // may touch global memory in ways other clusters can wait for
  uint32_t registers_per_thread = 0;  // .maxnreg, else 0: unknown
  std::vector<std::unique_ptr<Subroutine>> functions;  // .func that the entry reaches (call.h)
  std::vector<std::shared_ptr<const void>> kept;
};

// Fills the rows of special registers and shared addresses of a warp that starts.
void initialise_rows(const Program::Impl& program, Warp& warp);

}  // namespace tw::sim
