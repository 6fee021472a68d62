#include "tilewright/sim/warp.h"

#include <algorithm>
#include <bit>

#include "tilewright/sim/call.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/member_mask.h"
#include "tilewright/sim/observer.h"
#include "tilewright/sim/program.h"

namespace tw::sim {

Warp::Warp(Cta& owner, uint32_t index_in_cta) : cta_(&owner), index_(index_in_cta) {
  const Grid& grid = owner.cluster.grid;
  code_ = &grid.program.code;
  observer_ = grid.options.observer;
  base_[Slot::constants] = const_cast<std::byte*>(grid.program.constants.data());  // handlers only read it
  base_[Slot::launch] = const_cast<std::byte*>(grid.constants.data());
}

Warp::~Warp() = default;
Warp::Warp(Warp&&) noexcept = default;

CallStack& Warp::calls() {
  if (!calls_) calls_ = std::make_unique<CallStack>();
  return *calls_;
}

Cluster& Warp::cluster() const { return cta_->cluster; }
bool Warp::has_turn() const { return cta_->cluster.has_turn(); }
std::byte* Warp::local(uint32_t lane) const {
  return local_ + size_t{lane} * cta_->cluster.grid.program.local_bytes;
}

void Warp::start(uint32_t live_lanes, std::byte* registers_base, std::byte* local_base) {
  live_ = live_lanes;
  base_[Slot::registers] = registers_base;
  local_ = local_base;
  parked_.clear();
  current_ = {};
  Fragment entry;
  entry.lanes = live_lanes;
  parked_.push_back(entry);
  runnable_ = true;
  ordering_ = false;
  idle_epoch = 0;
  instructions_ = 0;
  cp_async = bulk = wgmma = {};
  calls_.reset();
  polled = {};
  if (observer_) observer_->warp_state(*this, WarpState::started, live_lanes);
}

const ptx::Instruction& Warp::instruction() const { return *code_->source[current_.pc]; }

// ---- fragments ----

bool Warp::may_merge(const Fragment& f) const {
  return f.wake == Wake::none &&
         (f.state == Fragment::State::runnable || f.state == Fragment::State::reconverging);
}

void Warp::park(Fragment::State state) {
  if (current_.lanes == 0) return;
  current_.state = state;
  if (current_.wake == Wake::none && state != Fragment::State::waiting &&
      state != Fragment::State::ordering) {
    for (Fragment& f : parked_) {
      if (f.pc == current_.pc && may_merge(f)) {
        f.lanes |= current_.lanes;
        f.state = Fragment::State::runnable;
        f.yielded = f.yielded && current_.yielded;
        current_ = {};
        return;
      }
    }
  }
  parked_.push_back(current_);
  current_ = {};
}

// Takes in the fragments that stand at `pc`, where the running one is now.
bool Warp::merge_at(uint32_t pc) {
  bool merged = false;
  for (size_t i = 0; i < parked_.size();) {
    if (parked_[i].pc == pc && may_merge(parked_[i])) {
      current_.lanes |= parked_[i].lanes;
      parked_[i] = parked_.back();
      parked_.pop_back();
      merged = true;
    } else {
      ++i;
    }
  }
  return merged;
}

bool Warp::select() {
  settle_aligned();
  auto best = [&](bool with_yielded) {
    Fragment* found = nullptr;
    for (Fragment& f : parked_) {
      if (f.state != Fragment::State::runnable || (f.yielded && !with_yielded)) continue;
      if (!found || code_->order[f.pc] < code_->order[found->pc]) found = &f;
    }
    return found;
  };
  Fragment* next = best(false);
  if (!next) {
    next = best(true);
    if (!next) return false;
    for (Fragment& f : parked_) f.yielded = false;
  }
  current_ = *next;
  *next = parked_.back();
  parked_.pop_back();
  if (current_.wake == Wake::none) merge_at(current_.pc);
  leads();
  return true;
}

// Whether the running fragment may go on without asking select(): nobody runnable is behind it or at its pc.
bool Warp::leads() {
  frontier_ = ~0u;
  const uint32_t here = code_->order[current_.pc];
  bool first = true;
  for (const Fragment& f : parked_) {
    if (f.state != Fragment::State::runnable && f.state != Fragment::State::reconverging) continue;
    const uint32_t there = code_->order[f.pc];
    if (there > here) {
      frontier_ = std::min(frontier_, there);
    } else if (there == here ? may_merge(f) : f.state == Fragment::State::runnable && !f.yielded) {
      first = false;
    }
  }
  return first;
}

// Fragments at an aligned instruction go on once they hold every live lane. When all the other lanes are
// already past it, in no loop that leads back, they cannot come any more.
void Warp::settle_aligned() {
  for (Fragment& f : parked_) {
    if (f.state != Fragment::State::reconverging) continue;
    const uint32_t needed = f.members & live_;
    if ((needed & ~f.lanes) == 0) {
      f.state = Fragment::State::runnable;
      continue;
    }
    if (!f.aligned) continue;
    const uint32_t here = code_->order[f.pc];
    const bool all_passed = std::all_of(parked_.begin(), parked_.end(), [&](const Fragment& other) {
      return &other == &f || (code_->order[other.pc] > here && code_->loop[other.pc] != code_->loop[f.pc]);
    });
    if (all_passed) {
      current_ = f;
      fault(
          f.lanes,
          "an .aligned instruction is executed by {} of the warp's {} live lanes; the others have passed it",
          std::popcount(f.lanes), std::popcount(live_));
    }
  }
}

Flow Warp::suspend(const WaitKind& kind, const Inst& inst, uint32_t lanes, uint64_t a, uint64_t b) {
  current_.wait = {&kind, lanes, a, b, &inst};
  current_.state = Fragment::State::waiting;
  return Flow::wait;
}

void Warp::branch(uint32_t target, uint32_t lanes) {
  const uint32_t others = current_.lanes & ~lanes;
  if (others == 0) {
    current_.pc = target;
    return;
  }
  Fragment rest = current_;
  rest.lanes = others;
  rest.pc = current_.pc + 1;
  rest.wake = Wake::none;
  current_.lanes = lanes;
  current_.pc = target;
  if (lanes == 0) {
    current_ = rest;
  } else {
    parked_.push_back(rest);
  }
}

void Warp::branch_from(uint32_t target, uint32_t lanes, uint32_t from) {
  const uint32_t past = current_.lanes & ~from, stay = from & ~lanes;
  Fragment rest = current_;
  rest.wake = Wake::none;
  if (past) {
    rest.lanes = past;
    rest.pc = current_.pc + 1;
    parked_.push_back(rest);
  }
  if (stay) {
    rest.lanes = stay;
    rest.pc = current_.pc;
    parked_.push_back(rest);
  }
  current_.lanes = lanes;
  current_.pc = target;
}

void Warp::leave(uint32_t lanes) {
  live_ &= ~lanes;
  exited_at_ = current_.pc;
  current_.lanes &= ~lanes;
  if (observer_) observer_->warp_state(*this, WarpState::exited, lanes);
  cluster().thread_exited(*this, lanes);  // what a CTA did not clean up is reported at its last exit
  ++current_.pc;
}

// ---- execution ----

uint32_t Warp::run(uint32_t limit) {
  uint32_t budget = limit;
  slice_over_ = false;
  while (budget != 0 && !slice_over_ && select()) execute(budget);
  const uint32_t used = limit - budget;
  alone_ = parked_.empty() ? 0 : alone_ + used;
  if (current_.lanes != 0) {
    // The lanes ahead wait where control flow meets again, as a GPU's reconvergence barriers make them,
    // however the schedule slices this warp. Lanes that run on and on may be waiting for one of those: let
    // them go.
    if (alone_ >= kSpinning) {
      current_.yielded = true;
      alone_ = 0;
    }
    park(Fragment::State::runnable);
  }
  refresh();
  instructions_ += used;
  return used;
}

// Runs the current fragment until it has to give way: to another fragment, to another warp, or because it
// waits.
void Warp::execute(uint32_t& budget) {
  const Inst* const code = code_->insts.data();
  const uint32_t* const order = code_->order.data();
  while (budget != 0) {
    const Inst& inst = code[current_.pc];
    uint32_t lanes = current_.lanes & (*reinterpret_cast<uint32_t*>(base_[0] + inst.guard) ^ inst.guard_flip);
    bool split = false;
    --budget;
    if (inst.gather != Gather::none && lanes != 0) [[unlikely]] {
      const uint32_t together = current_.lanes;
      if (!gathered(inst, lanes)) {
        ++budget;
        park(Fragment::State::reconverging);
        return;
      }
      split = current_.lanes != together;
      lanes &= current_.lanes;
    }
    if (observer_ && current_.wake == Wake::none) [[unlikely]]
      observer_->issue(*this, *code_->source[current_.pc], current_.pc, lanes);
    const Flow flow = (lanes | inst.always) ? inst.run(*this, inst, lanes) : Flow::next;
    if (flow == Flow::next) [[likely]] {
      ++current_.pc;
      current_.wake = Wake::none;
      if (split) [[unlikely]]
        return park(Fragment::State::runnable);  // the lanes left behind are first
    } else {
      if (flow == Flow::wait || flow == Flow::order) ++budget;  // counted when it completes
      if (!step_flow(flow)) return;
    }
    if (parked_.empty()) [[likely]] {
      if (slice_over_) return;
      continue;
    }
    if (flow == Flow::jump) {
      if (!leads()) {
        park(Fragment::State::runnable);
        return;
      }
      if (slice_over_) return;
      continue;
    }
    const uint32_t here = order[current_.pc];
    if (here >= frontier_) {
      if (here != frontier_) {
        park(Fragment::State::runnable);
        return;
      }
      merge_at(current_.pc);
      leads();
    }
    if (slice_over_) return;
  }
}

// Whether the lanes a collective instruction needs are here. If not, they are waited for. Of lanes with
// several member masks those of one that is complete go on, and the others are left where they are.
bool Warp::gathered(const Inst& inst, uint32_t lanes) {
  uint32_t members = kAllLanes;
  if (inst.gather == Gather::members) {
    const auto* masks = row<uint32_t>(inst.s[4]);
    members = masks[std::countr_zero(lanes)];
    if (lanes & ~members) {
      uint32_t complete = 0;
      each_group(masks, lanes, [&](uint32_t mask, uint32_t group) {
        if (group & ~mask)
          fault(group & ~mask, "a lane executes a .sync instruction whose member mask {:#010x} leaves it out",
                mask);
        if ((mask & live_ & ~group) == 0) complete = group;
        members |= mask;
      });
      if (complete != 0) {
        Fragment rest = current_;
        rest.lanes = lanes & ~complete;
        parked_.push_back(rest);
        current_.lanes &= ~rest.lanes;
        return true;
      }
    }
  }
  if ((members & live_ & ~lanes) == 0) return true;
  if (inst.gather == Gather::aligned && current_.lanes == live_) {
    fault(lanes,
          "an .aligned instruction is executed by {} of the warp's {} live lanes: its guard differs between "
          "lanes",
          std::popcount(lanes), std::popcount(live_));
  }
  current_.aligned = inst.gather == Gather::aligned;
  current_.members = members;
  return false;
}

// The flows that are not plain `next`. False: the fragment no longer runs.
bool Warp::step_flow(Flow flow) {
  switch (flow) {
    case Flow::next: return true;
    case Flow::jump: current_.wake = Wake::none; return current_.lanes != 0;
    case Flow::yield:
      ++current_.pc;
      current_.wake = Wake::none;
      current_.yielded = true;
      idle_epoch = cluster().epoch;
      slice_over_ = true;
      return true;
    case Flow::wait: {
      if (observer_) observer_->warp_state(*this, WarpState::suspended, current_.lanes);
      current_.wake = Wake::none;
      park(current_.state);
      return false;
    }
    case Flow::order:
      slice_over_ = true;
      park(Fragment::State::ordering);
      return false;
  }
  return true;
}

void Warp::run_ordered() {
  for (Fragment& f : parked_) {
    if (f.state != Fragment::State::ordering) continue;
    current_ = f;
    f = parked_.back();
    parked_.pop_back();
    break;
  }
  current_.state = Fragment::State::runnable;
  current_.wake = Wake::ready;
  slice_over_ = false;
  leads();
  uint32_t budget = 1;
  execute(budget);
  park(Fragment::State::runnable);
  ++instructions_;
  refresh();
}

void Warp::refresh() {
  ordering_ = runnable_ = false;
  settle_aligned();
  for (const Fragment& f : parked_) {
    if (f.state == Fragment::State::runnable) runnable_ = true;
    if (f.state == Fragment::State::ordering) ordering_ = true;
  }
}

bool Warp::wake_waiting() {
  bool any = false;
  for (Fragment& f : parked_) {
    if (f.state != Fragment::State::waiting) continue;
    stand_at(f.pc);
    if (!f.wait.kind->ready(*this, f.wait)) continue;
    f.state = Fragment::State::runnable;
    f.wake = Wake::ready;
    if (observer_) observer_->warp_state(*this, WarpState::resumed, f.lanes);
    any = true;
  }
  if (any) runnable_ = true;
  return any;
}

bool Warp::expire_waits() {
  bool any = false;
  for (Fragment& f : parked_) {
    if (f.state != Fragment::State::waiting || !f.wait.kind->times_out) continue;
    f.state = Fragment::State::runnable;
    f.wake = Wake::timeout;
    any = true;
  }
  if (any) runnable_ = true;
  return any;
}

// ---- messages ----

namespace {
// " (role load), lane 3": the role of an instruction and which lanes of the warp, nothing for all of them.
std::string role_and_lanes(const Warp& warp, uint32_t pc, uint32_t lanes) {
  const Program::Impl& program = warp.cluster().grid.program;
  std::string text;
  const ptx::Instruction* inst = pc < program.code.source.size() ? program.code.source[pc] : nullptr;
  if (inst && program.names && inst->role >= 0 &&
      static_cast<size_t>(inst->role) < program.names->roles.size())
    text += tw::format(" (role {})", program.names->roles[static_cast<size_t>(inst->role)]);
  if (lanes == kAllLanes) return text;
  if (std::popcount(lanes) == 1) return text + tw::format(", lane {}", std::countr_zero(lanes));
  return text + tw::format(", lanes {:#010x}", lanes);
}
}  // namespace

std::string Warp::where(uint32_t lanes) const {
  return tw::format("{}, warp {}{}", cta().name(), index(), role_and_lanes(*this, current_.pc, lanes));
}
std::string Warp::role_and_lanes_of(const Fragment& f) const { return role_and_lanes(*this, f.pc, f.lanes); }

void Warp::raise(ErrorKind kind, uint32_t lanes, std::string message, Cause cause) const {
  const ptx::Instruction* inst = current_.pc < code_->source.size() ? code_->source[current_.pc] : nullptr;
  SourceLoc loc;
  if (inst) {
    loc = inst->loc;
    message += tw::format("\n  at {}", inst->text());
    if (inst->line) message += tw::format(" (line {} of the PTX)", inst->line);
  }
  message += "\n  in " + where(lanes);
  throw Error(kind, loc, std::move(message), {}, cause);
}

}  // namespace tw::sim
