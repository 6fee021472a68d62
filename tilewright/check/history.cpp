#include "tilewright/check/history.h"

namespace tw::check {
namespace {

Order after_operation(const Stamp& earlier, const Stamp& later, const View& view) {
  const Operation& op = *earlier.op;
  if (later.op && op.pipeline && later.op->pipeline == op.pipeline) return Order::ordered;
  if (!op.over(!earlier.write, view.caused)) return Order::unordered;
  // "tcgen05.fence": operations on tensor memory follow those of other threads only behind a fence.
  if (earlier.proxy == Proxy::tensor && later.proxy == Proxy::tensor && earlier.warp != later.warp &&
      !op.over(!earlier.write, view.tensor))
    return Order::no_tensor_fence;
  return Order::ordered;
}

}  // namespace

bool Operation::over(bool reads_only, const Clock& knows) const {
  for (const auto& part : parts)
    if (!part->over(index, knows)) return false;
  return !parts.empty() || (reads_only && read ? read : done)->over(index, knows);
}

Order order(const Stamp& earlier, const Stamp& later, const View& view) {
  if (earlier.op) return after_operation(earlier, later, view);
  if (earlier.warp == later.warp && (!later.op || later.proxy == Proxy::tensor))
    return Order::ordered;  // program order
  if (earlier.epoch > view.ordinary[earlier.actor]) return Order::unordered;
  if (later.proxy == Proxy::tensor && earlier.epoch > view.tensor[earlier.actor])
    return Order::no_tensor_fence;
  // "Async proxy": what threads did becomes visible to it by a fence.
  if (later.proxy == Proxy::async && earlier.epoch > view.proxied[earlier.actor])
    return Order::no_proxy_fence;
  return Order::ordered;
}

}  // namespace tw::check
