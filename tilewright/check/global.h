#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tilewright/check/checker.h"
#include "tilewright/check/flags.h"
#include "tilewright/check/history.h"
#include "tilewright/check/paged.h"
#include "tilewright/check/spaces.h"
#include "tilewright/sim/grid.h"

// Global memory: what a cluster does to it, and what the clusters of a launch do to each other.
namespace tw::check {

// A stamp that outlives its cluster.
struct GlobalStamp : Stamp {
  uint64_t cluster = 0;
  uint32_t rank = 0, warp_index = 0;
  Scope scope = Scope::none;  // of a strong access
  uint64_t turn = 0;          // its place among those that take turns between clusters; 0: it does not
  bool updates = false;       // an atomic operation
  bool is_volatile = false;
  Elsewhere elsewhere;  // what it knows of other clusters
  uint32_t number = 0;  // between clusters; 0: not told yet
};

// What one cluster did to global memory.
struct GlobalTouches {
  explicit GlobalTouches(PagedShadow::Extent extent) : shadow(std::move(extent)) {}
  PagedShadow shadow;
  std::vector<GlobalStamp> stamps{1};  // 0 is none
  uint32_t told = 1;                   // stamps from here on have not been told to other clusters
  std::array<uint32_t, 64> recent{};   // stamps to use again, by place in the program
  uint32_t number(GlobalStamp s);
};

// Global memory between the clusters of one launch. Clusters run at the same time; what is found must not
// depend on which host thread is faster. So a cluster's accesses are looked at when it hands something over,
// which happens in a fixed order, and else when it has ended, in the order of clusters.
class Checker::Launch {
 public:
  Launch(Checker& owner, const sim::Grid& grid);

  const Spaces spaces;  // of each of its clusters
  Flags flags;
  bool single() const { return grid_.clusters == 1; }
  PagedShadow::Extent extent() const;

  void tell(GlobalTouches& touches);
  void ended(uint64_t cluster, GlobalTouches touches);
  void finish();                             // all clusters have ended
  uint64_t next_turn() { return ++turns_; }  // by whoever has it
  // The word is one that threads wait for, not data.
  void waited_for(uint64_t word);
  // A strong read that observed what does not reach it.
  void too_narrow(uint64_t reader, std::shared_ptr<const Handed> handed, std::string why);
  std::string name_of(uint64_t address) const;  // "out + 16 bytes"

 private:
  struct Narrow {
    uint64_t reader;
    std::shared_ptr<const Handed> handed;
    std::string why;
  };
  // A volatile read that follows a strong write by chance: right for a word that threads wait for, not for
  // data.
  struct Unordered {
    uint32_t earlier, later;
    uint64_t address;
  };
  void tell_locked(GlobalTouches& touches);
  void met(Order how, uint32_t earlier, uint32_t later, uint64_t address);
  Order order(const GlobalStamp& earlier, const GlobalStamp& later) const;
  void report(Order how, const GlobalStamp& earlier, const GlobalStamp& later, uint64_t address);
  std::string describe(const GlobalStamp& s) const;
  const std::string* why_narrow(const GlobalStamp& earlier, const GlobalStamp& later) const;

  Checker& owner_;
  const sim::Grid& grid_;
  std::mutex mutex_;
  PagedShadow shadow_;
  std::vector<GlobalStamp> stamps_{1};
  std::map<uint64_t, GlobalTouches> waiting_;  // clusters that have ended
  uint64_t next_ = 0;                          // of them, where no order is needed
  std::vector<Narrow> narrow_;
  uint64_t turns_ = 0;
  std::vector<Unordered> unordered_;
  std::set<uint64_t> waited_for_;
  std::set<std::tuple<Order, uint32_t, uint32_t>> reported_;  // kind, and both places in the program
};

}  // namespace tw::check
