#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/error.h"

namespace tw::check {

enum class Verdict : uint8_t {
  clean,       // every hand-off that ran is ordered
  faults,      // see the list
  incomplete,  // something ran that the checker has no model of; never clean
};
const char* name(Verdict v);

enum class FaultKind : uint8_t {
  race,           // two accesses that nothing orders
  scope,          // what orders two accesses does not reach from one's thread to the other's
  proxy_fence,    // ordered, but no proxy fence makes one visible to the other's proxy
  init_fence,     // a barrier is used before its initialisation is fenced
  lapping,        // a phase may complete twice while someone still waits for it
  registers,      // registers that wgmma or tcgen05.ld may still use
  exit,           // a CTA may end while its shared memory is in use
  tensor_fence,   // ordered, but no tcgen05.fence on the way
  undefined,      // the simulator stopped: undefined behaviour, a read of what nothing wrote
  deadlock,       // nothing can move any more
  wrong_result,   // the run ended, and a buffer does not hold what the launch expects
  unwritten,      // the run ended, and nothing wrote a part of what the launch expects
  bytes,          // a phase is armed with other bytes than are delivered to it
  unobserved,     // a wait may end a phase too early: nobody it knows saw the phase before
  election,       // lanes each do what one of them should
  overwritten,    // data over a live mbarrier
  named_barrier,  // an arrival may count for the wrong use of a named barrier
  dependency,     // a dependent launch touches what the grid before uses, without waiting for that grid
  // Remarks:
  not_waited_for,   // loads of tensor memory are in order by the use of their values alone
  not_handed_back,  // operands of tcgen05.mma are overwritten by threads without a proxy fence
  spare_registers,  // setmaxnreg gives back more than is taken again
  freed_elsewhere,  // tensor memory is given back by another warp than the one that allocated it
};
const char* name(FaultKind k);

enum class Severity : uint8_t {
  fault,  // the verdict is `faults`
  // The PTX ISA does not promise it, or it is disputed, but kernels that work do it: said, and the verdict
  // stays what it is.
  remark,
};
Severity severity(FaultKind k);
const char* name(Severity s);
// The page that explains the kind, from the project's root: "docs/faults/race.md".
std::string page(FaultKind k);

struct Fault {
  FaultKind kind = FaultKind::race;
  std::string message;  // one sentence: what, where
  SourceLoc loc;        // of the later access
  std::vector<Note> notes;
  std::string schedule;  // that showed it first
};

// Other orders of synchronisation than those the schedules gave (explore.h).
struct Exploration {
  uint64_t runs = 0;
  uint64_t orders = 0;  // that ran and differ; of clusters that do not notice each other, together
  uint64_t left = 0;    // reversals of two steps that were found but not run
  std::vector<std::string> not_explored;  // which, and what is never explored
  // Under the model of docs/checker.md no other order can change what the kernel does.
  bool complete() const { return not_explored.empty(); }
};

struct CheckReport {
  Verdict verdict = Verdict::clean;
  std::vector<Fault> faults;
  std::vector<Fault> remarks;            // of that severity
  std::vector<std::string> not_checked;  // why the verdict is incomplete
  std::vector<std::string> schedules;    // that ran
  std::optional<Exploration> exploration;
};

// "clean", or "clean, 2 remarks".
std::string summary(const CheckReport& report);
// quote(loc), where given, shows the source line below the sentence that names it.
std::string to_text(const CheckReport& report,
                    const std::function<std::string(const SourceLoc&)>& quote = nullptr);

}  // namespace tw::check
