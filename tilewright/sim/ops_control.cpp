#include <bit>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Control Flow Instructions" and "Miscellaneous Instructions".
namespace tw::sim {

namespace {

Flow run_branch(Warp& w, const Inst& i, uint32_t lanes) {
  w.branch(static_cast<uint32_t>(i.imm), lanes);
  return Flow::jump;
}

void decode_branch(Decoding& d) {
  d.take("uni");
  const uint32_t target = d.label(d.operand(0));
  d.inst.imm = target;
  d.inst.run = &run_branch;
  d.flow({target}, false);
}

struct BranchTable {
  std::vector<uint32_t> targets;
};

// brx.idx: lanes with the same index go together.
Flow run_branch_indexed(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& table = *static_cast<const BranchTable*>(i.extra);
  const auto* index = w.row<uint32_t>(i.s[1]);
  const uint32_t first = index[std::countr_zero(lanes)];
  uint32_t same = 0;
  for (uint32_t l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    if (index[l] >= table.targets.size())
      w.fault(1u << l, "brx.idx with index {}, the table has {} targets", index[l], table.targets.size());
    if (index[l] == first) same |= 1u << l;
  }
  // The lanes with another index stay here and execute the instruction again.
  w.branch_from(table.targets[first], same, lanes);
  return Flow::jump;
}

void decode_branch_indexed(Decoding& d) {
  d.take("idx");
  d.take("uni");
  d.inst.s[1] = d.source(0, 4);
  BranchTable table{d.branch_targets(d.operand(1))};
  auto targets = table.targets;
  targets.push_back(d.pc());
  d.flow(std::move(targets), false);
  d.inst.extra = d.keep(std::move(table));
  d.inst.run = &run_branch_indexed;
}

Flow run_exit(Warp& w, const Inst&, uint32_t lanes) {
  w.leave(lanes);
  return Flow::jump;
}

void decode_exit(Decoding& d) {
  d.take("uni");
  d.inst.run = &run_exit;
  d.flow({}, false);
}

Flow run_trap(Warp& w, const Inst&, uint32_t lanes) { w.fault(lanes, "trap"); }

Flow run_nothing(Warp&, const Inst&, uint32_t) { return Flow::next; }
Flow run_pause(Warp&, const Inst&, uint32_t) { return Flow::yield; }

// nanosleep and pauses let other warps run.
void decode_nanosleep(Decoding& d) {
  d.take_type();
  d.source(0, 4);
  d.inst.run = &run_pause;
}

// Earlier grids have completed when a launch starts.
Flow run_grid_wait(Warp& w, const Inst&, uint32_t lanes) {
  if (Observer* o = w.cluster().observer()) o->waited(w, w.instruction(), lanes);
  return Flow::next;
}

void decode_griddepcontrol(Decoding& d) {
  const bool wait = d.take_one_of({"launch_dependents", "wait"}) == "wait";
  d.inst.run = wait ? &run_grid_wait : &run_nothing;
}

// setmaxnreg: the warp's budget changes; .inc waits until the CTA's pool has enough (PTX ISA, "setmaxnreg").
bool pool_ready(Warp& w, const Wait& wait) { return w.cta().register_pool >= wait.a; }
std::string describe_pool(const Warp& w, const Wait& wait) {
  return tw::format("{} registers, the CTA's pool has {} (setmaxnreg.inc)", wait.a, w.cta().register_pool);
}
Awaited pool_awaited(const Warp& w, const Wait&) { return {Awaited::Object::registers, &w.cta(), 0, 0}; }
constexpr WaitKind kRegisterWait{"registers", &pool_ready, &describe_pool, false, &pool_awaited};

Flow run_setmaxnreg(Warp& w, const Inst& i, uint32_t lanes) {
  const auto wanted = static_cast<uint32_t>(i.imm);
  if (w.registers == 0) {  // the launch did not say how many registers a thread has: nothing to account
    return Flow::next;
  }
  if (i.aux) {  // .inc
    if (wanted < w.registers)
      w.fault(lanes, "setmaxnreg.inc to {} registers, the warp has {} already", wanted, w.registers);
    const uint32_t missing = (wanted - w.registers) * kLanes;
    if (w.cta().register_pool < missing) return w.suspend(kRegisterWait, i, lanes, missing);
    w.cta().register_pool -= missing;
  } else {
    if (wanted > w.registers)
      w.fault(lanes, "setmaxnreg.dec to {} registers, the warp has only {}", wanted, w.registers);
    w.cta().register_pool += (w.registers - wanted) * kLanes;
  }
  w.registers = wanted;
  w.cluster().changed();
  return Flow::next;
}

void decode_setmaxnreg(Decoding& d) {
  d.inst.aux = d.take_one_of({"inc", "dec"}) == "inc";
  d.take("sync");
  d.take("aligned");
  d.take_type();
  const auto* count = d.operand(0).as<ptx::Immediate>();
  if (!count) d.unsupported("a register count that is no constant");
  d.inst.imm = static_cast<int64_t>(count->bits);
  if (d.inst.imm < 24 || d.inst.imm > 256 || d.inst.imm % 8 != 0)
    throw Error(ErrorKind::user, d.ptx.loc,
                tw::format("setmaxnreg: {} is not a multiple of 8 from 24 to 256", d.inst.imm));
  d.inst.gather = Gather::aligned;
  d.inst.run = &run_setmaxnreg;
}

}  // namespace

void register_control(Registry& r) {
  r.add("bra", &decode_branch);
  r.add("brx", &decode_branch_indexed);
  r.add("exit", &decode_exit);
  r.add("trap", [](Decoding& d) { d.inst.run = &run_trap; });
  r.add("brkpt", [](Decoding& d) { d.inst.run = &run_nothing; });
  r.add("pmevent", [](Decoding& d) {
    d.take("mask");
    d.inst.run = &run_nothing;
  });
  r.add("nanosleep", &decode_nanosleep);
  r.add("griddepcontrol", &decode_griddepcontrol);
  r.add("setmaxnreg", &decode_setmaxnreg);
}

}  // namespace tw::sim
