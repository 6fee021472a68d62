#include "tilewright/base/error.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/dsl/recorder.h"

namespace tw::dsl {
namespace {

std::vector<Expr> exprs(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }

// The whole of a buffer.
Tile whole(const ir::BufferRef& b) {
  ir::Tile t{b, {}};
  for (const Expr& e : b->shape) t.dims.push_back({0, e.constant().value_or(0), true});
  return Tile(std::move(t));
}

ir::Scope barrier_owner(const ScopeOps& owner, std::string_view name, const Where& where) {
  ir::Scope s = owner.ir();
  if (s != ir::Scope::cta && s != ir::Scope::cta_pair && s != ir::Scope::cluster)
    user_error(where, "barrier '{}' belongs to a cta, a cta_pair or a cluster, not to a {}", name,
               ir::name(s));
  return s;
}
ir::Scope tensor_memory_owner(const ScopeOps& owner, std::string_view name, const Where& where) {
  ir::Scope s = owner.ir();
  if (s != ir::Scope::cta && s != ir::Scope::cta_pair)
    user_error(where, "'{}': tensor memory belongs to a cta or a cta_pair, not to a {}", name, ir::name(s));
  return s;
}

}  // namespace

KernelBuilder::KernelBuilder(std::string_view name, Arch arch, Where where) : where_(where) {
  kernel_.name = name;
  kernel_.arch = arch;
  kernel_.loc = where;
  Recorder::open(kernel_, where);
}

KernelBuilder::~KernelBuilder() { Recorder::close(); }

void KernelBuilder::launch(const LaunchSpec& spec, Where where) {
  if (spec.grid.empty() || spec.grid.size() > 3 || spec.cluster.empty() || spec.cluster.size() > 3)
    user_error(where, "a grid and a cluster have 1 to 3 extents");
  for (size_t i = 0; i < spec.grid.size(); ++i) kernel_.grid[i] = spec.grid[i];
  for (size_t i = 0; i < spec.cluster.size(); ++i) kernel_.cluster[i] = spec.cluster[i];
  kernel_.threads = spec.threads;
}

Expr KernelBuilder::size(std::string_view name, Where where) {
  auto v = std::make_shared<ir::Variable>();
  v->name = name;
  v->lo = 0;
  v->hi = INT32_MAX;
  v->loc = where;
  kernel_.sizes.push_back(v);
  return Expr(ir::VarRef(v));
}

Expr KernelBuilder::scalar(DType type, std::string_view name, Where where) {
  auto v = std::make_shared<ir::Variable>();
  v->name = name;
  v->type = type;
  v->loc = where;
  kernel_.scalars.push_back(v);
  return Expr(ir::VarRef(v));
}

Tile KernelBuilder::add(ir::Buffer buffer) {
  for (const auto* list : {&kernel_.globals, &kernel_.buffers}) {
    for (const ir::BufferRef& b : *list) {
      if (b->name == buffer.name)
        throw Error(ErrorKind::user, buffer.loc, format("'{}' is the name of another buffer", buffer.name),
                    {{b->loc, "which is declared here"}});
    }
  }
  auto ref = std::make_shared<const ir::Buffer>(std::move(buffer));
  (ref->space == ir::Space::global ? kernel_.globals : kernel_.buffers).push_back(ref);
  return whole(ref);
}

Tile KernelBuilder::global(DType type, std::vector<Expr> shape, std::string_view name, Where where) {
  ir::Buffer b;
  b.name = name;
  b.space = ir::Space::global;
  b.dtype = type;
  b.shape = std::move(shape);
  b.loc = where;
  return add(std::move(b));
}

Tile KernelBuilder::shared(DType type, std::vector<int64_t> shape, Layout layout, std::string_view name,
                           Where where) {
  ir::Buffer b;
  b.name = name;
  b.space = ir::Space::shared;
  b.dtype = type;
  b.shape = exprs(shape);
  b.layout = std::move(layout);
  b.loc = where;
  // A swizzle pattern is anchored to absolute addresses: the buffer starts where the pattern does.
  b.align = b.layout.swizzle() ? static_cast<uint32_t>(b.layout.swizzle()->period() * bits(type) / 8) : 16;
  if (b.layout.size() != b.elements())
    user_error(where, "the layout of '{}' has {} elements, its shape {}", name, b.layout.size(),
               b.elements());
  return add(std::move(b));
}

Tile KernelBuilder::shared(DType type, std::vector<int64_t> shape, SwizzleMode mode, std::string_view name,
                           Where where) {
  try {
    return shared(type, shape, mma_shared_layout(type, mode, shape), name, where);
  } catch (const Error& e) {
    if (e.loc()) throw;
    user_error(where, "shared buffer '{}': {}", name, e.message());
  }
}

Tile KernelBuilder::tensor_memory(DType type, std::vector<int64_t> shape, std::string_view name,
                                  const ScopeOps& owner, Where where) {
  if (!ir::is_blackwell(kernel_.arch))
    user_error(where, "'{}': {} has no tensor memory", name, ir::name(kernel_.arch));
  if (shape.size() != 2 || (shape[0] != 128 && shape[0] != 64))
    user_error(
        where,
        "'{}': tensor memory holds 128 or 64 rows (lanes) of columns; give the shape as {{rows, columns}}",
        name);
  if (bits(type) != 32)
    user_error(where, "'{}': an accumulator has 32-bit elements, not {}", name, tw::name(type));
  ir::Buffer b;
  b.name = name;
  b.space = ir::Space::tensor_memory;
  b.dtype = type;
  b.shape = exprs(shape);
  b.layout = tmem_datapath_layout(shape[0] == 128 ? DataPath::D : DataPath::F, shape[1]);
  b.scope = tensor_memory_owner(owner, name, where);
  b.loc = where;
  return add(std::move(b));
}

Tile KernelBuilder::registers(DType type, std::vector<int64_t> shape, TileLayout layout,
                              std::string_view name, Where where) {
  ir::Buffer b;
  b.name = name;
  b.space = ir::Space::registers;
  b.dtype = type;
  b.shape = exprs(shape);
  b.layout = std::move(layout);
  b.loc = where;
  if (b.layout.size() != b.elements())
    user_error(where, "the layout of '{}' has {} elements, its shape {}", name, b.layout.size(),
               b.elements());
  return add(std::move(b));
}

Tile KernelBuilder::wgmma_accumulator(DType type, int64_t m, int64_t n, std::string_view name, Where where) {
  if (m <= 0 || m % 64 != 0)
    user_error(where, "'{}': wgmma makes 64 rows at a time, {} is no multiple", name, m);
  std::vector<int64_t> fragment{64, n}, tiles{m / 64, 1};
  return registers(type, {m, n},
                   wgmma_accumulator_fragment(n).tile(TileLayout::row_major(tiles), tiles, fragment), name,
                   where);
}

void KernelBuilder::require(const Expr& condition, std::string_view text, Where where) {
  auto c = condition.constant();
  if (!c) {
    kernel_.requirements.push_back({condition, std::string(text), where});
  } else if (!*c) {
    user_error(where, "{}: {}", kernel_.name, text);
  }
}

void KernelBuilder::role(std::string_view name, WarpRange warps, const std::function<void()>& body,
                         Where where) {
  role(name, warps, 0, body, where);
}
void KernelBuilder::role(std::string_view name, WarpRange warps, int registers,
                         const std::function<void()>& body, Where where) {
  Recorder& r = Recorder::current(where);
  r.add(ir::Role{std::string(name), warps.first, warps.count, registers, r.block(body)}, where);
}

Kernel KernelBuilder::finish() {
  Recorder::close();
  return ir::verify(std::move(kernel_));
}

Barrier::Barrier(KernelBuilder& k, int stages, int arrivals, std::string_view name, const ScopeOps& owner,
                 Where where) {
  if (stages < 1) user_error(where, "barrier '{}' needs at least one stage, got {}", name, stages);
  if (arrivals < 1 || arrivals > (1 << 20) - 1)
    user_error(where, "barrier '{}': a phase expects 1 to 2^20 - 1 arrivals, got {}", name, arrivals);
  ir::Buffer b;
  b.name = name;
  b.space = ir::Space::shared;
  b.dtype = DType::u64;
  b.shape = {stages};
  b.layout = TileLayout::row_major({stages});
  b.is_barrier = true;
  b.arrivals = arrivals;
  b.scope = barrier_owner(owner, name, where);
  b.align = 8;
  b.loc = where;
  buffer_ = k.add(std::move(b)).ir().buffer;
}

}  // namespace tw::dsl
