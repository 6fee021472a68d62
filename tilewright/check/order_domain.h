#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "tilewright/check/order_recorder.h"
#include "tilewright/sim/grid.h"

namespace tw::check {

// The part of OrderRecorder that knows one domain.
class OrderRecorder::Domain {
 public:
  Domain(const Steering& steering, std::set<std::pair<uint32_t, uint64_t>>& spins,
         std::set<std::string>& not_explored, Plan plan, bool together, const sim::Cluster& first);

  void started(sim::Cluster& cluster);
  void ended(sim::Cluster& cluster);
  SyncTrace take();
  bool followed() const { return followed_ && at_ == plan_.items.size(); }
  uint64_t instructions() const { return instructions_; }

  // --- schedule ---
  sim::Action next(sim::Cluster& cluster);
  void ran(sim::Warp& warp, uint32_t instructions);
  size_t pick(std::span<sim::Cluster* const> running);

  // --- events ---
  void issue(const sim::Warp& warp, const ptx::Instruction& inst, uint32_t pc);
  void access(const sim::Warp& warp, const sim::Access& access);
  void tensor_memory(const sim::Warp& warp);
  void exited(const sim::Warp& warp);
  void issued(const sim::AsyncOp& op);
  void barrier(const sim::BarrierEvent& event);

 private:
  struct Word {  // four bytes that an instruction accesses
    SyncObject object;
    const std::byte* at;
    uint64_t before;
  };
  struct InFlight {
    ActorKey take = 0, signal = 0;  // of a request for a cluster's work; of others only the latter
  };
  // What a run does next, of what others can notice.
  struct Choice {
    sim::Cluster* cluster = nullptr;
    sim::Warp* warp = nullptr;
    sim::AsyncOp* op = nullptr;
    bool expire = false;
  };

  uint32_t place(const sim::Cta& cta) const;
  ActorKey key(const sim::Warp& warp) const;
  sim::Warp* warp(ActorKey key) const;
  void visible(const sim::Warp& warp);  // the open step is this warp's, and its slice ends
  SyncObject object(const sim::BarrierEvent& event) const;
  std::string describe(const Step& first, const Step& second, const SyncObject& object) const;
  std::string describe(const Step& step) const;
  std::string describe(const SyncObject& object) const;

  void close();  // the step, if one is open, is over
  void apply_words();
  std::optional<sim::Action> probe();
  std::optional<sim::Action> advance_hidden(sim::Cluster& cluster);
  ActorKey ready(const sim::AsyncOp& op) const;  // whose next milestone is a step; 0: it is none
  sim::Action perform(const Choice& choice);
  std::optional<Choice> planned();
  bool can_run(const sim::Warp& warp) const;
  sim::Action freely(sim::Cluster& cluster);
  sim::Action nothing(const sim::Cluster& cluster);
  void step_done();

  const bool together_;  // all clusters of the launch
  const Steering& steering_;
  std::set<std::pair<uint32_t, uint64_t>>& spins_;
  std::set<std::string>& not_explored_;
  Plan plan_;
  std::vector<bool> done_;
  size_t at_ = 0;
  bool followed_ = true;
  uint64_t tries_ = 0;  // actions since the plan's last step

  const size_t warps_, ctas_;                   // of a cluster
  std::map<uint64_t, sim::Cluster*> clusters_;  // that run, by index
  SyncOrder order_;
  size_t closed_ = 0;  // steps that step_done has seen
  std::unordered_map<const sim::AsyncOp*, InFlight> ops_;
  std::vector<uint32_t> issued_;           // operations, by warp
  std::vector<ActorKey> last_commit_;      // by warp
  std::vector<size_t> spun_;               // steps that there were when a warp last polled in vain, plus one
  std::map<size_t, uint32_t> allocating_;  // warps that asked for tensor memory, and where
  std::map<uint32_t, std::vector<uint32_t>> grants_;  // steps that asked for registers, by CTA
  std::vector<bool> took_;                            // registers, by warp, since its last step
  std::vector<Word> words_;
  sim::AccessKind words_kind_{};
  bool words_open_ = false;  // an access was seen and not yet applied
  uint32_t words_pc_ = 0;
  sim::Warp* probed_ = nullptr;
  uint32_t probes_ = 0;
  size_t turn_ = 0;
  uint64_t idle_ = 0, actions_ = 0, instructions_ = 0;
  sim::Cluster* current_ = nullptr;
};

}  // namespace tw::check
