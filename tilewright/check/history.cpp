#include "tilewright/check/history.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tw::check {
namespace {

// Behind a load of tensor memory that nobody is known to have waited for.
Order after_use(const Stamp& earlier, const Stamp& later, const View& view) {
  const auto& used = earlier.op->used;
  // A use is of its lanes: like their accesses, others of the warp know of it when they have met.
  if (!used || !used->before(view.ordinary)) return Order::unordered;
  return earlier.warp == later.warp || used->before(view.tensor) ? Order::by_use : Order::no_tensor_fence;
}

Order after_operation(const Stamp& earlier, const Stamp& later, const View& view, size_t space) {
  const Operation& op = *earlier.op;
  if (later.op && op.pipeline && later.op->pipeline == op.pipeline) return Order::ordered;
  if (!op.over(!earlier.write, view.caused)) return after_use(earlier, later, view);
  // cp.async and st.async belong to the generic proxy: what they wrote is handed on like what threads wrote.
  if (earlier.proxy == Proxy::generic && later.proxy == Proxy::async &&
      !op.over(!earlier.write, view.proxied, space))
    return Order::no_proxy_fence;
  // "tcgen05.fence": operations on tensor memory follow those of other threads only behind a fence.
  if (earlier.proxy == Proxy::tensor && later.proxy == Proxy::tensor && earlier.warp != later.warp &&
      !op.over(!earlier.write, view.tensor))
    return Order::no_tensor_fence;
  // tcgen05, "Shared Memory Accesses": unlike those of copies and wgmma ("Async proxy"), its completion
  // implies no proxy fence.
  if (op.without_fence != Order::ordered && earlier.proxy == Proxy::async && later.proxy == Proxy::generic &&
      !later.op && !op.over(!earlier.write, view.returned, space))
    return op.without_fence;
  return Order::ordered;
}

}  // namespace

bool Operation::over(bool reads_only, const Clock& knows, size_t begin) const {
  for (const auto& part : parts)
    if (!part->over(index, knows, lanes, begin)) return false;
  return !parts.empty() || (reads_only && read ? read : done)->over(index, knows, lanes, begin);
}

void Stream::keep(const std::vector<uint64_t>& indices) {
  // Of what an actor saw between two of the operations, the first counts: it is the easiest to have heard of.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t>
      covered;  // by actor and lanes: operations below this place
  std::erase_if(seen_, [&](const Seen& s) {
    const auto now =
        static_cast<uint64_t>(std::upper_bound(indices.begin(), indices.end(), s.up_to) - indices.begin());
    uint64_t& before = covered[{s.actor, s.lanes}];
    if (now <= before) return true;
    before = now;
    return false;
  });
}

std::shared_ptr<Operation> Operations::make() {
  auto op = std::make_shared<Operation>();
  all_.push_back(op);
  return op;
}

void Operations::prune(const std::vector<Stream*>& lasting) {
  std::unordered_map<Stream*, std::vector<uint64_t>> used;
  for (Stream* stream : lasting) used[stream];
  std::erase_if(all_, [&](const std::weak_ptr<Operation>& weak) {
    const auto op = weak.lock();
    if (!op) return true;
    for (const auto& part : op->parts) used[part.get()].push_back(op->index);
    if (op->done) used[op->done.get()].push_back(op->index);
    if (op->read) used[op->read.get()].push_back(op->index);
    return false;
  });
  for (auto& [stream, indices] : used) {
    std::sort(indices.begin(), indices.end());
    stream->keep(indices);
  }
}

uint32_t Stamps::number(Stamp s) {
  // An instruction that reads and writes, for one lane after the other, has two.
  const size_t oldest = all_.size() > 2 ? all_.size() - 2 : 1;
  for (size_t i = all_.size(); i-- > oldest;) {
    const Stamp& last = all_[i];
    if (last.op == s.op && last.actor == s.actor && last.epoch == s.epoch && last.pc == s.pc &&
        last.write == s.write && last.atomic == s.atomic && last.proxy == s.proxy)
      return static_cast<uint32_t>(i);
  }
  all_.push_back(std::move(s));
  return static_cast<uint32_t>(all_.size() - 1);
}

void Stamps::prune(const std::vector<Shadow*>& shadows) {
  std::vector<uint32_t> fresh(all_.size());
  for (Shadow* shadow : shadows) shadow->each_stamp([&](uint32_t& stamp) { fresh[stamp] = 1; });
  uint32_t kept = 1;
  for (uint32_t i = 1; i < all_.size(); ++i) {
    if (!fresh[i]) continue;
    fresh[i] = kept;
    if (kept != i) all_[kept] = std::move(all_[i]);
    ++kept;
  }
  all_.resize(kept);
  for (Shadow* shadow : shadows) shadow->each_stamp([&](uint32_t& stamp) { stamp = fresh[stamp]; });
  limit_ = std::max(limit_, 2 * all_.size());
}

Order order(const Stamp& earlier, const Stamp& later, const View& view, size_t space) {
  if (earlier.op) return after_operation(earlier, later, view, space);
  // "fence.proxy.tensormap": what threads wrote is no tensor map for the copy engine before an acquire.
  const bool map = later.proxy == Proxy::tensor_map && earlier.write;
  const Order known = map && earlier.epoch > view.maps[earlier.actor] ? Order::no_map_fence : Order::ordered;
  if (earlier.warp == later.warp && (!later.op || later.proxy != Proxy::async))
    return known;  // program order
  if (earlier.epoch > view.ordinary[earlier.actor]) {
    if (earlier.epoch > view.narrow[earlier.actor]) return Order::unordered;
    // A signal of too small a scope need not make writes visible. What was read before it has been read.
    if (earlier.write) return Order::narrow;
  }
  if (later.proxy == Proxy::tensor && earlier.epoch > view.tensor[earlier.actor])
    return Order::no_tensor_fence;
  // "Async proxy": what threads did becomes visible to it by a fence.
  if (later.proxy == Proxy::async && earlier.epoch > view.proxied[space + earlier.actor])
    return Order::no_proxy_fence;
  return known;
}

}  // namespace tw::check
