#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Asynchronous operations (cp.async, bulk and tensor copies, wgmma, tcgen05, cluster launch control): objects
// that a schedule advances from milestone to milestone.
namespace tw::sim {

class Cluster;
class Warp;
class Engine;

enum class Milestone : uint8_t {
  issued,       // the instruction has executed
  reads_done,   // sources have been read: they may be overwritten
  writes_done,  // results are in place
  signalled,    // completion was reported (mbarrier, group); the operation is over
};
std::string_view name(Milestone m);

// One operation in flight. Effects happen in the three virtual functions; each runs exactly once, in this
// order, on the host thread that runs the cluster. A copy reads into the object in read() and stores in
// write(), so that a schedule can place other accesses between the two.
class AsyncOp {
 public:
  AsyncOp() = default;
  AsyncOp(const AsyncOp&) = delete;
  AsyncOp& operator=(const AsyncOp&) = delete;
  virtual ~AsyncOp() = default;

  virtual void read(Cluster&) {}    // issued -> reads_done
  virtual void write(Cluster&) {}   // reads_done -> writes_done
  virtual void signal(Cluster&) {}  // writes_done -> signalled

  // Dependencies other than the engine's order: false holds the operation back before milestone `next`.
  virtual bool may_reach(Milestone next) const {
    (void)next;
    return true;
  }
  // True when reaching `next` touches global memory in a way whose order between clusters shows (float
  // reductions).
  virtual bool needs_order(Milestone next) const {
    (void)next;
    return false;
  }
  virtual std::string describe() const = 0;  // for messages: "cp.async, 16 bytes x 32 lanes"

  Milestone milestone() const { return milestone_; }
  bool reached(Milestone m) const { return milestone_ >= m; }

  // Who issued it; set by Cluster::issue.
  Warp* warp = nullptr;
  uint32_t pc = 0;  // index of the instruction
  uint32_t lanes = 0;
  Engine* engine = nullptr;
  uint64_t sequence = 0;          // issue order in the cluster
  uint64_t ready_time = 0;        // free for a timed schedule
  void* observer_data = nullptr;  // free for an observer

 private:
  friend class Cluster;
  Milestone milestone_ = Milestone::issued;
};

// A unit that carries out operations, with its ordering rule.
class Engine {
 public:
  enum class Order : uint8_t {
    any,       // operations overtake each other freely (bulk copies)
    in_order,  // one starts (reads) only after its predecessor's writes are done (an MMA pipeline)
  };
  Engine(std::string engine_name, Order rule, Cluster& owner, int cta)
      : name(std::move(engine_name)), order(rule), cluster(owner), cta_rank(cta) {}
  virtual ~Engine() = default;
  virtual bool may_advance(const AsyncOp& op) const;  // by this engine's order

  const std::string name;
  const Order order;
  Cluster& cluster;
  const int cta_rank;
  const std::deque<std::shared_ptr<AsyncOp>>& in_flight() const { return ops_; }

 private:
  friend class Cluster;
  std::deque<std::shared_ptr<AsyncOp>> ops_;
};

// Groups of operations as committed by the lanes of one warp (cp.async.commit_group,
// cp.async.bulk.commit_group; wgmma uses it with all lanes). Lanes may commit separately; each lane sees its
// own sequence of groups.
class AsyncGroups {
 public:
  void add(std::shared_ptr<AsyncOp> op);  // joins the open group of op->lanes
  void commit(uint32_t lanes);            // closes the open group, empty ones too
  // True when for every lane of `lanes` all but its newest `allowed` groups have reached `m`.
  bool complete(uint32_t lanes, uint32_t allowed, Milestone m) const;
  bool open_complete(uint32_t lanes,
                     Milestone m) const;  // everything the lanes issued so far, committed or not
  std::vector<std::shared_ptr<AsyncOp>> outstanding(uint32_t lanes) const;

 private:
  void prune();
  struct Entry {
    std::shared_ptr<AsyncOp> op;
    uint32_t lanes;
  };
  struct Group {
    uint32_t lanes = 0;
    std::vector<Entry> entries;
  };
  std::vector<Entry> open_;
  std::deque<Group> groups_;
};

}  // namespace tw::sim
