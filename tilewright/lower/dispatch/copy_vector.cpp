#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/lower/address.h"
#include "tilewright/lower/dispatch/dispatch.h"
#include "tilewright/lower/statements.h"

// Threads of a scope copy a tile between global and shared memory: vector j * threads + t of the tile, in
// row-major order, belongs to thread t, so that neighbouring threads read neighbouring addresses.
namespace tw::lowering {
namespace {

using ir::Expr;

struct Shape {
  std::vector<int64_t> extents;
  int64_t vectors = 0;   // in the tile
  int64_t elements = 0;  // of a vector
};

std::vector<Expr> coordinate_of(const Shape& s, const Expr& vector) {
  std::vector<Expr> at(s.extents.size());
  Expr rest = vector;
  for (size_t d = s.extents.size(); d-- > 0;) {
    int64_t n = d + 1 == s.extents.size() ? s.extents[d] / s.elements : s.extents[d];
    Expr digit = d == 0 ? rest : rest % Expr(n);
    at[d] = d + 1 == s.extents.size() ? digit * Expr(s.elements) : digit;
    rest = rest / Expr(n);
  }
  return at;
}

struct Move {
  Expr from, to, inside;
};

// Loads in flight before the first store hide the latency; 8 vectors of 16 bytes take 32 registers.
constexpr int64_t kBatch = 8;

void emit_batch(Context& c, const ir::Tile& dst, std::span<const Move> moves, int64_t bytes) {
  Emitter& e = c.emit;
  bool store = dst.buffer->space == ir::Space::global;
  std::string type = bytes >= 4 ? "b32" : format("b{}", bytes * 8);
  std::string vector = bytes > 4 ? format(".v{}", bytes / 4) : "";
  std::string load_op = format("ld.{}{}.{}", store ? "shared" : "global", vector, type);
  std::string store_op = format("st.{}{}.{}", store ? "global" : "shared", vector, type);
  size_t words = static_cast<size_t>(std::max<int64_t>(1, bytes / 4));
  ptx::Type reg_type = bytes >= 4 ? ptx::Type::b32 : ptx::Type::b16;

  std::vector<ptx::Operand> values;
  for (const Move& m : moves) {
    std::vector<ptx::Operand> regs;
    for (size_t w = 0; w < words; ++w) regs.push_back(ptx::reg(e.fresh(reg_type)));
    ptx::Operand value = words == 1 ? regs[0] : ptx::vector(regs);
    values.push_back(value);
    ptx::Operand from = e.address(m.from);
    if (m.inside.is(1)) {
      e.emit(load_op, {value, from});
      continue;
    }
    // What lies outside the tensor is zero in shared memory, and stays untouched in global memory.
    ptx::Operand p = e.value(m.inside);
    if (!store)
      for (const auto& r : regs) e.emit(bytes >= 4 ? "mov.b32" : "mov.b16", {r, ptx::integer(0)});
    e.emit_if(p, load_op, {value, from});
  }
  for (size_t i = 0; i < moves.size(); ++i) {
    ptx::Operand to = e.address(moves[i].to);
    if (store && !moves[i].inside.is(1)) e.emit_if(e.value(moves[i].inside), store_op, {to, values[i]});
    else e.emit(store_op, {to, values[i]});
  }
}

// The vectors of one thread: `turns` times a batch, in a loop when there are several.
struct Batches {
  ir::VarRef turn;  // counts them, where there are several
  int64_t turns = 1;
  std::vector<Move> moves;
};

void emit_batches(Context& c, const ir::Tile& dst, const Batches& b, int64_t bytes) {
  if (b.turns == 1) return emit_batch(c, dst, b.moves, bytes);
  ir::For loop{b.turn, Expr(0), Expr(b.turns), 1, nullptr};
  counted_loop(c.emit, loop, {}, [&] { emit_batch(c, dst, b.moves, bytes); });
}

}  // namespace

Answer copy_vector(Context& c, const Site& site) {
  const ir::Tile &dst = site.op.operands[0], &src = site.op.operands[1];
  auto spaces = std::pair(src.buffer->space, dst.buffer->space);
  if (spaces != std::pair(ir::Space::global, ir::Space::shared) &&
      spaces != std::pair(ir::Space::shared, ir::Space::global))
    return std::string("moves between global and shared memory");
  const ir::Tile& global = src.buffer->space == ir::Space::global ? src : dst;
  const ir::Tile& shared = &global == &src ? dst : src;
  if (bits(dst.buffer->dtype) % 8 != 0) return format("elements of {} bits", bits(dst.buffer->dtype));
  int64_t bytes = bits(dst.buffer->dtype) / 8;
  int64_t threads = c.threads_of(site.op.scope);
  Expr t = c.index_in(site.op.scope);
  Shape s{dst.shape(), 0, 0};
  int64_t total = 1;
  for (int64_t x : s.extents) total *= x;

  for (s.elements = std::max<int64_t>(1, 16 / bytes); s.elements >= 1; s.elements /= 2) {
    if (s.extents.back() % s.elements != 0 || shared.buffer->layout.aligned_run() % s.elements != 0) continue;
    s.vectors = total / s.elements;
    if (s.vectors % threads != 0) continue;
    const int64_t each = s.vectors / threads;
    Batches batches;
    if (each > kBatch && each % kBatch == 0) {
      batches.turns = each / kBatch;
      auto turn = std::make_shared<ir::Variable>();
      turn->name = "batch";
      turn->lo = 0;
      turn->hi = batches.turns - 1;
      batches.turn = turn;
    }
    bool aligned = true;
    for (int64_t j = 0; aligned && j < each / batches.turns; ++j) {
      Expr vector = t + Expr(j * threads);
      if (batches.turns > 1) vector = vector + Expr(batches.turn) * Expr(kBatch * threads);
      std::vector<Expr> at = coordinate_of(s, vector);
      Move m{element_address(c, src, at), element_address(c, dst, at), in_bounds(c, global, at)};
      aligned = ir::alignment(m.from) % (s.elements * bytes) == 0 &&
                ir::alignment(m.to) % (s.elements * bytes) == 0;
      if (!m.inside.is(1))
        aligned = aligned && ir::alignment(c.resolve(global.buffer->shape.back())) % s.elements == 0;
      batches.moves.push_back(std::move(m));
    }
    if (!aligned) continue;
    int64_t width = s.elements * bytes;
    if (width < 4)
      c.notes.push_back(format("{}: note: copied {} bytes at a time", to_string(site.loc), width));
    return Plan{static_cast<int>(100 * 16 / width),
                [&c, dst, batches, width] { emit_batches(c, dst, batches, width); }};
  }
  return format("{} elements do not divide among {} threads", total, threads);
}

}  // namespace tw::lowering
