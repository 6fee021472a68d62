#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tilewright/sim/program.h"
#include "tilewright/sim/simulator.h"

namespace tw::sim {

// The clusters of a grid that have not started: they start, or a running one cancels them, in ascending
// order. Used only between rounds, by whoever has the turn (run.cpp).
struct PendingClusters {
  uint64_t next = 0, end = 0;
  uint64_t cancelled = 0;
  std::optional<uint64_t> take() { return next < end ? std::optional(next++) : std::nullopt; }
};

// What all clusters of one launch share. Nothing in it changes while clusters run, except global memory.
class Grid {
 public:
  // Checks the launch against every limit; user errors name the limit.
  Grid(const Program::Impl& decoded, const Launch& request, GlobalMemory& global,
       const RunOptions& run_options);

  const Program::Impl& program;
  const Launch& launch;
  const RunOptions& options;
  GlobalMemory& memory;
  uint64_t clusters = 0;
  Dim3 cluster;  // as the launch or .reqnctapercluster says
  uint32_t cluster_ctas = 1;
  mutable PendingClusters pending;
  uint32_t cta_threads = 0;
  uint32_t shared_bytes = 0;         // of a CTA: static and dynamic
  std::vector<std::byte> constants;  // rows that depend on the launch

  Dim3 first_cta(uint64_t number) const;  // %ctaid of rank 0
  Dim3 cta(uint64_t number, uint32_t rank) const;
  // Clusters that are on the machine at the same time, as its shared memory and threads allow.
  uint64_t resident_clusters() const;

 private:
  Dim3 cluster_shape() const;
  void check() const;
  void check_schedule() const;
  void bind_module_variables();
};

}  // namespace tw::sim
