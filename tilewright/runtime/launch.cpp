#include "tilewright/runtime/launch.h"

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/machine/target.h"
#include "tilewright/runtime/arguments.h"
#include "tilewright/runtime/storage.h"

namespace tw {
namespace {

std::string text(const sim::Dim3& d) { return format("[{}, {}, {}]", d.x, d.y, d.z); }

void check_axis(std::string_view kernel, std::string_view what, char axis, const sim::Dim3& extents,
                uint32_t value, uint32_t limit, std::string_view device) {
  if (value < 1 || value > limit)
    user_error({}, "{}: {} {}: extent {} must be from 1 to {} on {}", kernel, what, text(extents), axis,
               limit, device);
}

sim::Dim3 evaluate_grid(const Compiled& kernel, const ArgumentBinder& binder) {
  uint32_t grid[3] = {1, 1, 1};
  for (int axis = 0; axis < 3; ++axis) {
    if (!kernel.grid[axis]) continue;
    int64_t extent = kernel.grid[axis]([&](const std::string& symbol) { return binder.size(symbol); });
    if (extent < 0 || extent > 0x7fffffff)
      user_error({}, "{}: grid extent {} is {} for {}; it must be from 0 to 2147483647", kernel.name,
                 "xyz"[axis], extent, binder.sizes_text());
    grid[axis] = static_cast<uint32_t>(extent);
  }
  return {grid[0], grid[1], grid[2]};
}

}  // namespace

Binding bind_arguments(const Compiled& kernel, std::span<const Argument> arguments, const Device& device) {
  ArgumentBinder binder(kernel, arguments, device);
  binder.check_requirements();
  Binding result;
  result.launch.grid = evaluate_grid(kernel, binder);
  if (!result.empty()) result.launch.params = binder.pack();  // no tensor map describes an empty tensor
  result.launch.block = {kernel.block[0], kernel.block[1], kernel.block[2]};
  result.launch.cluster = {kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]};
  result.launch.dynamic_shared = kernel.dynamic_shared;
  result.sizes = binder.sizes();
  return result;
}

void check_target(std::string_view kernel, std::string_view target, const LaunchLimits& limits) {
  std::string reason = machine::why_not_on(target, limits.arch);
  if (!reason.empty())
    user_error({}, "{} cannot run on {}: {}; compile it for {}", kernel, limits.device, reason, limits.arch);
}

void check_extents(std::string_view kernel, const sim::Launch& launch, const LaunchLimits& limits) {
  auto check = [&](std::string_view what, const sim::Dim3& extents, const sim::Dim3& limit) {
    check_axis(kernel, what, 'x', extents, extents.x, limit.x, limits.device);
    check_axis(kernel, what, 'y', extents, extents.y, limit.y, limits.device);
    check_axis(kernel, what, 'z', extents, extents.z, limit.z, limits.device);
  };
  check("grid", launch.grid, limits.grid);
  check("block", launch.block, limits.block);
  if (launch.block.count() > limits.threads_per_cta)
    user_error({}, "{}: block {} has {} threads, {} allows {}", kernel, text(launch.block),
               launch.block.count(), limits.device, limits.threads_per_cta);
  check("cluster", launch.cluster, {limits.max_cluster, limits.max_cluster, limits.max_cluster});
  if (launch.cluster.count() > limits.max_cluster)
    user_error({}, "{}: cluster {} has {} CTAs, {} allows {}", kernel, text(launch.cluster),
               launch.cluster.count(), limits.device, limits.max_cluster);
  if (launch.grid.x % launch.cluster.x || launch.grid.y % launch.cluster.y ||
      launch.grid.z % launch.cluster.z)
    user_error({}, "{}: grid {} is no multiple of the cluster {}", kernel, text(launch.grid),
               text(launch.cluster));
}

void check_shared(std::string_view kernel, uint32_t static_bytes, uint32_t dynamic_bytes,
                  const LaunchLimits& limits) {
  if (static_bytes > limits.static_shared)
    user_error({}, "{}: a CTA has {} bytes of static shared memory; more than {} must be dynamic", kernel,
               static_bytes, limits.static_shared);
  uint64_t total = uint64_t{static_bytes} + dynamic_bytes;
  if (total > limits.shared_per_cta)
    user_error({}, "{}: a CTA needs {} bytes of shared memory ({} static, {} dynamic), {} allows {}", kernel,
               total, static_bytes, dynamic_bytes, limits.device, limits.shared_per_cta);
}

std::string describe_launch(const Compiled& kernel, std::span<const Argument> arguments,
                            const Binding& binding) {
  std::string list;
  size_t next = 0;
  for (const Param& param : kernel.params) {
    if (param.kind == Param::Kind::size || next >= arguments.size()) continue;
    list += format("{}{} = {}", list.empty() ? "" : ", ", param.name, argument_text(arguments[next++]));
  }
  for (const auto& [symbol, value] : binding.sizes)
    list += format("{}{} = {}", list.empty() ? "" : ", ", symbol, value);
  return describe_launch(format("{}({})", kernel.name, list), binding.launch);
}

std::string describe_launch(std::string_view entry, const sim::Launch& launch) {
  return format("{}, grid {}, block {}, cluster {}, {} bytes of dynamic shared memory", entry,
                text(launch.grid), text(launch.block), text(launch.cluster), launch.dynamic_shared);
}

}  // namespace tw
