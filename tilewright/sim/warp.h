#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/ptx/module.h"
#include "tilewright/sim/async.h"
#include "tilewright/sim/inst.h"

namespace tw::sim {

class Cta;
class Cluster;
class Warp;
class Observer;
class CallStack;
struct Allocation;
struct Code;  // program.h

// Why a suspended fragment runs again.
enum class Wake : uint8_t {
  none,     // it was not suspended
  ready,    // what it waited for has come
  timeout,  // nothing in the cluster can move; waits that may fail (try_wait) fail once
};

// An object that others must bring on before a wait ends.
struct Awaited {
  enum class Object : uint8_t { none, mbarrier, named, cluster, registers } object = Object::none;
  Cta* cta = nullptr;
  uint32_t id = 0;      // mbarrier: shared offset; named: 0 to 15
  uint32_t parity = 0;  // mbarrier: of the phase that must complete
};

// A kind of waiting; one constant object per kind.
struct WaitKind {
  std::string_view name;  // "mbarrier", "barrier"
  bool (*ready)(Warp& warp, const struct Wait& wait);
  std::string (*describe)(const Warp& warp, const struct Wait& wait);  // for the deadlock report
  bool times_out = false;
  Awaited (*awaited)(const Warp& warp, const struct Wait& wait) = nullptr;
};
struct Wait {
  const WaitKind* kind = nullptr;
  uint32_t lanes = 0;     // those that wait
  uint64_t a = 0, b = 0;  // as the kind likes it (address, phase)
  const Inst* inst = nullptr;
};

// Lanes of a warp that are at the same instruction.
struct Fragment {
  enum class State : uint8_t {
    runnable,
    waiting,       // suspended at pc by a handler
    reconverging,  // at an ".aligned" instruction, waiting for the warp's other lanes
    ordering,      // at an access that waits for its turn between clusters
  };
  uint32_t lanes = 0;
  uint32_t pc = 0;
  State state = State::runnable;
  bool yielded = false;  // gave way to the warp's other fragments
  bool aligned = false;  // reconverging: every live lane must come
  uint32_t members = 0;  // reconverging: the lanes that must come
  Wake wake = Wake::none;
  Wait wait;
};

// 32 lanes: registers, and the fragments the lanes have split into. The running fragment is the one with the
// lowest position in the block order (block_order.h); fragments that meet at the same pc merge.
class Warp {
 public:
  Warp(Cta& owner, uint32_t index_in_cta);
  ~Warp();
  Warp(Warp&&) noexcept;

  Cta& cta() const { return *cta_; }
  Cluster& cluster() const;
  uint32_t index() const { return index_; }           // in the CTA
  uint32_t live() const { return live_; }             // lanes that have not exited (or never existed)
  uint32_t active() const { return current_.lanes; }  // lanes of the running fragment
  uint32_t pc() const { return current_.pc; }         // of the instruction being executed

  // The row of an operand. T: uint32_t, int32_t, float for up to 32 bits; uint64_t, int64_t, double for 64.
  template <class T>
  T* row(Slot s) {
    return reinterpret_cast<T*>(base_[s.base] + s.offset);
  }
  template <class T>
  const T* row(Slot s) const {
    return reinterpret_cast<const T*>(base_[s.base] + s.offset);
  }
  uint32_t& mask(Slot predicate) { return *row<uint32_t>(predicate); }

  // --- for handlers ---
  Wake wake() const { return current_.wake; }
  const Wait& wait() const { return current_.wait; }
  // Suspends the running fragment; the handler then returns Flow::wait, and is called again when the wait
  // ends.
  Flow suspend(const WaitKind& kind, const Inst& inst, uint32_t lanes, uint64_t a = 0, uint64_t b = 0);
  void branch(uint32_t target,
              uint32_t lanes);  // `lanes` go to target, the others fall through; then Flow::jump
  // Of the lanes `from`, `lanes` go to target; the others of them stay at this instruction.
  void branch_from(uint32_t target, uint32_t lanes, uint32_t from);
  void leave(uint32_t lanes);               // `lanes` exit, the others fall through; then Flow::jump
  void end_slice() { slice_over_ = true; }  // return to the scheduler after this instruction
  bool has_turn() const;  // may access global memory in the order between clusters; else return Flow::order

  const ptx::Instruction& instruction() const;  // the one being executed

  // Undefined behaviour: throws Error(fault) with the instruction, its line, CTA, warp, role and lanes.
  template <class... Args>
  [[noreturn]] void fault(uint32_t lanes, fmt::format_string<Args...> text, Args&&... args) const {
    raise(ErrorKind::fault, lanes, tw::vformat(text, fmt::make_format_args(args...)));
  }
  template <class... Args>
  [[noreturn]] void fault(Cause cause, uint32_t lanes, fmt::format_string<Args...> text,
                          Args&&... args) const {
    raise(ErrorKind::fault, lanes, tw::vformat(text, fmt::make_format_args(args...)), cause);
  }
  [[noreturn]] void raise(ErrorKind kind, uint32_t lanes, std::string message,
                          Cause cause = Cause::other) const;
  std::string role_and_lanes_of(const Fragment& f) const;
  std::string where(uint32_t lanes) const;  // "CTA (1, 0, 0), warp 4 (role mma), lane 0"

  // --- for the cluster and schedulers ---
  void stand_at(uint32_t at) { current_.pc = at; }  // what messages name while the warp does not run
  bool done() const { return live_ == 0; }
  uint32_t exited_at() const { return exited_at_; }  // where lanes left last
  bool runnable() const { return runnable_; }
  uint32_t run(uint32_t limit);  // executes up to `limit` instructions; returns how many
  bool wake_waiting();           // resumes the fragments whose wait is over; true if any
  bool expire_waits();           // resumes with Wake::timeout the waits that may fail; true if any
  bool ordering() const { return ordering_; }              // stopped at an access between clusters
  void run_ordered();                                      // executes that access
  uint64_t instructions() const { return instructions_; }  // executed so far
  // The fragments, while the warp does not run.
  const std::vector<Fragment>& fragments() const { return parked_; }
  uint64_t idle_epoch = 0;  // Cluster::epoch at the last unsuccessful poll
  Wait polled;              // what it polled for last without success; kind null: nothing

  // --- state that families keep per warp ---
  CallStack& calls();
  AsyncGroups cp_async, bulk, wgmma;
  uint32_t registers = 0;      // per thread, as setmaxnreg left it
  Allocation* recent[4] = {};  // where global accesses went lately, by address register (memory_rows.cpp)

  // At the entry with these lanes; called once per CTA.
  void start(uint32_t live_lanes, std::byte* registers_base, std::byte* local_base);
  std::byte* local(uint32_t lane) const;  // the lane's local memory

 private:
  bool select();  // makes the runnable fragment that is furthest behind the running one
  void park(Fragment::State state);
  bool merge_at(uint32_t pc);
  void execute(uint32_t& budget);
  bool step_flow(Flow flow);
  void refresh();
  bool leads();
  bool gathered(const Inst& inst, uint32_t lanes);
  bool may_merge(const Fragment& f) const;
  void settle_aligned();

  Cta* cta_;
  uint32_t index_;
  uint32_t live_ = 0;
  uint32_t exited_at_ = 0;
  std::byte* base_[3] = {};
  std::byte* local_ = nullptr;
  std::unique_ptr<CallStack> calls_;  // nothing: nobody has called a function yet
  const Code* code_ = nullptr;
  Observer* observer_ = nullptr;
  Fragment current_;  // lanes == 0: none
  std::vector<Fragment> parked_;
  uint32_t frontier_ = ~0u;  // position of the next fragment ahead of the running one
  bool runnable_ = false;
  bool ordering_ = false;
  bool slice_over_ = false;
  uint64_t instructions_ = 0;
  static constexpr uint32_t kSpinning = 1 << 20;
  uint32_t alone_ = 0;  // instructions executed while other fragments waited
};

}  // namespace tw::sim
