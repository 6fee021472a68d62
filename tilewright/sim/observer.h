#pragma once
#include <cstdint>
#include <span>

#include "tilewright/ptx/module.h"
#include "tilewright/sim/async.h"

namespace tw::sim {

class Cluster;
class Cta;
class Grid;
class Warp;
class Program;

enum class AccessKind : uint8_t { read, write, atomic };
enum class MemorySpace : uint8_t { shared, global, local, param, constant, tensor };

// One warp-wide access of memory by the generic proxy. addresses[lane] is a 32-bit shared::cluster address
// for shared memory, a device address for global memory.
struct Access {
  AccessKind kind;
  MemorySpace space;
  uint32_t lanes;
  uint32_t bytes;             // per lane
  const uint64_t* addresses;  // [32]
};

// Memory that an asynchronous operation touches, when it does: bytes of a CTA's shared memory, cells of its
// tensor memory, or bytes of global memory.
// Bytes that lie side by side.
struct Stretch {
  uint32_t begin, bytes;
};

struct AsyncAccess {
  AccessKind kind;                                   // atomic: a reduction in global memory
  MemorySpace space;                                 // shared, tensor or global
  const Cta* cta;                                    // shared and tensor
  std::span<const Stretch> stretches = {};           // shared
  uint32_t bytes = 0;                                // global
  int lane = 0, lanes = 0, column = 0, columns = 0;  // tensor
  uint64_t address = 0;                              // global: `rows` times `bytes`, `pitch` apart
  uint32_t rows = 1;
  uint64_t pitch = 0;
  bool tensor_map = false;  // these bytes are the operation's tensor map
};

struct BarrierEvent {
  enum class Object : uint8_t { mbarrier, named, cluster, warp } object;
  enum class Kind : uint8_t {
    init,
    invalidate,
    arrive,
    arrive_drop,
    expect_tx,
    complete_tx,
    increase_pending,
    complete,
    wait,
    passed,
    timed_out
  } kind;
  const Cta* cta;  // where the barrier lives
  uint32_t id;     // mbarrier: shared offset; named: 0 to 15
  uint64_t phase;  // the phase the event belongs to
  int64_t amount;  // arrivals or bytes
  uint32_t lanes;
  const Warp* warp;   // who did it
  const AsyncOp* op;  // set when an asynchronous operation did it
};

enum class WarpState : uint8_t { started, suspended, resumed, exited };

// Sees what happens in a run. Calls for one cluster come in program order; different clusters call from
// different host threads at the same time. Keep state per cluster in Cluster::observer_data. Observers that
// pass calls on (check/order_recorder.h) have to pass on each.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begin(const Grid&) {}
  virtual void launch_end() {}  // not after a failure
  virtual void cluster_begin(Cluster&) {}
  virtual void cluster_end(Cluster&) {}
  virtual void issue(const Warp&, const ptx::Instruction&, uint32_t pc, uint32_t lanes) {
    (void)pc, (void)lanes;
  }
  virtual void access(const Warp&, const Access&) {}
  virtual void fence(const Warp&, const ptx::Instruction&, uint32_t lanes) { (void)lanes; }
  // An instruction that waits (wait_group, tcgen05.wait, bar.warp.sync) let these lanes pass.
  virtual void waited(const Warp&, const ptx::Instruction&, uint32_t lanes) { (void)lanes; }
  // A warp was given these columns of its CTA's tensor memory, or gives them back.
  virtual void tensor_memory(const Warp&, int column, int columns) { (void)column, (void)columns; }
  virtual void async_issued(const AsyncOp&) {}
  virtual void async_access(const AsyncOp&, const AsyncAccess&) {}
  virtual void async_reached(const AsyncOp&, Milestone) {}
  virtual void barrier(const BarrierEvent&) {}
  virtual void warp_state(const Warp&, WarpState, uint32_t lanes) { (void)lanes; }
};

}  // namespace tw::sim
