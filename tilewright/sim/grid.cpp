#include "tilewright/sim/grid.h"

#include <algorithm>
#include <cstring>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/sim/global_memory_impl.h"
#include "tilewright/sim/register_file.h"
#include "tilewright/sim/shared_memory.h"

namespace tw::sim {

Grid::Grid(const Program::Impl& decoded, const Launch& request, GlobalMemory& global,
           const RunOptions& run_options)
    : program(decoded), launch(request), options(run_options), memory(global) {
  cluster = cluster_shape();
  check();
  cluster_ctas = static_cast<uint32_t>(cluster.count());
  clusters = launch.grid.count() / cluster_ctas;
  pending.end = clusters;
  cta_threads = static_cast<uint32_t>(launch.block.count());
  shared_bytes = program.static_shared + launch.dynamic_shared;
  bind_module_variables();
}

namespace {

// A dimension directive as three numbers; those not written are 1.
Dim3 directive(const ptx::Function& entry, std::string_view name, bool& present) {
  const auto values = entry.directive(name);
  present = !values.empty();
  auto at = [&](size_t i) { return i < values.size() ? static_cast<uint32_t>(values[i]) : 1u; };
  return {at(0), at(1), at(2)};
}

std::string text(const Dim3& d) { return tw::format("({}, {}, {})", d.x, d.y, d.z); }

}  // namespace

// ".reqnctapercluster": "runtime will use the specified values [...] if the same are not specified at launch
// time".
Dim3 Grid::cluster_shape() const {
  bool present = false;
  const Dim3 required = directive(*program.entry, "reqnctapercluster", present);
  return present && launch.cluster == Dim3{} ? required : launch.cluster;
}

// CUDA Programming Guide, "Technical Specifications per Compute Capability"; PTX ISA, "Performance-Tuning
// Directives" and "Cluster Dimension Directives".
void Grid::check() const {
  const Dim3 &grid = launch.grid, &block = launch.block;
  const Machine& m = program.machine;
  const ptx::Function& entry = *program.entry;
  const std::string who = "launch of " + entry.name + ": ";
  if (grid.count() == 0 || block.count() == 0 || cluster.count() == 0)
    user_error({}, "{}grid {}, block {} and cluster {} must have no zero extent", who, text(grid),
               text(block), text(cluster));
  if (grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535)
    user_error({}, "{}grid {} is over the limit of (2147483647, 65535, 65535)", who, text(grid));
  if (block.count() > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64)
    user_error({}, "{}block {} is over the limit of 1024 threads, at most 1024, 1024 and 64 in x, y and z",
               who, text(block));
  if (cluster.count() > m.max_cluster)
    user_error({}, "{}cluster {} has {} CTAs, {} allows {}", who, text(cluster), cluster.count(), m.name,
               m.max_cluster);
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    user_error({}, "{}grid {} is not a multiple of the cluster {}", who, text(grid), text(cluster));
  const uint64_t shared = uint64_t{program.static_shared} + launch.dynamic_shared;
  if (shared > m.shared_per_cta)
    user_error({}, "{}{} bytes of static and {} of dynamic shared memory are over {}'s limit of {} a CTA",
               who, program.static_shared, launch.dynamic_shared, m.name, m.shared_per_cta);
  if (launch.params.size() != program.param_bytes)
    user_error({}, "{}the parameter block has {} bytes, the entry takes {}", who, launch.params.size(),
               program.param_bytes);
  if (program.param_bytes > 32764)
    user_error({}, "{}parameters of {} bytes are over the limit of 32764", who, program.param_bytes);
  check_schedule();
  bool present = false;
  if (Dim3 d = directive(entry, "reqntid", present); present && !(d == block))
    user_error({}, "{}block {} is not what .reqntid asks for: {}", who, text(block), text(d));
  if (Dim3 d = directive(entry, "maxntid", present); present && block.count() > d.count())
    user_error({}, "{}block {} is over .maxntid {}", who, text(block), text(d));
  if (Dim3 d = directive(entry, "reqnctapercluster", present); present && !(d == cluster))
    user_error({}, "{}cluster {} is not what .reqnctapercluster asks for: {}", who, text(cluster), text(d));
  auto has = [&](std::string_view name) {
    return std::any_of(entry.directives.begin(), entry.directives.end(),
                       [&](const std::string& text) { return text.starts_with(name); });
  };
  if (has(".blocksareclusters"))
    not_modelled({}, "{}.blocksareclusters, a grid that counts clusters, is not modelled by the simulator",
                 who);
  // A launch whose cluster is one CTA counts as one that names none.
  if (has(".explicitcluster") && cluster.count() == 1 && !has(".reqnctapercluster"))
    user_error({}, "{}.explicitcluster asks for a cluster, the launch names none", who);
  if (const auto d = entry.directive("maxclusterrank");
      !d.empty() && cluster.count() > static_cast<uint64_t>(d[0]))
    user_error({}, "{}cluster {} is over .maxclusterrank {}", who, text(cluster), d[0]);
  const uint64_t threads = round_up<uint64_t>(block.count(), kLanes);
  if (const uint64_t fit = threads_that_fit(program.registers_per_thread, m.registers_per_sm); threads > fit)
    user_error({}, "{}a CTA has {} threads, but at {} registers a thread no more than {} fit", who, threads,
               program.registers_per_thread, fit);
}

// A role to starve must be one of the kernel's.
void Grid::check_schedule() const {
  if (options.schedule.kind != ScheduleSpec::Kind::starve || options.schedulers) return;
  std::string known;
  if (program.names) {
    for (const std::string& role : program.names->roles) {
      if (role == options.schedule.role) return;
      known += (known.empty() ? "" : ", ") + role;
    }
  }
  user_error({}, "schedule {}: kernel {} has no role '{}'; {}", to_string(options.schedule),
             program.entry->name, options.schedule.role,
             known.empty() ? "it has none at all" : "its roles are " + known);
}

Dim3 Grid::first_cta(uint64_t number) const {
  const Dim3& c = cluster;
  const uint64_t nx = launch.grid.x / c.x, ny = launch.grid.y / c.y;
  return {static_cast<uint32_t>(number % nx * c.x), static_cast<uint32_t>(number / nx % ny * c.y),
          static_cast<uint32_t>(number / (nx * ny) * c.z)};
}

Dim3 Grid::cta(uint64_t number, uint32_t rank) const {
  const Dim3 first = first_cta(number);
  return {first.x + rank % cluster.x, first.y + rank / cluster.x % cluster.y,
          first.z + rank / (cluster.x * cluster.y)};
}

uint64_t Grid::resident_clusters() const {
  const Machine& m = program.machine;
  const uint32_t threads = round_up(cta_threads, kLanes);
  uint64_t per_sm = std::min<uint64_t>(32, m.threads_per_sm / threads);
  per_sm = std::min<uint64_t>(per_sm, m.shared_per_sm / (shared_bytes + kSharedReserved));
  per_sm = std::min(per_sm, threads_that_fit(program.registers_per_thread, m.registers_per_sm) / threads);
  return std::max<uint64_t>(1, per_sm * m.sms / cluster_ctas);
}

// Module-scope .global variables: allocated and initialised by the first launch on this memory.
void Grid::bind_module_variables() {
  constants.resize(program.launch_bytes);
  if (program.globals.empty()) return;
  GlobalMemory::Impl& impl = memory.impl();
  auto& known = impl.modules[program.module.get()];
  known.module = program.module;
  for (const GlobalSymbol& symbol : program.globals) {
    auto [it, fresh] = known.addresses.try_emplace(symbol.variable, 0);
    if (fresh) {
      const ptx::Variable& v = *symbol.variable;
      const uint64_t bytes = v.size_bytes();
      it->second = memory.allocate(bytes, v.name);
      std::vector<std::byte> content(
          bytes);  // without an initialiser a .global variable is zero ("Initializers")
      const auto element = static_cast<size_t>(ptx::bytes(v.type));
      for (size_t i = 0; i < v.init.size(); ++i) {
        auto* value = v.init[i].as<ptx::Immediate>();
        if (!value) not_modelled({}, "the initialiser of {}: only numbers are modelled", v.name);
        std::memcpy(content.data() + i * element, &value->bits, element);
      }
      memory.write(it->second, content);
    }
    auto* row = reinterpret_cast<uint64_t*>(constants.data() + symbol.slot.offset);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      row[lane] = it->second + static_cast<uint64_t>(symbol.offset);
  }
}

}  // namespace tw::sim
