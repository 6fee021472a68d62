#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/check/shadow.h"
#include "tilewright/check/view.h"
#include "tilewright/sim/observer.h"

// Who did what when in one cluster, as far as shadow memory still refers to it.
namespace tw::check {

// Operations that complete in order for those who wait: the groups of a thread, the MMAs of a thread, a
// single copy. Whoever waits learns that all up to an index are over.
class Stream {
 public:
  // `lanes`: of those lanes' parts of the operations; cp.async completes for each lane by itself.
  void acquired(uint32_t actor, uint32_t epoch, uint64_t up_to, uint32_t lanes = ~0u) {
    if (seen_.empty() || seen_.back().actor != actor || seen_.back().up_to != up_to ||
        seen_.back().lanes != lanes)
      seen_.push_back({actor, epoch, lanes, up_to});
  }
  // Whether someone learned that operation `index` is over, early enough for `knows`, whose first actor is at
  // `begin`, to follow.
  bool over(uint64_t index, const Clock& knows, uint32_t lanes = 1, size_t begin = 0) const {
    for (size_t i = seen_.size(); i-- > 0;) {
      if (seen_[i].up_to >= index && seen_[i].epoch <= knows[begin + seen_[i].actor])
        lanes &= ~seen_[i].lanes;
      if (lanes == 0) return true;
    }
    return false;
  }
  // Forgets what no longer makes a difference when over() is asked only for these operations (ascending) and
  // later ones.
  void keep(const std::vector<uint64_t>& indices);
  size_t size() const { return seen_.size(); }
  uint64_t issued = 0;

 private:
  struct Seen {
    uint32_t actor, epoch, lanes;
    uint64_t up_to;
  };
  std::vector<Seen> seen_;
};

enum class Proxy : uint8_t { generic, async, tensor, tensor_map };

// How an access stands to an earlier one.
enum class Order : uint8_t {
  ordered,
  unordered,
  lanes,  // of one warp, and nothing orders them
  narrow,
  no_proxy_fence,
  no_tensor_fence,
  no_map_fence,
  // In the field, but not by the PTX ISA:
  by_use,           // behind the use of what an unwaited tcgen05.ld loaded
  not_handed_back,  // behind the completion of a tcgen05.mma, whose operands no proxy fence gave back
};

// A time of an actor.
struct Moment {
  uint32_t actor, epoch;
  bool before(const Clock& knows) const { return epoch <= knows[actor]; }
};

// An asynchronous operation.
struct Operation {
  std::string what;                    // "cp.async.bulk.tensor, a box of 16384 bytes"
  std::shared_ptr<const View> start;   // what its issuer knew
  std::shared_ptr<Stream> done, read;  // completion of its writes; of its reads, where those end earlier
  std::vector<std::shared_ptr<Stream>> parts;  // wgmma, instead: each warp waits for its own
  uint64_t index = 1;                          // in the streams
  uint32_t lanes = 1;                          // whose parts of the streams it needs
  uint32_t pc = 0;
  bool bulk = false;      // a copy by the copy engine
  bool ordinary = false;  // a store of a thread that completes later, of the generic proxy
  // How a thread's access stands to it behind its end, without a proxy fence: for most, that is in order.
  Order without_fence = Order::ordered;
  std::optional<Moment> used;      // tcgen05.ld: its thread had read all that it loads
  const void* pipeline = nullptr;  // operations of one pipeline follow each other by themselves

  // Whether it is over, in its reads or altogether, for one who knows this much (see Stream).
  bool over(bool reads_only, const Clock& knows, size_t begin = 0) const;
};

// The operations of a cluster that something still refers to.
class Operations {
 public:
  std::shared_ptr<Operation> make();
  // Forgets those that are gone, and what their streams knew of them alone. `lasting`: the streams that
  // outlive their operations.
  void prune(const std::vector<Stream*>& lasting);
  size_t size() const { return all_.size(); }

 private:
  std::vector<std::weak_ptr<Operation>> all_;
};

// One access, or all a warp made in one epoch at one instruction.
struct Stamp {
  uint32_t actor = 0, epoch = 0;
  uint32_t pc = 0;
  const sim::Warp* warp = nullptr;
  std::shared_ptr<const Operation> op;  // null: an ordinary access
  Proxy proxy = Proxy::generic;
  bool write = false, atomic = false;
};

// Stamps by number. A number is valid until the next prune.
class Stamps {
 public:
  // The number of this stamp: that of one of the last two, if it is the same.
  uint32_t number(Stamp s);
  const Stamp& operator[](uint32_t number) const { return all_[number]; }
  // The access is done again, by `op` at `pc`.
  void repeat(uint32_t number, std::shared_ptr<const Operation> op, uint32_t pc) {
    all_[number].op = std::move(op);
    all_[number].pc = pc;
  }
  bool full() const { return all_.size() >= limit_; }
  size_t size() const { return all_.size() - 1; }
  // Forgets all that no shadow refers to, and numbers the others anew.
  void prune(const std::vector<Shadow*>& shadows);

 private:
  std::vector<Stamp> all_{1};  // 0 is none
  size_t limit_ = size_t{1} << 16;
};

// Whether `earlier`, which happened before in this run, comes first in every run, for an access that knows
// `view`. Lanes of one warp count as one here; LaneOrder tells them apart. `space`: of the memory
// that both access, as in Spaces.
Order order(const Stamp& earlier, const Stamp& later, const View& view, size_t space);

}  // namespace tw::check
