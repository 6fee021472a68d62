#include "tilewright/check/global.h"

#include "tilewright/base/math.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/global_memory_impl.h"

namespace tw::check {

uint32_t GlobalTouches::number(GlobalStamp s) {
  uint32_t& last = recent[(s.pc * 31 + s.actor) % recent.size()];
  if (last >= told) {
    const GlobalStamp& l = stamps[last];
    if (l.op == s.op && l.actor == s.actor && l.epoch == s.epoch && l.pc == s.pc && l.write == s.write &&
        l.proxy == s.proxy && l.elsewhere == s.elsewhere)
      return last;
  }
  stamps.push_back(std::move(s));
  return last = static_cast<uint32_t>(stamps.size() - 1);
}

Checker::Launch::Launch(Checker& owner, const sim::Grid& grid)
    : spaces(2 * size_t{grid.cluster_ctas} * ceil_div(grid.cta_threads, 32u) + 1, grid.cluster_ctas),
      owner_(owner),
      grid_(grid),
      shadow_(extent()) {}

PagedShadow::Extent Checker::Launch::extent() const {
  return [&memory = grid_.memory.impl()](uint64_t address) -> std::pair<uint64_t, uint64_t> {
    if (const sim::Allocation* a = memory.find(address)) return {a->address, a->address + a->bytes};
    return {address, address + 1};
  };
}

void Checker::Launch::tell(GlobalTouches& touches) {
  if (single()) return;
  std::lock_guard lock(mutex_);
  tell_locked(touches);
}

void Checker::Launch::tell_locked(GlobalTouches& touches) {
  uint32_t number = 0;
  const auto how = [&](Shadow::Entry e) {
    const GlobalStamp &earlier = stamps_[e.stamp()], &later = stamps_[number];
    return earlier.cluster == later.cluster ? Order::ordered : order(earlier, later);
  };
  const auto ordered = [&](Shadow::Entry e) { return how(e) == Order::ordered; };
  const auto conflict_at = [&](uint64_t address) {
    return [&, address](Shadow::Entry e) {
      if (const Order found = how(e); found != Order::ordered) met(found, e.stamp(), number, address);
    };
  };
  const auto take_number = [&](uint32_t stamp) {
    GlobalStamp& s = touches.stamps[stamp];
    if (s.number == 0) {
      s.number = static_cast<uint32_t>(stamps_.size());
      stamps_.push_back(s);
    }
    number = s.number;
    return s.atomic && s.scope == Scope::gpu && !(s.is_volatile && !s.write);
  };
  touches.shadow.each_since(
      touches.told,
      [&](uint64_t address, uint64_t bytes, uint32_t stamp, bool write, bool) {
        const bool atomic = take_number(stamp);
        shadow_.access(address, bytes, number, write, atomic, conflict_at(address), ordered);
      },
      [&](PagedShadow::Rows rows) {
        take_number(rows.stamp);
        rows.stamp = number;
        shadow_.read(rows, conflict_at(rows.begin), ordered);
      });
  touches.told = static_cast<uint32_t>(touches.stamps.size());
}

void Checker::Launch::ended(uint64_t cluster, GlobalTouches touches) {
  if (single()) return;
  std::lock_guard lock(mutex_);
  waiting_.emplace(cluster, std::move(touches));
  if (grid_.program.ordered) return;
  for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_;
       at = waiting_.erase(at), ++next_)
    tell_locked(at->second);
}

void Checker::Launch::finish() {
  std::lock_guard lock(mutex_);
  for (auto& [cluster, touches] : waiting_) tell_locked(touches);
  waiting_.clear();
  for (const Unordered& u : unordered_)
    if (!waited_for_.contains(u.address))
      report(Order::unordered, stamps_[u.earlier], stamps_[u.later], u.address);
}

void Checker::Launch::met(Order how, uint32_t earlier, uint32_t later, uint64_t address) {
  const GlobalStamp &e = stamps_[earlier], &l = stamps_[later];
  const bool strong = e.atomic && l.atomic && e.scope == Scope::gpu && l.scope == Scope::gpu;
  if (!strong) return report(how, e, l, address);
  const bool forward = e.write;  // clusters are compared in another order than they ran in
  const GlobalStamp &write = forward ? e : l, &read = forward ? l : e;
  constexpr size_t kKept = 1000;
  if (!write.write || write.updates || read.write || !read.is_volatile || read.turn < write.turn) return;
  if (unordered_.size() < kKept)
    unordered_.push_back({forward ? earlier : later, forward ? later : earlier, address});
}

void Checker::Launch::waited_for(uint64_t word) {
  std::lock_guard lock(mutex_);
  waited_for_.insert(word);
}

void Checker::Launch::too_narrow(uint64_t reader, std::shared_ptr<const Handed> handed, std::string why) {
  std::lock_guard lock(mutex_);
  constexpr size_t kKept = 1000;
  for (Narrow& n : narrow_) {
    if (n.reader != reader || n.handed->cluster != handed->cluster || n.handed->actor != handed->actor)
      continue;
    n.handed = std::move(handed);
    return;
  }
  if (narrow_.size() < kKept) narrow_.push_back({reader, std::move(handed), std::move(why)});
}

// ---- orders between clusters ----

Order Checker::Launch::order(const GlobalStamp& earlier, const GlobalStamp& later) const {
  const Known* known = find(later.elsewhere, earlier.cluster);
  if (!known) return Order::unordered;
  if (earlier.op) return earlier.op->over(!earlier.write, known->caused) ? Order::ordered : Order::unordered;
  if (earlier.epoch > known->ordinary[earlier.actor]) return Order::unordered;
  if (later.proxy == Proxy::async && earlier.epoch > known->proxied[spaces.global() + earlier.actor])
    return Order::no_proxy_fence;
  if (later.proxy == Proxy::tensor_map && earlier.write && earlier.epoch > known->maps[earlier.actor])
    return Order::no_map_fence;
  return Order::ordered;
}

// ---- words ----

std::string Checker::Launch::name_of(uint64_t address) const {
  const sim::Allocation* a = grid_.memory.impl().find(address);
  if (!a) return tw::format("global address {:#x}", address);
  const std::string name = a->name.empty() ? "an unnamed allocation" : a->name;
  return address == a->address ? name : tw::format("{} + {} bytes", name, address - a->address);
}

std::string Checker::Launch::describe(const GlobalStamp& s) const {
  const auto& source = grid_.program.code.source;
  const ptx::Instruction* inst = s.pc < source.size() ? source[s.pc] : nullptr;
  const std::string what = s.op ? s.op->what : inst ? inst->text() : "an access";
  std::string role;
  const auto& names = grid_.program.names;
  if (inst && names && inst->role >= 0 && static_cast<size_t>(inst->role) < names->roles.size())
    role = tw::format(", role {}", names->roles[static_cast<size_t>(inst->role)]);
  const sim::Dim3 id = grid_.cta(s.cluster, s.rank);
  return tw::format("{} {} it (CTA ({}, {}, {}), warp {}{})", what, s.write ? "writes" : "reads", id.x, id.y,
                    id.z, s.warp_index, role);
}

const std::string* Checker::Launch::why_narrow(const GlobalStamp& earlier, const GlobalStamp& later) const {
  for (const Narrow& n : narrow_)
    if (n.reader == later.cluster && n.handed->cluster == earlier.cluster &&
        (earlier.op ? earlier.op->over(!earlier.write, n.handed->view.caused)
                    : n.handed->view.ordinary[earlier.actor] >= earlier.epoch))
      return &n.why;
  return nullptr;
}

void Checker::Launch::report(Order how, const GlobalStamp& earlier, const GlobalStamp& later,
                             uint64_t address) {
  if (!reported_.emplace(how, earlier.pc, later.pc).second) return;
  const auto& source = grid_.program.code.source;
  const auto at = [&](uint32_t pc) { return pc < source.size() ? source[pc] : nullptr; };
  Fault f;
  const std::string place = name_of(address), what = describe(later);
  std::string advice;
  const std::string* narrow = how == Order::unordered ? why_narrow(earlier, later) : nullptr;
  if (how == Order::no_map_fence) {
    f.kind = FaultKind::proxy_fence;
    f.message =
        tw::format("{}: {} as a tensor map, and may not see what another CTA wrote to it", place, what);
    advice =
        "fence.proxy.tensormap::generic.release.gpu after the writes and, before the copy, "
        "fence.proxy.tensormap::generic.acquire.gpu on the map (PTX ISA, \"membar, fence\")";
  } else if (how == Order::no_proxy_fence) {
    f.kind = FaultKind::proxy_fence;
    f.message = tw::format(
        "{}: {} through the async proxy, which may not see an earlier access of threads of "
        "another CTA",
        place, what);
    advice =
        "fence.proxy.async or fence.proxy.async.global by the threads that accessed it before they release, "
        "or "
        "behind the acquire (PTX ISA, \"Async proxy\"); one for shared memory orders no global memory";
  } else if (narrow) {
    f.kind = FaultKind::scope;
    f.message =
        tw::format("{}: {}, and what would order this after an access of another CTA does not reach it: {}",
                   place, what, *narrow);
    advice = "release and acquire at scope .gpu between CTAs (PTX ISA, \"Scope\")";
  } else if (earlier.atomic && later.atomic && earlier.scope == Scope::gpu && later.scope == Scope::gpu) {
    f.message = tw::format(
        "{}: {}, and nothing orders this after a write of another CTA: that both are strong, or "
        "volatile, does not make one wait for the other",
        place, what);
    advice =
        "the writer executes fence.acq_rel.gpu before it signals the reader, which executes one behind the "
        "signal (PTX ISA, \"Release and Acquire Patterns\")";
  } else if (earlier.atomic && later.atomic) {
    f.kind = FaultKind::scope;
    f.message = tw::format(
        "{}: {}, and so does another CTA, by strong accesses whose scopes do not reach each "
        "other",
        place, what);
    advice = "use scope .gpu (PTX ISA, \"Morally strong operations\")";
  } else {
    f.message = tw::format("{}: {}, and nothing orders this after an access of another CTA", place, what);
    advice =
        earlier.op
            ? "the thread that issued the copy waits for its completion (cp.async.bulk.wait_group, not "
              ".read) "
              "before it releases a flag at scope .gpu; the later CTA acquires it"
            : "after the earlier access, fence.acq_rel.gpu and an atomic or relaxed write of a flag (or "
              "st.release.gpu); in the later CTA a strong read of the flag and a fence (or ld.acquire.gpu)";
  }
  const ptx::Instruction *one = at(later.pc), *two = at(earlier.pc);
  if (one) f.loc = one->loc;
  f.notes.push_back({two ? two->loc : SourceLoc{}, "the other access: " + describe(earlier)});
  f.notes.push_back({{}, std::move(advice)});
  const auto name = [](const ptx::Instruction* i, uint32_t pc) {
    return i && i->loc ? to_string(i->loc) : std::to_string(pc);
  };
  owner_.found(std::move(f), name(one, later.pc), name(two, earlier.pc), kBetween);
}

}  // namespace tw::check
