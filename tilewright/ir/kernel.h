#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/source.h"
#include "tilewright/ir/expr.h"
#include "tilewright/layout/layout.h"

// The tile IR: what the DSL records and lowering consumes. Statements are plain structs; a tile operation is
// a statement that keeps its scope, the layouts of its operands and the dispatch its author asked for.
namespace tw::ir {

enum class Space : uint8_t { global, shared, tensor_memory, registers };
const char* name(Space space);

// Which threads carry out an operation together. A CTA pair is two CTAs of a cluster whose ranks differ in
// the last bit (PTX ISA, "CTA-Pair").
enum class Scope : uint8_t { thread, warp, warpgroup, cta, cta_pair, cluster };
const char* name(Scope scope);

// Named storage. Shapes of anything but global memory are constants.
struct Buffer {
  std::string name;
  Space space = Space::global;
  DType dtype = DType::u8;
  std::vector<Expr> shape;
  Layout layout;            // global: dense row-major, layout unused
  bool is_barrier = false;  // mbarriers: u64 in shared memory, one per stage
  int arrivals = 0;         // barriers: arrivals a phase expects
  uint32_t align = 16;      // bytes
  // Whose it is. cta_pair, cluster: a barrier that lies in the even CTA of the pair, in CTA 0 of the cluster,
  // and serves all; cta_pair: tensor memory at the same columns of both, the accumulator of MMAs that they
  // carry out together.
  Scope scope = Scope::cta;
  SourceLoc loc;

  std::vector<int64_t> extents() const;  // constant shapes only
  int64_t elements() const;
};
using BufferRef = std::shared_ptr<const Buffer>;

// A rectangular part of a buffer. A dimension that is not kept has extent 1 and vanishes from the tile's
// shape; extent 0 means "as many as the other operand has", and is resolved by the operation's verifier.
struct TileDim {
  Expr offset;
  int64_t extent = 0;
  bool kept = true;
};
struct Tile {
  BufferRef buffer;
  std::vector<TileDim> dims;

  std::vector<int64_t> shape() const;  // extents of kept dimensions
  bool whole() const;                  // the whole buffer
};

struct Stmt;
using Block = std::vector<Stmt>;

struct Declare {  // a variable with its first value
  VarRef variable;
  Expr value;
};
struct Assign {
  VarRef variable;
  Expr value;
};
struct Store {   // one element, by each active thread
  Tile element;  // no dimension kept
  Expr value;
};
struct If {
  Expr condition;
  std::shared_ptr<Block> then, otherwise;  // otherwise may be null
};
struct For {  // variable = begin; variable < end; variable += step
  VarRef variable;
  Expr begin, end;
  int64_t step = 1;
  std::shared_ptr<Block> body;
};
struct While {
  Expr condition;
  std::shared_ptr<Block> body;
};
// A part of the CTA with a task of its own: warps [first_warp, first_warp + warps).
struct Role {
  std::string name;
  int first_warp = 0, warps = 0;
  int registers = 0;  // per thread, of whole warpgroups; 0: as launched
  std::shared_ptr<Block> body;
};
struct Elected {  // one lane of each active warp
  std::shared_ptr<Block> body;
};
struct Sync {  // all threads of the scope meet
  Scope scope = Scope::cta;
};

enum class TileOpKind : uint8_t {
  copy,        // operands: destination, source
  copy_async,  // the same by a copy engine; `barrier` learns of the bytes that arrive in shared memory
  fill,        // operands: destination; value: the constant
  compute,     // operands: destination, sources...; value: an expression over element(i) of operand i and
               // coordinate(d)
  gemm_async,  // operands: accumulator (M x N), A (M x K), B (N x K); value: accumulate (b1)
};
const char* name(TileOpKind kind);
struct TileOp {
  TileOpKind kind = TileOpKind::copy;
  Scope scope = Scope::thread;
  std::vector<Tile> operands;
  Expr value;
  std::string dispatch;  // a requested rule, or empty
  BufferRef barrier;     // copy_async to shared memory: completes there, at `stage`
  Expr stage;
  uint32_t multicast = 0;  // copy_async: the CTAs of the cluster that receive it; 0: this one
};

// Operations on an mbarrier of `barrier`, at `stage`.
struct BarrierOp {
  enum class Kind : uint8_t {
    wait,    // until the phase of parity `operand` has completed
    arrive,  // operand: how often
    expect,  // arrives once and expects `operand` bytes; undefined: those of the copies bound to it before,
             // in this block
    commit,  // arrives when the tcgen05 operations this thread issued before have completed
  } kind = Kind::wait;
  BufferRef barrier;
  Expr stage;
  Expr operand;
  Expr rank;                    // arrive: the CTA of the cluster whose barrier it is; undefined: this one
  Scope scope = Scope::thread;  // arrive: who arrives together, once: a thread or a warp
  uint32_t multicast = 0;       // commit: the CTAs of the cluster that it arrives in; 0: this one
};

// One PTX instruction. Operands are scalar expressions, addresses of tiles, or a result variable (first).
struct Intrinsic {
  using Operand = std::variant<Expr, Tile>;
  std::string opcode;  // with modifiers: "tcgen05.fence::after_thread_sync"
  VarRef result;       // may be null
  std::vector<Operand> operands;
  Scope scope = Scope::thread;
};

// "clusterlaunchcontrol.try_cancel": CTA 0 of the cluster asks for a cluster that has not started yet. Every
// CTA receives the answer, 16 bytes in `response`, and its barrier learns of them.
struct TryCancel {
  Tile response;
  BufferRef barrier;
  Expr stage;
};
// "clusterlaunchcontrol.query_cancel": whether the cluster asked for is ours now, and the x coordinate of its
// first CTA, which keeps its value when it is not.
struct QueryCancel {
  VarRef cancelled, first_cta;
  Tile response;
};

struct Stmt {
  std::variant<Declare, Assign, Store, If, For, While, Role, Elected, Sync, TileOp, BarrierOp, TryCancel,
               QueryCancel, Intrinsic>
      node;
  SourceLoc loc;
};

enum class Arch : uint8_t { sm_90a, sm_100a, sm_103a };
const char* name(Arch arch);
Arch arch_from_name(std::string_view text);  // user error that lists the names
inline bool is_blackwell(Arch a) { return a != Arch::sm_90a; }

// What the kernel demands of its run-time sizes; checked before every launch.
struct Requirement {
  Expr condition;
  std::string text;
  SourceLoc loc;
};

struct Kernel {
  std::string name;
  Arch arch = Arch::sm_100a;
  SourceLoc loc;
  std::array<Expr, 3> grid{1, 1, 1};  // CTAs
  std::array<int, 3> cluster{1, 1, 1};
  int threads = 128;

  std::vector<VarRef> sizes;       // run-time sizes, in the order of declaration
  std::vector<VarRef> scalars;     // arguments by value
  std::vector<BufferRef> globals;  // tensor parameters, in the order of declaration
  std::vector<BufferRef> buffers;  // everything in shared memory, tensor memory and registers
  std::vector<Requirement> requirements;
  Block body;

  int warps() const { return (threads + 31) / 32; }
  int ctas() const { return cluster[0] * cluster[1] * cluster[2]; }  // of a cluster
};

std::string to_string(const Tile& tile);

// The kernel as text: what `tw show --ir` prints. `locations` adds each statement's source line.
std::string print(const Kernel& kernel, bool locations = false);

// Checks what must hold of any kernel, and resolves tile extents left open. Returns the checked kernel; user
// errors carry the line of the statement and of what it clashes with.
Kernel verify(Kernel kernel);

}  // namespace tw::ir
