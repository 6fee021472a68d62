#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tilewright/check/sync_trace.h"

namespace tw::check {

// A thing that actors synchronise by.
struct SyncObject {
  enum class Kind : uint8_t { mbarrier, named, cluster, memory, tensor_memory, launches, registers } kind;
  uint32_t place = 0;  // CTA of the domain; 0 for global memory
  uint64_t id = 0;     // shared offset, barrier number, address / 4
  auto operator<=>(const SyncObject&) const = default;
};

// Builds a trace from events, with the rules which of them commute.
//
// An arrival commutes with others of its phase, but not with those of the phase before that it does not
// follow: it could take their place. A wait that passed conflicts with the completion of the next phase; one
// whose failure leads elsewhere, with that of its own. An adjustment of what a phase expects conflicts with
// the completion, unless an arrival that the phase needs follows it. Accesses of memory commute when both
// read, or when both update by one commutative operation whose results steer nothing. What is accessed
// exclusively (an allocation, a request for a cluster's work) commutes never.
class SyncOrder {
 public:
  enum class Access : uint8_t { read, update, exclusive };
  enum class Arrival : uint8_t { counted, transfer, adjustment };
  using Describe = std::function<std::string(const Step& first, const Step& second, const SyncObject&)>;
  // Whether a read at this place that sees this value is repeated until it sees another.
  using Spins = std::function<bool(uint32_t pc, uint64_t value)>;

  SyncOrder(size_t warps, Describe describe, Spins spins)
      : describe_(std::move(describe)), spins_(std::move(spins)), warps_(warps) {}

  // The step that an actor is making; begins one if there is none.
  void begin(ActorKey actor, uint32_t pc);
  bool open() const { return open_; }
  ActorKey actor() const { return now_.actor; }
  size_t steps() const { return trace_.steps.size(); }
  const Step& step(size_t n) const { return trace_.steps[n]; }
  bool knows(uint32_t step) const { return known(step); }
  void finish();
  void discard() { open_ = false; }  // a step that left no trace in any object

  // --- within a step ---
  void issued(ActorKey op);                   // it follows what its issuer did so far
  void chained(ActorKey op, ActorKey after);  // and what this one did
  void init(const SyncObject& barrier);
  void invalidate(const SyncObject& barrier);
  // Phases of an mbarrier count from 1.
  void arrive(const SyncObject& barrier, uint64_t phase, Arrival how);
  void complete(const SyncObject& barrier, uint64_t phase);  // by the step's arrival
  void pass(const SyncObject& barrier, uint64_t phase, bool decides);
  // A warp goes on behind a barrier that it arrived at before: its next step follows those of the phase.
  void resume(ActorKey warp, const SyncObject& barrier, uint64_t phase);
  void fail(const SyncObject& barrier, uint64_t phase);
  // `before`: a word's value before the access. `waited`: it had to wait for updates of others.
  void access(const SyncObject& object, Access how, uint64_t operation = 0, uint64_t before = 0,
              bool waited = false);
  void give(const SyncObject& object, uint64_t phase = 0);  // whoever follows the object follows this
  void follow(const SyncObject& object, uint64_t phase = 0);

  SyncTrace take();  // the trace is complete

 private:
  struct Phase {
    uint64_t number = 0;
    Past view;
    std::vector<uint32_t> counted, transfers, adjustments, passes, fails;  // steps
    int64_t completer = -1;
  };
  struct Barrier {
    int64_t init = -1;
    std::deque<Phase> phases;
  };
  struct Touch {
    uint32_t step = 0;
    Access how{};
    uint64_t operation = 0, before = 0;
  };

  uint32_t id() const { return static_cast<uint32_t>(trace_.steps.size()); }
  static bool knows(const Past& past, const Step& step);
  bool known(uint32_t earlier) const;
  void conflict(uint32_t earlier, const SyncObject& o, bool expire = false);
  void conflicts(const std::vector<uint32_t>& earlier, const SyncObject& o);
  void reversal(uint32_t earlier, uint32_t later, const SyncObject& o, bool expire);
  void protect(const Phase& p, const SyncObject& o);
  void note(const SyncObject& o, uint64_t what, uint64_t phase);
  Phase& phase(const SyncObject& o, uint64_t number);
  static Phase* find(Barrier& b, uint64_t number);
  Barrier& initialised(const SyncObject& o);

  const Describe describe_;
  const Spins spins_;
  std::vector<Past> warps_;
  std::unordered_map<ActorKey, Past> starts_;  // of operations
  std::unordered_map<ActorKey, ActorKey> chain_;
  std::map<SyncObject, Barrier> barriers_;
  std::map<SyncObject, std::vector<Touch>> touches_;
  std::map<std::tuple<uint32_t, uint32_t, SyncObject>, std::shared_ptr<const std::string>> texts_;
  SyncTrace trace_;
  bool open_ = false;
  Step now_;
  Past past_;                                            // of the open step
  std::vector<std::pair<SyncObject, uint64_t>> given_;   // by it
  std::vector<std::pair<SyncObject, uint64_t>> behind_;  // barriers it passed
  std::vector<std::pair<uint32_t, uint32_t>> found_;     // reversals of it
};

}  // namespace tw::check
