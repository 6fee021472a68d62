#include "tilewright/sim/cluster.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tilewright/base/math.h"
#include "tilewright/sim/deadlock.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/program.h"

namespace tw::sim {

Cluster::Cluster(const Grid& owner) : grid(owner), observer_(owner.options.observer) {
  for (uint32_t rank = 0; rank < grid.cluster_ctas; ++rank)
    ctas.push_back(std::make_unique<Cta>(*this, rank));
  for (auto& cta : ctas) {
    for (Warp& warp : cta->warps) warps.push_back(&warp);
  }
}

Cluster::~Cluster() = default;

void Cluster::start(uint64_t cluster_index) {
  index = cluster_index;
  extensions.clear();
  engines_.clear();
  barrier = {};
  next_sequence_ = instructions_ = 0;
  in_flight_ = 0;
  epoch = 1;
  woken_epoch_ = timeout_epoch_ = idle_polls_ = 0;
  ordered_op_ = nullptr;
  ordered_warp_ = nullptr;
  live_warps_ = warps.size();
  for (auto& cta : ctas) cta->id = grid.cta(index, cta->rank);
  if (observer_) observer_->cluster_begin(*this);
  for (auto& cta : ctas) cta->start();
  scheduler_ = grid.options.schedulers ? grid.options.schedulers->make(*this)
                                       : make_scheduler(grid.options.schedule, index);
}

// ---- addresses ----

Cluster::Location Cluster::locate_or_null(uint32_t address, uint32_t bytes) const {
  const uint32_t rank = address >> 24, place = address & 0xFFFFFF;
  if (rank >= ctas.size() || place < kSharedReserved) return {nullptr, 0};
  Cta* cta = ctas[rank].get();
  const uint32_t offset = place - kSharedReserved;
  if (!cta->shared.contains(offset, bytes) || cta->exited()) return {nullptr, 0};
  return {cta, offset};
}

Cluster::Location Cluster::locate(const Warp& warp, uint32_t lanes, uint32_t address, uint32_t bytes) const {
  const Location at = locate_or_null(address, bytes);
  if (at.cta) return at;
  const uint32_t rank = address >> 24;
  if (rank >= ctas.size()) {
    warp.fault(lanes, "shared address {:#x} names CTA {} of a cluster of {}", address, rank, ctas.size());
  }
  Cta& cta = *ctas[rank];
  const uint32_t place = address & 0xFFFFFF;
  if (place >= kSharedReserved && cta.shared.contains(place - kSharedReserved, bytes)) {
    // An operation in flight may outlive its own CTA.
    if (&cta == &warp.cta()) return {&cta, place - kSharedReserved};
    warp.fault(
        Cause::exited, lanes,
        "access to {} of CTA rank {}, which has exited: its shared memory is gone; a CTA must not exit "
        "before the cluster's last access to it (barrier.cluster)",
        cta.name_of_shared(place - kSharedReserved), rank);
  }
  warp.fault(lanes, "shared address {:#x} ({} bytes) lies outside the CTA's shared memory, {:#x} to {:#x}",
             address, bytes, shared_address(rank, 0), shared_address(rank, ctas[rank]->shared.size()));
}

// ---- mbarriers ----

LoggedMBarrier& Cluster::mbarrier(const Warp& warp, uint32_t lanes, uint32_t address) {
  const Location at = locate(warp, lanes, address, 8);
  if (at.offset % 8 != 0) warp.fault(lanes, "mbarrier address {:#x} is not 8-byte aligned", address);
  LoggedMBarrier* barrier_object = at.cta->find_mbarrier(at.offset);
  if (!barrier_object) {
    warp.fault(lanes, "no mbarrier is initialised at {} of CTA rank {}", at.cta->name_of_shared(at.offset),
               at.cta->rank);
  }
  return *barrier_object;
}

void Cluster::mbarrier_op(const Warp& warp, uint32_t lanes, BarrierOp what, uint32_t address, int64_t amount,
                          const AsyncOp* op) {
  LoggedMBarrier& b = mbarrier(warp, lanes, address);
  const Location at = locate(warp, lanes, address, 8);
  const uint64_t before = b.phase();
  const auto count = static_cast<uint32_t>(amount);
  const char* broken = "";
  auto kind = BarrierEvent::Kind::arrive;
  auto part = op ? BarrierLog::Part::signals : BarrierLog::Part::arrives;
  switch (what) {
    case BarrierOp::arrive: broken = b.arrive(count); break;
    case BarrierOp::arrive_no_complete: broken = b.arrive_no_complete(count); break;
    case BarrierOp::arrive_drop: broken = b.arrive_drop(count), kind = BarrierEvent::Kind::arrive_drop; break;
    case BarrierOp::expect_tx:
      broken = b.expect_tx(amount), kind = BarrierEvent::Kind::expect_tx;
      part = BarrierLog::Part::expects;
      break;
    case BarrierOp::complete_tx:
      broken = b.complete_tx(amount), kind = BarrierEvent::Kind::complete_tx;
      part = BarrierLog::Part::delivers;
      break;
    case BarrierOp::increase_pending:
      broken = b.increase_pending(count), kind = BarrierEvent::Kind::increase_pending;
      break;
  }
  if (*broken) {
    warp.fault(lanes,
               "mbarrier {} (phase {}, {} of {} arrivals pending, {} bytes outstanding), operation of {}: {}",
               at.cta->name_of_shared(at.offset), before, b.pending(), b.expected(), b.tx(), amount, broken);
  }
  if (what != BarrierOp::increase_pending) b.log.add(warp, op ? op->pc : warp.pc(), part, before, amount);
  if (observer_) {
    observer_->barrier(
        {BarrierEvent::Object::mbarrier, kind, at.cta, at.offset, before, amount, lanes, &warp, op});
    if (b.phase() != before) {
      observer_->barrier({BarrierEvent::Object::mbarrier, BarrierEvent::Kind::complete, at.cta, at.offset,
                          before, 0, lanes, &warp, op});
    }
  }
  changed();
}

// ---- asynchronous operations ----

Engine& Cluster::engine(std::string_view name, Engine::Order order, int cta_rank) {
  for (auto& e : engines_) {
    if (e->cta_rank == cta_rank && e->name == name) return *e;
  }
  engines_.push_back(std::make_unique<Engine>(std::string(name), order, *this, cta_rank));
  return *engines_.back();
}

void Cluster::issue(std::shared_ptr<AsyncOp> op, Engine& engine, Warp& warp, uint32_t lanes) {
  op->warp = &warp;
  op->pc = warp.pc();
  op->lanes = lanes;
  op->engine = &engine;
  op->sequence = next_sequence_++;
  ++in_flight_;
  warp.end_slice();
  changed();
  AsyncOp& issued = *op;
  engine.ops_.push_back(std::move(op));
  if (observer_) observer_->async_issued(issued);
}

bool Cluster::may_advance(const AsyncOp& op) const {
  if (op.milestone_ == Milestone::signalled) return false;
  const auto next = static_cast<Milestone>(static_cast<int>(op.milestone_) + 1);
  return op.engine->may_advance(op) && op.may_reach(next);
}

void Cluster::advance(AsyncOp& op, Milestone to) {
  while (op.milestone_ < to && may_advance(op)) {
    const auto next = static_cast<Milestone>(static_cast<int>(op.milestone_) + 1);
    if (grid.clusters > 1 && !has_turn_ && op.needs_order(next)) {
      ordered_op_ = &op;
      return;
    }
    op.warp->stand_at(op.pc);
    switch (next) {
      case Milestone::reads_done: op.read(*this); break;
      case Milestone::writes_done: op.write(*this); break;
      case Milestone::signalled: op.signal(*this); break;
      case Milestone::issued: break;
    }
    op.milestone_ = next;
    changed();
    if (observer_) observer_->async_reached(op, next);
  }
  if (op.milestone_ == Milestone::signalled) {
    --in_flight_;
    auto& ops = op.engine->ops_;
    auto it = std::find_if(ops.begin(), ops.end(), [&](const auto& p) { return p.get() == &op; });
    if (it != ops.end()) ops.erase(it);  // may end the operation's life
  }
}

const std::vector<AsyncOp*>& Cluster::advanceable() {
  advanceable_.clear();
  if (in_flight_ == 0) return advanceable_;
  for (auto& engine : engines_) {
    for (auto& op : engine->ops_) {
      if (may_advance(*op)) advanceable_.push_back(op.get());
    }
  }
  std::sort(advanceable_.begin(), advanceable_.end(),
            [](auto* a, auto* b) { return a->sequence < b->sequence; });
  return advanceable_;
}

// ---- exits and the cluster barrier ----

uint32_t Cluster::live_threads() const {
  uint32_t n = 0;
  for (const auto& cta : ctas) n += cta->live_threads();
  return n;
}

void Cluster::complete_cluster_barrier() {
  if (barrier.arrived == 0 || barrier.arrived < live_threads()) return;
  barrier.arrived = 0;
  ++barrier.generation;
  changed();
  if (observer_) {
    observer_->barrier({BarrierEvent::Object::cluster, BarrierEvent::Kind::complete, nullptr, 0,
                        barrier.generation - 1, 0, 0, nullptr, nullptr});
  }
}

void Cluster::thread_exited(Warp& warp, uint32_t lanes) {
  (void)lanes;
  if (warp.done()) --live_warps_;
  for (NamedBarrier& b : warp.cta().barriers) warp.cta().complete_if_all_arrived(b);
  complete_cluster_barrier();
  changed();
  if (warp.cta().live_threads() == 0) {
    warp.cta().exited_ = true;
    for (auto check : warp.cta().at_end) check(warp);
  }
}

// ---- running ----

Warp* Cluster::next_runnable(size_t from) const {
  const size_t n = warps.size();
  for (size_t i = 0, at = from % n; i < n; ++i) {
    if (warps[at]->runnable()) return warps[at];
    if (++at == n) at = 0;
  }
  return nullptr;
}

size_t Cluster::position(const Warp& warp) const {
  return size_t{warp.cta().rank} * warp.cta().warps.size() + warp.index();
}

void Cluster::wake() {
  woken_epoch_ = epoch;
  idle_polls_ = 0;
  for (Warp* w : warps) {
    if (!w->done()) w->wake_waiting();
  }
}

Cluster::Stop Cluster::run(uint64_t budget) {
  const uint64_t end = instructions_ + std::min(budget, ~uint64_t{0} - instructions_);
  const uint64_t limit = grid.options.instruction_limit;
  if (ordered_warp_) return Stop::order;
  while (!finished()) {
    if (instructions_ >= end) return Stop::budget;
    if (epoch != woken_epoch_) wake();
    const Action action = scheduler_->next(*this);
    switch (action.kind) {
      case Action::Kind::run: {
        const uint32_t n = action.warp->run(action.limit);
        instructions_ += n;
        scheduler_->ran(*action.warp, n);
        if (action.warp->ordering()) {
          ordered_warp_ = action.warp;
          return Stop::order;
        }
        if (limit && instructions_ > limit) {
          action.warp->raise(
              ErrorKind::deadlock, kAllLanes,
              tw::format("the cluster executed more than the limit of {} warp instructions", limit));
        }
        if (action.warp->idle_epoch == epoch) check_livelock();
        break;
      }
      case Action::Kind::advance:
        advance(*action.op, action.to);
        if (ordered_op_) return Stop::order;
        idle_polls_ = 0;
        break;
      case Action::Kind::idle: quiescent(); break;
      case Action::Kind::pause: return Stop::budget;
    }
  }
  if (observer_) observer_->cluster_end(*this);
  return Stop::finished;
}

void Cluster::take_turn() {
  has_turn_ = true;
  if (ordered_warp_) {
    ordered_warp_->run_ordered();
    ++instructions_;
    if (!ordered_warp_->ordering()) ordered_warp_ = nullptr;
  } else if (ordered_op_) {
    AsyncOp* op = std::exchange(ordered_op_, nullptr);
    advance(*op, static_cast<Milestone>(static_cast<int>(op->milestone_) + 1));
  }
  has_turn_ = false;
}

// Nothing can run and nothing can advance: waits that may fail do so, once for each state of the cluster.
void Cluster::quiescent() {
  if (timeout_epoch_ != epoch) {
    timeout_epoch_ = epoch;
    bool any = false;
    for (Warp* w : warps) any |= w->expire_waits();
    if (any) return;
  }
  report_deadlock(*this, "nothing in the cluster can move");
}

// Warps that only poll do not suspend; when nothing else happens for long they never will see a change.
void Cluster::check_livelock() {
  constexpr uint64_t kPatience = 1 << 20;
  if (++idle_polls_ < kPatience) return;
  report_deadlock(*this, "warps poll for something that nothing in the cluster can bring about");
}

// ---- CTA ----

std::string Cta::name() const { return tw::format("CTA ({}, {}, {})", id.x, id.y, id.z); }

Cta::Cta(Cluster& owner, uint32_t cluster_rank)
    : cluster(owner), rank(cluster_rank), shared(owner.grid.shared_bytes) {
  const uint32_t count = ceil_div(owner.grid.cta_threads, kLanes);
  warps.reserve(count);
  for (uint32_t i = 0; i < count; ++i) warps.emplace_back(*this, i);
  const Program::Impl& program = owner.grid.program;
  registers_.reset(static_cast<std::byte*>(
      std::aligned_alloc(64, round_up<size_t>(size_t{program.register_bytes} * count, 64))));
  if (!registers_) throw std::bad_alloc();
  local_.resize(size_t{program.local_bytes} * kLanes * count);
}

void Cta::Free::operator()(std::byte* p) const { std::free(p); }

uint32_t Cta::live_threads() const {
  uint32_t n = 0;
  for (const Warp& w : warps) n += static_cast<uint32_t>(std::popcount(w.live()));
  return n;
}

void Cta::start() {
  exited_ = false;
  barriers = {};
  extensions.clear();
  at_end.clear();
  mbarriers_.clear();
  ++mbarrier_generation_;
  if (!shared.written().all_unwritten()) {
    std::memset(shared.data(), static_cast<int>(SharedMemory::kPoison), shared.size());
    shared.written().reset(shared.size());
  }
  const Program::Impl& program = cluster.grid.program;
  const uint32_t threads = cluster.grid.cta_threads;
  std::memset(registers_.get(), 0, size_t{program.register_bytes} * warps.size());
  register_pool = 0;
  for (Warp& w : warps) {
    const uint32_t first = w.index() * kLanes;
    const uint32_t lanes = threads - first >= kLanes ? kAllLanes : (1u << (threads - first)) - 1;
    w.registers = program.registers_per_thread;
    w.start(lanes, registers_.get() + size_t{program.register_bytes} * w.index(),
            local_.data() + size_t{program.local_bytes} * kLanes * w.index());
    initialise_rows(program, w);
  }
}

void Cta::complete_if_all_arrived(NamedBarrier& b) {
  if (b.expected == 0) return;
  if (b.everyone) b.expected = round_up(live_threads_by_warp(), kLanes);
  if (b.arrived < b.expected) return;
  ++b.generation;
  b.arrived = b.expected = 0;
  b.earlier = std::exchange(b.warps, 0);
  b.everyone = false;
  b.last_reduction = b.reduction;
  b.reduction_kind = -1;
  cluster.changed();
  if (cluster.observer()) {
    const auto barrier_id = static_cast<uint32_t>(&b - barriers.data());
    cluster.observer()->barrier({BarrierEvent::Object::named, BarrierEvent::Kind::complete, this, barrier_id,
                                 b.generation - 1, 0, 0, nullptr, nullptr});
  }
}

// Barriers count whole warps.
uint32_t Cta::live_threads_by_warp() const {
  uint32_t n = 0;
  for (const Warp& w : warps) n += w.done() ? 0 : kLanes;
  return n;
}

LoggedMBarrier* Cta::find_mbarrier(uint32_t offset) {
  auto it = mbarriers_.find(offset);
  return it == mbarriers_.end() ? nullptr : &it->second;
}
void Cta::init_mbarrier(uint32_t offset, uint32_t count) {
  mbarriers_.insert_or_assign(offset, LoggedMBarrier(count));
  cluster.changed();
}
void Cta::invalidate_mbarrier(uint32_t offset) {
  mbarriers_.erase(offset);
  ++mbarrier_generation_;
}

std::string Cta::name_of_shared(uint32_t offset) const {
  const Program::Impl& program = cluster.grid.program;
  auto described = [&](const std::string& name, uint64_t within) {
    return within == 0 ? name : tw::format("{} + {} bytes", name, within);
  };
  if (program.names) {
    for (const ptx::Region& r : program.names->shared) {
      if (offset < r.begin || offset >= r.end) continue;
      const uint64_t stages = r.staged && !r.shape.empty() ? static_cast<uint64_t>(r.shape.front()) : 0;
      if (stages == 0) return described(r.name, offset - r.begin);
      const uint64_t stage_bytes = (r.end - r.begin) / stages,
                     stage = (offset - r.begin) / std::max<uint64_t>(stage_bytes, 1);
      return described(tw::format("{}[{}]", r.name, stage), offset - r.begin - stage * stage_bytes);
    }
  }
  for (const SharedSymbol& s : program.shared_symbols) {
    if (offset >= s.offset && offset < s.offset + s.bytes) return described(s.name, offset - s.offset);
  }
  return tw::format("shared byte {}", offset);
}

}  // namespace tw::sim
