#pragma once
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/math.h"
#include "tilewright/ir/kernel.h"
#include "tilewright/layout/constructors.h"

// The language of kernels. C++ values are known when the kernel is built: C++ `if` and `for` choose and
// unroll. Var and Expr are known when it runs: if_, for_range and while_ record control flow. Every call
// remembers its source line, and the names given to buffers, barriers and roles come back in every report.
//
// One KernelBuilder at a time records on a host thread; the free functions and scope objects below record
// into it.
namespace tw::dsl {

using Where = std::source_location;

using ir::Arch;
using ir::cast;
using ir::ceil_div;
using ir::Expr;
using ir::Kernel;
using ir::max;
using ir::min;
using ir::select;
using tw::ceil_div;

inline constexpr DType u8 = DType::u8, u16 = DType::u16, u32 = DType::u32, u64 = DType::u64, i8 = DType::i8,
                       i32 = DType::i32, i64 = DType::i64, f16 = DType::f16, bf16 = DType::bf16,
                       tf32 = DType::tf32, f32 = DType::f32, e4m3 = DType::e4m3, e5m2 = DType::e5m2;

inline constexpr SwizzleMode swizzle_none = SwizzleMode::none, swizzle_32B = SwizzleMode::b32,
                             swizzle_64B = SwizzleMode::b64, swizzle_128B = SwizzleMode::b128;

// ---- where a thread stands ----

extern const Expr thread_id, lane_id, warp_id, warpgroup_id;
struct Dim3 {
  Expr x, y, z;
};
extern const Dim3 cta_id, grid_dim;
extern const Expr cluster_rank;  // of this CTA in its cluster

// ---- tiles ----

// A rectangular part of a buffer, the operand of tile operations.
class Tile {
 public:
  explicit Tile(ir::Tile tile) : tile_(std::move(tile)) {}

  // Fixes the first dimension and drops it: a stage, a head.
  Tile operator[](const Expr& index) const;
  // The part at `offset`, of `extents`; without extents, as large as the operation's other operand.
  Tile tile(std::initializer_list<Expr> offset, std::initializer_list<int64_t> extents = {},
            Where where = Where::current()) const;
  Tile tile(const Expr& row, const Expr& column, Where where = Where::current()) const {
    return tile({row, column}, {}, where);
  }
  // The element at `index` as each thread finds it when the statement that uses it runs; and a store to it.
  Expr load(std::initializer_list<Expr> index, Where where = Where::current()) const;
  void store(std::initializer_list<Expr> index, const Expr& value, Where where = Where::current()) const;

  const ir::Tile& ir() const { return tile_; }
  DType dtype() const { return tile_.buffer->dtype; }

 private:
  ir::Tile tile_;
};

// An element-wise expression over tiles: arithmetic on tiles and scalars, cast, exp2, min, max, select.
// Evaluated where it is assigned, one element at a time, by the threads that hold the element.
class TileExpr {
 public:
  TileExpr(const Tile& tile);    // NOLINT: a tile stands for its elements
  TileExpr(const Expr& scalar);  // NOLINT
  TileExpr(double scalar);       // NOLINT
  TileExpr(Expr value, std::vector<ir::Tile> tiles) : value_(std::move(value)), tiles_(std::move(tiles)) {}
  const Expr& value() const { return value_; }
  const std::vector<ir::Tile>& tiles() const { return tiles_; }

 private:
  Expr value_;  // over element(i), i counting tiles_ from 1
  std::vector<ir::Tile> tiles_;
};
TileExpr operator+(const TileExpr& a, const TileExpr& b);
TileExpr operator-(const TileExpr& a, const TileExpr& b);
TileExpr operator*(const TileExpr& a, const TileExpr& b);
TileExpr operator/(const TileExpr& a, const TileExpr& b);
TileExpr min(const TileExpr& a, const TileExpr& b);
TileExpr max(const TileExpr& a, const TileExpr& b);
TileExpr exp2(const TileExpr& a);
TileExpr cast(DType type, const TileExpr& a);
// The element's coordinate along a dimension of the destination, for masks.
TileExpr coordinate(int dimension);
TileExpr operator<(const TileExpr& a, const TileExpr& b);
TileExpr select(const TileExpr& condition, const TileExpr& yes, const TileExpr& no);

// ---- run-time values ----

// A variable of the kernel, a register of each thread; assigning records an assignment.
class Var {
 public:
  explicit Var(std::string_view name, const Expr& initial, Where where = Where::current());
  // A variable that will never hold less than `least`, which the compiler may use.
  Var(std::string_view name, const Expr& initial, int64_t least, Where where = Where::current());
  Var(const Var&) = delete;
  Var& operator=(const Var& other) { return *this = Expr(other); }
  Var& operator=(const Expr& value);
  Var& assign(const Expr& value, Where where = Where::current());
  Var& operator+=(const Expr& value) { return *this = Expr(*this) + value; }
  Var& operator^=(const Expr& value) { return *this = Expr(*this) ^ value; }
  operator Expr() const { return Expr(variable_); }  // NOLINT

 private:
  ir::VarRef variable_;
};

void if_(const Expr& condition, const std::function<void()>& then, Where where = Where::current());
void if_(const Expr& condition, const std::function<void()>& then, const std::function<void()>& otherwise,
         Where where = Where::current());
void for_range(const Expr& end, const std::function<void(Expr)>& body, Where where = Where::current());
void for_range(const Expr& begin, const Expr& end, int64_t step, const std::function<void(Expr)>& body,
               Where where = Where::current());
void while_(const Expr& condition, const std::function<void()>& body, Where where = Where::current());
// One lane of each active warp runs the body.
void elected(const std::function<void()>& body, Where where = Where::current());

// ---- tile operations, carried out by the threads of a scope ----

struct WarpRange {
  int first = 0, count = 0;
};

struct CopyOptions {
  std::string_view dispatch = {};  // a rule by name; empty: the cheapest that matches
};
// A barrier's stage that learns of an asynchronous copy's bytes: loaded[stage].
struct Signal {
  ir::BufferRef barrier;
  Expr stage;
};
struct CopyAsyncOptions {
  Signal signal = {};  // of a copy to shared memory
  uint32_t multicast =
      0;  // a bit for each CTA of the cluster that receives it at the same place; 0: this one
  std::string_view dispatch = {};
};
struct GemmOptions {
  Expr accumulate = true;          // false: the accumulator is overwritten
  std::string_view dispatch = {};  // "tcgen05" or "wgmma"
};

class ScopeOps {
 public:
  explicit constexpr ScopeOps(ir::Scope scope) : scope_(scope) {}

  // dst = src, same element type and shape. Complete for the issuing threads when it returns; other threads
  // see it after a sync.
  void copy(const Tile& dst, const Tile& src, const CopyOptions& options = {},
            Where where = Where::current()) const;
  // dst = src by the copy engine, between global and shared memory; issued by one thread. A copy to shared
  // memory completes on the barrier it signals, a copy to global memory with its bulk group. The tile in
  // global memory begins at whole 16 bytes of a row, and that must be known: columns are written as i * 64,
  // not as a Var. What lies outside the tensor reads as zero and is not written; rows are made of whole 16
  // bytes.
  void copy_async(const Tile& dst, const Tile& src, const CopyAsyncOptions& options = {},
                  Where where = Where::current()) const;
  void fill(const Tile& dst, double value, Where where = Where::current()) const;
  // dst = expression, element by element; dst in registers.
  void compute(const Tile& dst, const TileExpr& expression, Where where = Where::current()) const;
  void cast(const Tile& dst, const Tile& src, Where where = Where::current()) const;
  // acc (M x N) = A (M x K) * B (N x K)^T, plus acc if accumulate. Asynchronous: see MmaBarrier::commit on
  // Blackwell, wgmma_commit_group and wgmma_wait_group on Hopper. cta_pair.gemm_async: one thread of one CTA
  // issues it for both; each CTA's shared memory holds half the rows of A and half the rows of B, each CTA's
  // tensor memory the accumulator of its rows of A: acc is M/2 x N, A M/2 x K, B N/2 x K.
  void gemm_async(const Tile& acc, const Tile& a, const Tile& b, const GemmOptions& options = {},
                  Where where = Where::current()) const;
  void sync(Where where = Where::current()) const;

  // The i-th warp or warpgroup of the CTA, or `count` of them: the threads of a role.
  WarpRange operator()(int index, int count = 1) const;

  ir::Scope ir() const { return scope_; }

 private:
  ir::Scope scope_;
};

inline constexpr ScopeOps thread{ir::Scope::thread}, warp{ir::Scope::warp}, warpgroup{ir::Scope::warpgroup},
    cta{ir::Scope::cta}, cta_pair{ir::Scope::cta_pair}, cluster{ir::Scope::cluster};

// ---- building a kernel ----

struct LaunchSpec {
  std::vector<Expr> grid = {1};  // CTAs along x, y, z
  int threads = 128;             // of a CTA
  std::vector<int> cluster = {1};
};

class KernelBuilder {
 public:
  KernelBuilder(std::string_view name, Arch arch, Where where = Where::current());
  ~KernelBuilder();
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  void launch(const LaunchSpec& spec, Where where = Where::current());

  // Parameters: a run-time size, a number, a dense row-major tensor. A launch is given the tensors and then
  // the numbers, both in the order of declaration; sizes come from the tensors' shapes.
  Expr size(std::string_view name, Where where = Where::current());
  Expr scalar(DType type, std::string_view name, Where where = Where::current());
  Tile global(DType type, std::vector<Expr> shape, std::string_view name, Where where = Where::current());

  // Shared memory: the operand of a tensor core in `mode`, or any layout.
  Tile shared(DType type, std::vector<int64_t> shape, SwizzleMode mode, std::string_view name,
              Where where = Where::current());
  Tile shared(DType type, std::vector<int64_t> shape, Layout layout, std::string_view name,
              Where where = Where::current());
  // An accumulator of tcgen05.mma, M x N in 32-bit columns. Allocated before the body, freed after it. Of a
  // cta_pair: the rows of this CTA, at the same columns as its peer's, for cta_pair.gemm_async.
  Tile tensor_memory(DType type, std::vector<int64_t> shape, std::string_view name,
                     const ScopeOps& owner = cta, Where where = Where::current());
  // A tile spread over the registers of a scope's threads by its layout.
  Tile registers(DType type, std::vector<int64_t> shape, TileLayout layout, std::string_view name,
                 Where where = Where::current());
  // A register tile laid out as an accumulator of wgmma: M x N over a warpgroup, M a multiple of 64.
  Tile wgmma_accumulator(DType type, int64_t m, int64_t n, std::string_view name,
                         Where where = Where::current());

  // What the kernel demands; a demand on C++ values is checked at once, one on run-time sizes before each
  // launch.
  void require(const Expr& condition, std::string_view text, Where where = Where::current());

  void role(std::string_view name, WarpRange warps, const std::function<void()>& body,
            Where where = Where::current());
  // A role of whole warpgroups that runs with `registers` a thread (setmaxnreg); all roles together share the
  // SM's.
  void role(std::string_view name, WarpRange warps, int registers, const std::function<void()>& body,
            Where where = Where::current());

  // Checks the kernel and hands it over; the builder records nothing more.
  Kernel finish();

 private:
  friend class Barrier;
  Tile add(ir::Buffer buffer);

  Kernel kernel_;
  SourceLoc where_;
};

// ---- barriers ----

// Where a role stands in a ring of stages: the stage, and the parity of the phase it waits for there. A
// consumer begins with parity 0, a producer with 1: the stages are free before anyone has freed them.
class Ring {
 public:
  enum Side { consumer = 0, producer = 1 };
  Ring(int stages, Side side, Where where = Where::current());
  void advance(Where where = Where::current());
  int stages() const { return stages_; }

  Var stage, phase;

 private:
  int stages_;
};

// An mbarrier per stage. A phase completes after `arrivals` arrivals; phases count 0, 1, 2, ..., and
// wait(stage, parity) returns once the phase of that parity has completed. Of a cta_pair or a cluster: it
// lies in the even CTA or in CTA 0, where all arrive; only that one can wait. Copies of both CTAs can signal
// a pair's.
class Barrier {
 public:
  Barrier(KernelBuilder& k, int stages, int arrivals, std::string_view name, const ScopeOps& owner = cta,
          Where where = Where::current());
  void wait(const Expr& stage, const Expr& parity, Where where = Where::current()) const;
  void wait(const Ring& ring, Where where = Where::current()) const { wait(ring.stage, ring.phase, where); }
  // Every stage once, from where the ring stands: a producer's last act, when all has been taken from it.
  void wait_all(Ring& ring, Where where = Where::current()) const;
  void arrive(const Expr& stage, Where where = Where::current()) const;
  void arrive(const Ring& ring, Where where = Where::current()) const { arrive(ring.stage, where); }
  // Once for all lanes of a warp, when all have come here: arrive(warp, stage).
  void arrive(const ScopeOps& together, const Expr& stage, Where where = Where::current()) const;
  // On the same barrier of another CTA of the cluster.
  void arrive_remote(const Expr& stage, const Expr& rank, Where where = Where::current()) const;

 protected:
  ir::BufferRef buffer_;
};

// The barrier that copy engines complete: a phase ends when every expected byte has come and `arrive` was
// called.
class TmaBarrier : public Barrier {
 public:
  TmaBarrier(KernelBuilder& k, int stages, std::string_view name, const ScopeOps& owner = cta,
             Where where = Where::current())
      : Barrier(k, stages, 1, name, owner, where) {}
  Signal operator[](const Expr& stage) const { return {buffer_, stage}; }
  Signal operator[](const Ring& ring) const { return {buffer_, ring.stage}; }
  // Arrives, and expects the bytes of the copies bound to the barrier before it in the same block. Of a
  // cta_pair: the even CTA does, for the copies of both.
  void arrive(const Expr& stage, Where where = Where::current()) const;
  void arrive(const Ring& ring, Where where = Where::current()) const { arrive(ring.stage, where); }
};

// The barrier that tcgen05.mma arrives on: commit binds the phase to all MMAs its thread issued before.
struct CommitOptions {
  uint32_t multicast = 0;  // a bit for each CTA of the cluster whose barrier it arrives on; 0: this one
};
class MmaBarrier : public Barrier {
 public:
  // issuers: threads whose commits complete a phase.
  MmaBarrier(KernelBuilder& k, int stages, std::string_view name, int issuers = 1,
             Where where = Where::current())
      : Barrier(k, stages, issuers, name, cta, where) {}
  void commit(const Expr& stage, const CommitOptions& options = {}, Where where = Where::current()) const;
  void commit(const Ring& ring, const CommitOptions& options = {}, Where where = Where::current()) const {
    commit(ring.stage, options, where);
  }
};

}  // namespace tw::dsl

// PTX instructions, named one to one after the ISA.
namespace tw::dsl::ptx {

// "Async proxy": makes earlier generic accesses of shared memory by this thread visible to async ones, and
// back.
void fence_proxy_async(Where where = Where::current());
// "tcgen05.fence": orders tcgen05 operations across the synchronisation before / after it.
void tcgen05_fence_before_thread_sync(Where where = Where::current());
void tcgen05_fence_after_thread_sync(Where where = Where::current());
// "griddepcontrol": in a dependent launch (DependentLaunch), waits until the grids before have completed and
// what they wrote is visible; allows the grids behind to start.
void griddepcontrol_wait(Where where = Where::current());
void griddepcontrol_launch_dependents(Where where = Where::current());
// "wgmma.commit_group", "wgmma.wait_group": at most `pending` groups of this warpgroup stay in flight.
void wgmma_commit_group(Where where = Where::current());
void wgmma_wait_group(int pending, Where where = Where::current());

// "cp.async.bulk.commit_group", "cp.async.bulk.wait_group": of the copies to global memory this thread
// issued, at most `pending` groups have not yet read their shared memory (wait_group_read), or not yet
// completed.
void bulk_commit_group(Where where = Where::current());
void bulk_wait_group_read(int pending, Where where = Where::current());
void bulk_wait_group(int pending, Where where = Where::current());

// "clusterlaunchcontrol.try_cancel": a running cluster takes over the work of one that has not started. CTA 0
// of the cluster asks, every CTA is answered: 16 bytes in `response`, counted by `signal`. All CTAs call it,
// one thread of each.
void clusterlaunchcontrol_try_cancel(const Tile& response, const Signal& signal,
                                     Where where = Where::current());
// "clusterlaunchcontrol.query_cancel" of an answer: whether there was such a cluster, and where along x it
// begins.
struct CancelledCluster {
  Expr found, first_cta;
};
CancelledCluster clusterlaunchcontrol_query_cancel(const Tile& response, Where where = Where::current());

// Any instruction of the table: opcode with modifiers, operands as the ISA orders them, without a
// destination.
void instruction(std::string_view opcode, std::vector<ir::Intrinsic::Operand> operands = {},
                 ir::Scope scope = ir::Scope::thread, Where where = Where::current());

}  // namespace tw::dsl::ptx
