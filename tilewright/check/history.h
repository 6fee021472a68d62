#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/check/clock.h"
#include "tilewright/sim/observer.h"

// Who did what when in one cluster, as far as shadow memory still refers to it.
namespace tw::check {

// Operations that complete in order for those who wait: the groups of a thread, the MMAs of a thread, a
// single copy. Whoever waits learns that all up to an index are over.
class Stream {
 public:
  void acquired(uint32_t actor, uint32_t epoch, uint64_t up_to) { seen_.push_back({actor, epoch, up_to}); }
  // Whether someone learned that operation `index` is over, early enough for `knows` to follow.
  bool over(uint64_t index, const Clock& knows) const {
    for (size_t i = seen_.size(); i-- > 0;)
      if (seen_[i].up_to >= index && seen_[i].epoch <= knows[seen_[i].actor]) return true;
    return false;
  }
  uint64_t issued = 0;

 private:
  struct Seen {
    uint32_t actor, epoch;
    uint64_t up_to;
  };
  std::vector<Seen> seen_;
};

enum class Proxy : uint8_t { generic, async, tensor };

// An asynchronous operation.
struct Operation {
  std::string what;                    // "cp.async.bulk.tensor, a box of 16384 bytes"
  std::shared_ptr<const View> start;   // what its issuer knew
  std::shared_ptr<Stream> done, read;  // completion of its writes; of its reads, where those end earlier
  std::vector<std::shared_ptr<Stream>> parts;  // wgmma, instead: each warp waits for its own
  uint64_t index = 1;                          // in the streams
  uint32_t pc = 0;
  const void* pipeline = nullptr;  // operations of one pipeline follow each other by themselves

  // Whether it is over, in its reads or altogether, for one who knows this much.
  bool over(bool reads_only, const Clock& knows) const;
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

enum class Order : uint8_t { ordered, unordered, no_proxy_fence, no_tensor_fence };

// Whether `earlier`, which happened before in this run, comes first in every run, for an access that knows
// `view`.
Order order(const Stamp& earlier, const Stamp& later, const View& view);

}  // namespace tw::check
