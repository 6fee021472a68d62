#include "tilewright/check/scene.h"

#include <bit>
#include <type_traits>

#include "tilewright/sim/grid.h"
#include "tilewright/sim/tensor_memory.h"

namespace tw::check {

using sim::BarrierEvent;

namespace {

uint64_t groups(const ptx::Instruction& inst) {
  const auto* n = inst.operands.empty() ? nullptr : inst.operands[0].as<ptx::Immediate>();
  return n ? n->bits : 0;
}

void remember(std::vector<std::shared_ptr<const Operation>>& newest, const std::shared_ptr<Operation>& op) {
  constexpr size_t kKept = 32;
  if (newest.empty() || newest.back() != op) newest.push_back(op);
  if (newest.size() > kKept) newest.erase(newest.begin());
}

// Operations issued at the commit that all but the newest `pending` groups end with.
uint64_t covered(const std::vector<uint64_t>& commits, uint64_t pending) {
  return commits.size() > pending ? commits[commits.size() - 1 - pending] : 0;
}

}  // namespace

Checker::Scene::Scene(Checker& owner, Launch& launch, sim::Cluster& cluster)
    : owner_(owner),
      launch_(launch),
      cluster_(cluster),
      actors_(launch.spaces.actors()),
      spaces_(launch.spaces),
      byte_counts_(reporter()),
      elections_(reporter()),
      places_(reporter(), cluster.ctas.size()),
      dependency_waits_(reporter(), cluster.grid),
      allocations_(reporter()),
      register_plan_(reporter(), cluster.grid.program.code.source),
      registers_(cluster.grid.program.code.source),
      origins_(cluster.grid.program),
      global_(launch.extent()) {
  warps_.resize(cluster.warps.size());
  for (size_t i = 0; i < warps_.size(); ++i) {
    warps_[i].all.index = static_cast<uint32_t>(2 * i);
    warps_[i].some.index = static_cast<uint32_t>(2 * i + 1);
    warps_[i].all.view = warps_[i].some.view = View(actors_);
  }
  for (size_t i = 0; i < cluster.ctas.size(); ++i)
    memories_.push_back({Shadow(cluster.ctas[i]->shared.size()),
                         Shadow(uint64_t{sim::TensorMemory::kLanes} * sim::TensorMemory::kColumns),
                         View(actors_),
                         {}});
  visits_.resize(cluster.ctas.size());
  for (Visits& v : visits_) v.at_end = View(actors_);
}

const ptx::Instruction* Checker::Scene::instruction(uint32_t pc) const {
  const auto& source = cluster_.grid.program.code.source;
  return pc < source.size() ? source[pc] : nullptr;
}

// ---- who knows what ----

Actor& Checker::Scene::actor(const sim::Warp& warp, uint32_t lanes) {
  WarpKnowledge& w = knowledge(warp);
  if (lanes == w.full) {
    ++w.changes;
    return w.all;
  }
  // A lane that runs alone knows what its warp knew, but of the other lanes' accesses only those before they
  // last met.
  if (w.seen != w.changes) {
    View& mine = w.some.view;
    const uint32_t other = w.all.index;
    const uint32_t ordinary = mine.ordinary[other];
    std::array<uint32_t, Spaces::kMost> proxied{};
    for (size_t s = 0; s < spaces_.count(); ++s) proxied[s] = mine.proxied[spaces_.begin(s) + other];
    mine.join(w.all.view);
    mine.tensor.join(w.all.view.tensor);
    mine.ordinary.reset(other, ordinary);
    for (size_t s = 0; s < spaces_.count(); ++s) mine.proxied.reset(spaces_.begin(s) + other, proxied[s]);
    mine.caused.set(other, w.all.epoch);
    w.seen = w.changes;
  }
  return w.some;
}

// All lanes meet at a barrier: each knows what any of them knew.
void Checker::Scene::join(WarpKnowledge& w) {
  for (Actor* a : {&w.all, &w.some}) {
    a->note_present();
  }
  w.all.view.join(w.some.view);
  w.all.view.tensor.join(w.some.view.tensor);
  w.some.view = w.all.view;
  ++w.all.epoch;
  ++w.some.epoch;
  w.seen = ++w.changes;
  w.lane_order.meet_all({w.all.epoch, w.some.epoch});
}

void Checker::Scene::learn(Actor& a, Stream& stream, uint64_t up_to) {
  a.view.caused.set(a.index, a.epoch);
  stream.acquired(a.index, a.epoch, up_to);
}

void Checker::Scene::learn(Actor& a, const Operation& op) {
  if (op.done) learn(a, *op.done, op.index);
  a.view.caused.join(op.start->caused);
}

// ---- events ----

void Checker::Scene::issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  WarpKnowledge& w = knowledge(warp);
  w.lanes = lanes;
  ++w.instructions;
  if (w.lane_order.apart()) gathered(warp, inst, lanes);
  if (inst.opcode() == "wgmma") {
    if (inst.has("mma_async")) ++w.wgmmas;
    else if (inst.has("commit_group")) w.wgmma_commits.push_back(w.wgmmas);
  } else if (inst.opcode() == "cp" && inst.has("bulk") && inst.has("commit_group")) {
    w.bulk.commit(lanes);
  } else if (inst.opcode() == "cp" && inst.has("commit_group")) {
    w.copies.commit(lanes);
  } else if (inst.opcode() == "setmaxnreg") {
    register_plan_.moved(warp);
  }
  if (registers_.any()) registers(warp, inst, w);
  if (w.loads.any()) {
    const Actor& a = lanes == w.full ? w.all : w.some;
    const auto load = w.loads.executed(register_table_.of(warp.pc(), inst), lanes, {a.index, a.epoch});
    // Another load of the same thread comes behind this one.
    if (load && inst.opcode() != "tcgen05")
      found(FaultKind::registers, warp.pc(),
            tw::format("{} ({}): writes a register that a tcgen05.ld may still fill", inst.text(),
                       where(warp, warp.pc())),
            load->pc, "the load",
            "tcgen05.wait::ld between the two (PTX ISA, \"Register dependencies, same thread\")");
  }
}

void Checker::Scene::registers(const sim::Warp& warp, const ptx::Instruction& inst, WarpKnowledge& w) {
  const std::vector<uint32_t>& used = registers_.of(warp.pc());
  if (used.empty()) return;
  const bool multiplies = inst.opcode() == "wgmma";
  const char* broken =
      multiplies ? w.registers.multiplies(used, w.wgmmas, registers_.count()) : w.registers.touched(used);
  if (!broken) return;
  found(FaultKind::registers, warp.pc(),
        tw::format("{} ({}): {}", inst.text(), where(warp, warp.pc()), broken), 0, {},
        "PTX ISA, \"wgmma.fence\" and \"wgmma.wait_group\"");
}

void Checker::Scene::fence(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  WarpKnowledge& w = knowledge(warp);
  Actor& a = actor(warp, lanes);
  fence(warp, inst, a);
  if (&a == &w.some && w.fences.all_came(&inst, lanes, warp.live())) fence(warp, inst, actor(warp, w.full));
}

void Checker::Scene::fence(const sim::Warp& warp, const ptx::Instruction& inst, Actor& a) {
  WarpKnowledge& w = knowledge(warp);
  View& v = a.view;
  Actor* some = &a == &w.all ? &w.some : nullptr;  // what its lanes did alone is fenced too
  if (inst.opcode() == "fence" && inst.has("tensormap::generic")) {
    memory_fence(warp, a, semantics_.of(warp.pc(), inst));
    if (inst.has("acquire")) {
      a.note_present();
      v.maps.join(v.ordinary);
      if (some) v.maps.set(some->index, some->epoch++);
      v.elsewhere = mapped(v.elsewhere);
    }
  } else if ((inst.opcode() == "fence" || inst.opcode() == "membar") && inst.has("proxy")) {
    proxy_fence(warp, check::proxy_fence(inst), a, some);
  } else if (inst.opcode() == "fence" && inst.has("mbarrier_init")) {
    w.init_fence = w.instructions;
  } else if (inst.opcode() == "fence" || inst.opcode() == "membar") {
    memory_fence(warp, a, semantics_.of(warp.pc(), inst));
  } else if (inst.opcode() == "wgmma") {
    w.registers.fence();
  } else if (inst.opcode() == "tcgen05") {
    v.caused.set(a.index, a.epoch);
    if (inst.has("fence::before_thread_sync")) {
      v.fenced.set(a.index, a.epoch);
      if (some) v.fenced.set(some->index, some->epoch++);
    } else {
      v.tensor.join(v.fenced);
      v.tensor.set(a.index, a.epoch);
    }
  }
  ++a.epoch;
}

// What came before, of this thread and of those it synchronised with.
void Checker::Scene::proxy_fence(const sim::Warp& warp, const ProxyFence& fence, Actor& a, Actor* some) {
  View& v = a.view;
  v.ordinary.set(a.index, a.epoch);
  fence.each(spaces_, warp.cta().rank, [&](size_t space) {
    v.proxied.join(v.ordinary, space);
    if (some) v.proxied.set(space + some->index, some->epoch);
    if (fence.back && space != spaces_.global()) v.returned.join(v.caused, space);
  });
  if (some) ++some->epoch;
  if (fence.global) v.elsewhere = proxied(v.elsewhere, spaces_.global());
  if (fence.shared()) knowledge(warp).init_fence = knowledge(warp).instructions;
}

// "Release and Acquire Patterns": a fence acquires what strong reads before it observed, and lets strong
// writes behind it release what came before.
void Checker::Scene::memory_fence(const sim::Warp& warp, Actor& a, const Semantics& how) {
  WarpKnowledge& w = knowledge(warp);
  View& v = a.view;
  for (size_t s = 0; how.acquires && s < static_cast<size_t>(how.scope); ++s) {
    v.ordinary.join(w.pending[s]);
    w.pending[s] = Clock();
  }
  if (how.acquires && how.scope == Scope::gpu) {
    for (const Flags::Entry& h : w.observed) take(a, *h);
    w.observed.clear();
    for (auto& read : w.volatile_reads)
      if (read.second != 0) launch_.waited_for(std::exchange(read, {}).second);
  }
  if (!how.releases) return;
  a.note_present();
  if (&a == &w.all) w.some.note_present();
  for (size_t s = 0; s < static_cast<size_t>(how.scope); ++s) {
    v.published[s].join(v.ordinary);
    if (&a == &w.all) v.published[s].set(w.some.index, w.some.epoch);
  }
  if (&a == &w.all) ++w.some.epoch;
}

void Checker::Scene::waited(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t lanes) {
  WarpKnowledge& w = knowledge(warp);
  if (inst.opcode() == "bar") return warp_barrier(warp, lanes);
  Actor& a = actor(warp, lanes);
  ++a.epoch;
  if (inst.opcode() == "wgmma") {
    const uint64_t up_to = covered(w.wgmma_commits, groups(inst));
    learn(a, *w.wgmma_part, up_to);
    w.registers.over(up_to);
  } else if (inst.opcode() == "tcgen05") {
    Stream& stream = inst.has("wait::ld") ? *w.tensor_loads : *w.tensor_stores;
    learn(a, stream, stream.issued);
    if (&stream == w.tensor_loads.get()) w.loads.waited();
  } else if (inst.opcode() == "cp") {
    wait_for_groups(w, a, inst, lanes);
  } else if (inst.opcode() == "griddepcontrol") {
    wait_for_grid_before(warp, inst, a, lanes);
  }
}

void Checker::Scene::wait_for_grid_before(const sim::Warp& warp, const ptx::Instruction& inst, Actor& a,
                                          uint32_t lanes) {
  if (!dependency_waits_.any()) return;
  WarpKnowledge& w = knowledge(warp);
  a.view.caused.set(spaces_.grid_before(), 1);
  if (&a == &w.some && w.fences.all_came(&inst, lanes, warp.live()))
    actor(warp, w.full).view.caused.set(spaces_.grid_before(), 1);
}

// "cp.async.wait_group", "cp.async.wait_all", "cp.async.bulk.wait_group": each lane waits for its own.
void Checker::Scene::wait_for_groups(WarpKnowledge& w, Actor& a, const ptx::Instruction& inst,
                                     uint32_t lanes) {
  if (inst.has("wait_all")) {
    a.view.caused.set(a.index, a.epoch);
    return w.copies.done->acquired(a.index, a.epoch, w.copies.issued(), lanes);
  }
  const bool bulk = inst.has("bulk");
  CopyGroups& copies = bulk ? w.bulk : w.copies;
  copies.wait(lanes, groups(inst), [&](uint32_t over, uint64_t up_to) {
    // What a lane learns of its own bulk copies the others of the warp do not; each uses its own cp.async.
    Actor& who = bulk && over != w.full ? w.some : a;
    if (&who != &a) ++who.epoch;
    who.view.caused.set(who.index, who.epoch);
    if (bulk) copies.read->acquired(who.index, who.epoch, up_to, over);
    if (!inst.has("read")) copies.done->acquired(who.index, who.epoch, up_to, over);
  });
}

void Checker::Scene::issued(const sim::AsyncOp& issued) {
  const sim::Warp& warp = *issued.warp;
  const ptx::Instruction* inst = instruction(issued.pc);
  if (!inst) return;
  Actor& a = actor(warp, issued.lanes);
  WarpKnowledge& w = knowledge(warp);
  if (inst->opcode() == "tcgen05") elections_.issued(issued, *inst, w.lanes);
  auto op = all_operations_.make();
  op->what = issued.describe();
  a.note_present();
  op->start = std::make_shared<View>(a.view);
  op->pc = issued.pc;
  const auto in_stream = [&](const std::shared_ptr<Stream>& stream) {
    op->done = stream;
    op->index = ++stream->issued;
  };
  if (inst->opcode() == "wgmma") {
    const uint32_t first = warp.index() / 4 * 4;
    for (uint32_t i = first; i < first + 4; ++i)
      op->parts.push_back(knowledge(warp.cta().warps[i]).wgmma_part);
    op->index = ++wgmmas_[{warp.cta().rank, first}];
    op->pipeline = op->parts[0].get();
  } else if (inst->opcode() == "tcgen05" && inst->has("commit")) {
    op->done = a.tensor_core;
    op->index = a.tensor_core->issued;
  } else if (inst->opcode() == "tcgen05") {
    const bool load = inst->has("ld"), store = inst->has("st");
    in_stream(load ? w.tensor_loads : store ? w.tensor_stores : a.tensor_core);
    if (!load && !store) {
      op->pipeline = a.tensor_core.get();
      // Scale factors that threads rewrite behind a tcgen05.cp went wrong for people; operands of tcgen05.mma
      // are refilled everywhere without a fence.
      op->without_fence = inst->has("cp") ? Order::no_proxy_fence : Order::not_handed_back;
    }
    if (load) w.loads.issued(op, register_table_.of(issued.pc, *inst).written, issued.lanes);
  } else if (inst->has("bulk_group")) {
    op->done = w.bulk.done;
    op->read = w.bulk.read;
    op->index = w.bulk.issue(issued.lanes, issued.pc);
    op->lanes = issued.lanes;
  } else if (inst->opcode() == "cp" && !inst->has("bulk")) {
    // cp.async.mbarrier.arrive is over when all of the lanes' copies before it are.
    op->done = w.copies.done;
    op->index = inst->has("mbarrier") ? w.copies.issued() : w.copies.issue(issued.lanes, issued.pc);
    op->lanes = issued.lanes;
  } else {
    op->done = std::make_shared<Stream>();
  }
  ++a.epoch;
  op->bulk = inst->has("bulk");
  op->ordinary = !op->bulk && (inst->opcode() == "st" || inst->opcode() == "red" || inst->opcode() == "cp");
  in_flight_[&issued] = std::move(op);
}

void Checker::Scene::signalled(const sim::AsyncOp& op) {
  in_flight_.erase(&op);
  if (current_ == &op) current_ = nullptr;
}

// ---- accesses ----

// Forgets what nothing refers to any more, so that long runs need no more memory than short ones.
void Checker::Scene::prune() {
  if (!stamps_.full()) return;
  std::vector<Shadow*> shadows;
  for (Memories& m : memories_) shadows.insert(shadows.end(), {&m.shared, &m.tensor});
  stamps_.prune(shadows);
  std::vector<Stream*> lasting;
  for (const WarpKnowledge& w : warps_) {
    lasting.insert(lasting.end(), {w.all.tensor_core.get(), w.some.tensor_core.get(), w.wgmma_part.get(),
                                   w.tensor_loads.get(), w.tensor_stores.get(), w.copies.done.get(),
                                   w.bulk.done.get(), w.bulk.read.get()});
  }
  all_operations_.prune(lasting);
  for (Memories& m : memories_) m.accumulators.clear();
  ordered_ = {};
  current_ = nullptr;
}

// Of the current operation.
uint32_t Checker::Scene::stamp(const sim::AsyncOp& op, bool tensor, bool write) {
  uint32_t& number = current_stamps_[(tensor ? 2u : 0u) + (write ? 1u : 0u)];
  if (number != 0) return number;
  Stamp s;
  s.pc = op.pc;
  s.warp = op.warp;
  s.op = current_operation_;
  s.proxy = tensor ? Proxy::tensor : s.op->ordinary ? Proxy::generic : Proxy::async;
  s.write = write;
  return number = stamps_.number(std::move(s));
}

// Whether an access follows an earlier one, and that in every run.
template <class Lanes>
Order Checker::Scene::order_of(Shadow::Entry before, Shadow::Entry now, const View& view, size_t space) {
  const Stamp &earlier = stamps_[before.stamp()], &later = stamps_[now.stamp()];
  const Order answer = order(earlier, later, view, space);
  if (answer != Order::ordered) return answer;
  if constexpr (std::is_same_v<Lanes, LaneRun>) {
    // What depends on the lanes of these bytes is not known of others.
    const LaneOrder& warp = knowledge(*later.warp).lane_order;
    const bool at_once =
        earlier.pc == later.pc && earlier.actor == later.actor && earlier.epoch == later.epoch;
    if (earlier.warp == later.warp && !earlier.op && !at_once && !warp.all_follow(before.write(), earlier))
      return warp.unordered(before, now, earlier) ? Order::lanes : Order::ordered;
  }
  ordered_[before.stamp() % ordered_.size()] = {before.stamp(), now.stamp(), space};
  return answer;
}

template <class Lanes>
void Checker::Scene::touch(const sim::Cta& cta, bool tensor, std::span<const sim::Stretch> stretches,
                           uint32_t id, const View& view, const Lanes& lanes) {
  Shadow& shadow = tensor ? memories(cta).tensor : memories(cta).shared;
  const size_t space = spaces_.shared(cta.rank);
  uint32_t just = 0;  // the earlier access found ordered last: neighbours mostly have the same
  const auto how = [&](Shadow::Entry e, Shadow::Entry fresh) {
    if (std::is_same_v<Lanes, NoLanes> && e.stamp() == just) return Order::ordered;
    if (ordered_[e.stamp() % ordered_.size()] != Ordered{e.stamp(), id, space})
      return order_of<Lanes>(e, fresh, view, space);
    just = e.stamp();
    return Order::ordered;
  };
  const bool write = stamps_[id].write, atomic = stamps_[id].atomic;
  for (const sim::Stretch& s : stretches)
    shadow.access(
        s.begin, s.bytes, id, write, atomic,
        [&](Shadow::Entry e, Shadow::Entry fresh) {
          if (const Order found = how(e, fresh); found != Order::ordered) [[unlikely]]
            report(found, e, fresh, cta, tensor, s.begin);
        },
        [&](Shadow::Entry e, Shadow::Entry fresh) { return how(e, fresh) == Order::ordered; }, lanes);
}

void Checker::Scene::access(const sim::Warp& warp, const sim::Access& access) {
  const bool global = access.space == sim::MemorySpace::global;
  if (!global && access.space != sim::MemorySpace::shared) return;
  prune();
  const Semantics& how = semantics_.of(warp.pc(), warp.instruction());
  if (how.strong && how.scope != Scope::none) synchronise(warp, access, how);
  Actor& a = actor(warp, access.lanes);
  a.view.ordinary.set(a.index, a.epoch);
  if (global) return access_global(warp, access, a, how);
  Stamp s;
  s.actor = a.index;
  s.epoch = a.epoch;
  s.pc = warp.pc();
  s.warp = &warp;
  const bool write = access.kind != sim::AccessKind::read;
  s.write = write;
  s.atomic = how.strong;
  const uint32_t id = stamps_.number(std::move(s));
  const ptx::Instruction* inst = instruction(warp.pc());
  const size_t operand = inst && !inst->operands.empty() && inst->operands[0].is<ptx::Address>() ? 0 : 1;
  knowledge(warp).lane_order.accessed();
  const bool aligned = cluster_.grid.program.code.insts[warp.pc()].gather == sim::Gather::aligned;
  const bool together = aligned && collective(warp);
  each_run(access, [&](uint64_t begin, uint64_t size, uint32_t lane) {
    const auto bytes = static_cast<uint32_t>(size);
    const auto at = cluster_.locate_or_null(static_cast<uint32_t>(begin), bytes);
    if (!at.cta) return;
    require_inside(warp.pc(), operand, warp, write, *at.cta, at.offset, bytes, access.bytes);
    if (write) places_.write(warp, *at.cta, at.offset, bytes);
    if (at.cta != &warp.cta()) visits_[at.cta->rank].accesses[a.index] = {a.epoch, warp.pc()};
    const LaneRun lanes = together ? LaneRun::of_all() : LaneRun(lane, at.offset, access.bytes);
    touch(*at.cta, false, at.offset, bytes, id, a.view, lanes);
  });
  if (aligned) met(warp, warp.live());
}

// Whether the pipeline of the current operation wrote just these columns last; then it follows itself, and
// only who it was changes.
bool Checker::Scene::accumulates(const sim::AsyncOp& op, Memories& memories, uint64_t begin, uint64_t end,
                                 bool write) {
  auto& all = memories.accumulators;
  const void* pipeline = write ? current_operation_->pipeline : nullptr;
  for (const Accumulator& a : all) {
    if (a.begin != begin || a.end != end || a.pipeline != pipeline) continue;
    stamps_.repeat(a.stamp, current_operation_, op.pc);
    ordered_[a.stamp % ordered_.size()] = {};
    return true;
  }
  std::erase_if(all, [&](const Accumulator& a) { return a.begin < end && begin < a.end; });
  if (pipeline) all.push_back({begin, end, stamp(op, true, true), pipeline});
  return false;
}

void Checker::Scene::access(const sim::AsyncOp& op, const sim::AsyncAccess& access) {
  if (current_ != &op) {
    auto it = in_flight_.find(&op);
    if (it == in_flight_.end()) return;
    prune();
    current_ = &op;
    current_operation_ = it->second;
    current_lasting_ = nullptr;
    current_stamps_ = {};
  }
  switch (access.space) {
    case sim::MemorySpace::shared: return access_shared(op, access);
    case sim::MemorySpace::tensor: return access_tensor(op, access);
    default: return access_global(op, access);
  }
}

void Checker::Scene::access_shared(const sim::AsyncOp& op, const sim::AsyncAccess& access) {
  const std::shared_ptr<Operation>& record = current_operation_;
  const bool write = access.kind != sim::AccessKind::read;
  Visits& visits = visits_[access.cta->rank];
  if (access.cta != &op.warp->cta()) remember(visits.operations, record);
  else if (write && record->bulk) remember(visits.copies, record);
  if (record->bulk)
    for (const sim::Stretch& s : access.stretches)
      require_inside(op.pc, write ? 0 : 1, *op.warp, write, *access.cta, s.begin, s.bytes, s.bytes);
  touch(*access.cta, false, access.stretches, stamp(op, false, write), *record->start);
}

void Checker::Scene::access_tensor(const sim::AsyncOp& op, const sim::AsyncAccess& access) {
  constexpr auto lanes = static_cast<uint32_t>(sim::TensorMemory::kLanes);
  const auto begin = static_cast<uint32_t>(access.column) * lanes + static_cast<uint32_t>(access.lane);
  const auto columns = static_cast<uint32_t>(access.columns), height = static_cast<uint32_t>(access.lanes);
  const bool write = access.kind != sim::AccessKind::read, whole = height == lanes;
  if (accumulates(op, memories(*access.cta), begin, begin + columns * lanes, write && whole)) return;
  const uint32_t id = stamp(op, true, write);
  const View& start = *current_operation_->start;
  if (whole) return touch(*access.cta, true, begin, columns * lanes, id, start);
  for (uint32_t c = 0; c < columns; ++c) touch(*access.cta, true, begin + c * lanes, height, id, start);
}

void Checker::Scene::tensor_memory(const sim::Warp& warp, int column, int columns) {
  Actor& a = actor(warp, warp.live());
  a.note_present();
  Stamp s;
  s.actor = a.index;
  s.epoch = a.epoch;
  s.pc = warp.pc();
  s.warp = &warp;
  s.proxy = Proxy::tensor;
  s.write = true;
  // A pair frees together, and neither may before what both did is over ("tcgen05.dealloc").
  const ptx::Instruction* inst = instruction(warp.pc());
  const bool frees = inst && inst->has("dealloc"), pair = frees && inst->has("cta_group::2");
  frees ? allocations_.given_back(warp, column) : allocations_.given(warp, column);
  s.atomic = pair;
  const uint32_t id = stamps_.number(std::move(s));
  const auto take = [&](const sim::Cta& cta) {
    Memories& m = memories(cta);
    m.accumulators.clear();
    // Columns are given out when they have been given back: who takes them follows who had them.
    View knows = a.view;
    if (!frees) {
      knows.join(m.freed);
      knows.tensor.join(m.freed.tensor);
    }
    touch(cta, true, static_cast<uint32_t>(column * sim::TensorMemory::kLanes),
          static_cast<uint32_t>(columns * sim::TensorMemory::kLanes), id, knows);
    if (frees) {
      m.freed.join(a.view);
      m.freed.tensor.join(a.view.tensor);
      m.freed.tensor.set(a.index, a.epoch);
    }
  };
  take(warp.cta());
  if (pair) take(*cluster_.ctas[warp.cta().rank ^ 1]);
}

}  // namespace tw::check
