#include "tilewright/ptx/special_registers.h"

#include <unordered_map>
#include <vector>

#include "tilewright/base/format.h"

namespace tw::ptx {
namespace {

std::vector<SpecialRegister> build() {
  std::vector<SpecialRegister> out;
  const auto add = [&](std::string_view name, Type type) { out.push_back({intern(name), type}); };
  for (const char* base :
       {"tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"})
    for (const char* axis : {"x", "y", "z"}) add(tw::format("%{}.{}", base, axis), Type::u32);
  for (const char* name : {"laneid",
                           "warpid",
                           "nwarpid",
                           "smid",
                           "nsmid",
                           "lanemask_eq",
                           "lanemask_le",
                           "lanemask_lt",
                           "lanemask_ge",
                           "lanemask_gt",
                           "clock",
                           "clock_hi",
                           "globaltimer_lo",
                           "globaltimer_hi",
                           "cluster_ctarank",
                           "cluster_nctarank",
                           "reserved_smem_offset_begin",
                           "reserved_smem_offset_end",
                           "reserved_smem_offset_cap",
                           "reserved_smem_offset_0",
                           "reserved_smem_offset_1",
                           "total_smem_size",
                           "aggr_smem_size",
                           "dynamic_smem_size"})
    add(tw::format("%{}", name), Type::u32);
  for (const char* name : {"gridid", "clock64", "globaltimer", "current_graph_exec"})
    add(tw::format("%{}", name), Type::u64);
  add("%is_explicit_cluster", Type::pred);
  for (int i = 0; i < 32; ++i) add(tw::format("%envreg{}", i), Type::b32);
  for (int i = 0; i < 8; ++i) add(tw::format("%pm{}", i), Type::u32);
  for (int i = 0; i < 8; ++i) add(tw::format("%pm{}_64", i), Type::u64);
  return out;
}

}  // namespace

std::span<const SpecialRegister> special_registers() {
  static const std::vector<SpecialRegister> all = build();
  return all;
}

const SpecialRegister* find_special_register(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const SpecialRegister*> out;
    for (const SpecialRegister& r : special_registers()) out[r.name] = &r;
    return out;
  }();
  const auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace tw::ptx
