#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/ptx/debug_map.h"
#include "tilewright/ptx/module.h"
#include "tilewright/sim/global_memory.h"

// The simulator's public face: decode an entry of a PTX module once, run it on a grid as often as needed.
namespace tw::sim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

// What the simulated machine has. The runtime fills it from the machine room.
struct Machine {
  std::string name = "b200";     // for messages
  std::string arch = "sm_100a";  // what a module's .target must be able to run on
  uint32_t sms = 148;
  uint32_t shared_per_cta = 232448;  // bytes a CTA may have, static and dynamic together
  uint32_t shared_per_sm = 233472;
  uint32_t registers_per_sm = 65536;
  uint32_t threads_per_sm = 2048;
  uint32_t tensor_memory_columns = 512;  // 0: the machine has none
  uint32_t max_cluster = 16;
};

// In which order asynchronous work advances and warps run. A correct kernel gives the same result under all
// of them.
//   eager        an operation completes when it is issued
//   late         an operation completes only when nothing else in the cluster can run
//   random:SEED  warps and operations advance in an order drawn from SEED
//   starve:ROLE  the warps of one role of the debug map, and what they issued, move only when nothing else
//   can
struct ScheduleSpec {
  enum class Kind { eager, late, random, starve } kind = Kind::eager;
  uint64_t seed = 0;
  std::string role = {};
};
ScheduleSpec parse_schedule(std::string_view text);  // user error that lists the forms
std::string to_string(const ScheduleSpec& spec);

// The grid that a dependent launch follows (CUDA, "programmatic dependent launch"; PTX ISA,
// "griddepcontrol"). The simulator runs one launch after the other; who observes a run is told what that grid
// may still do when this one starts.
struct GridBefore {
  struct Use {
    uint64_t begin = 0, end = 0;  // device addresses
    bool writes = false;          // else it only reads them
  };
  std::vector<Use> uses;
};

struct Launch {
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared = 0;  // bytes
  std::vector<std::byte>
      params;  // the entry's parameter block: each parameter at its naturally aligned offset
  std::optional<GridBefore> grid_before = std::nullopt;  // there is one for a dependent launch
};

class Observer;          // observer.h
class SchedulerFactory;  // scheduler.h

struct RunOptions {
  ScheduleSpec schedule;
  int host_threads = 0;                    // 0: one per core; results do not depend on it
  Observer* observer = nullptr;            // none costs nothing
  SchedulerFactory* schedulers = nullptr;  // makes the schedulers instead of `schedule`
  uint64_t instruction_limit = 0;          // warp instructions of one cluster; 0: none
  void (*progress)(void* user, uint64_t clusters_done, uint64_t clusters) = nullptr;
  void* progress_user = nullptr;
};

struct RunStats {
  uint64_t warp_instructions = 0;
  uint64_t ctas = 0;
  double seconds = 0;
};

// An entry, decoded. Immutable: one Program may run on several host threads at once.
class Program {
 public:
  // Stops with not_modelled at the first instruction or modifier the simulator has no model of (with its
  // line), and with a user error when the entry does not exist. The module and debug map are kept.
  Program(std::shared_ptr<const ptx::Module> module, std::string_view entry, Machine machine,
          std::shared_ptr<const ptx::DebugMap> names = nullptr);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  uint32_t static_shared() const;  // bytes
  uint32_t param_bytes() const;

  // Runs the whole grid. Throws Error: `user` for a launch that breaks a limit (named), `fault` for undefined
  // behaviour (which instruction, CTA, warp, lanes), `deadlock`, `not_modelled` for what the simulator does
  // not know.
  RunStats run(const Launch& launch, GlobalMemory& memory, const RunOptions& options = {}) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tw::sim
