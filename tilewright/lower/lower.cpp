#include "tilewright/lower/lower.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "tilewright/base/error.h"
#include "tilewright/ir/index_ranges.h"
#include "tilewright/lower/context.h"
#include "tilewright/lower/statements.h"

namespace tw {
namespace lowering {
namespace {

using ir::Expr;

std::string entry_name(const std::string& kernel) {
  std::string s = kernel;
  std::replace_if(
      s.begin(), s.end(), [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }, '_');
  return s;
}

ir::VarRef make_variable(std::string name, DType type, std::optional<int64_t> lo, std::optional<int64_t> hi,
                         bool uniform) {
  auto v = std::make_shared<ir::Variable>();
  v->name = std::move(name);
  v->type = type;
  v->lo = lo;
  v->hi = hi;
  v->uniform = uniform;
  return v;
}

// The value of an expression over run-time sizes.
int64_t evaluate(const Expr& e, const std::function<int64_t(const std::string&)>& size) {
  Expr x = e;
  ir::visit(e, [&](const Expr& part) {
    if (part->op == ir::Op::variable) x = ir::substitute(x, part->variable, Expr(size(part->variable->name)));
  });
  auto c = x.constant();
  if (!c) internal_error({}, "{} has no value at launch", to_string(e));
  return *c;
}

bool trades_registers(const ir::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const ir::Stmt& s) {
    const auto* role = std::get_if<ir::Role>(&s.node);
    return role && (role->registers != 0 || trades_registers(*role->body));
  });
}

Extent extent(const Expr& e) {
  return [e](const auto& size) { return evaluate(e, size); };
}

// Index arithmetic that would leave 32 bits is refused: now, or when the launch tells the sizes.
void check_index_ranges(const ir::Kernel& kernel, Compiled& out) {
  const auto ranges = std::make_shared<const ir::IndexRanges>(kernel);
  for (size_t i = 0; i < ranges->values().size(); ++i) {
    const ir::IndexValue& index = ranges->values()[i];
    const ir::Range always = ranges->of(index, nullptr);
    if (always.within(INT32_MIN, INT32_MAX)) continue;
    if (kernel.sizes.empty()) {
      if (ir::leaves_32_bits(always))
        user_error(index.loc,
                   "the index '{}' lies between {} and {}, which 32 bits cannot hold; cast(i64, ...) one "
                   "of its terms",
                   to_string(index.value), *always.lo, *always.hi);
      continue;
    }
    const ir::Range least = ranges->of(index, [](const std::string&) { return 1; });
    if (!least.lo || !least.hi) continue;  // no launch can tell
    out.requirements.push_back(
        {[ranges, i](const auto& size) { return !ranges->overflows(i, size); },
         format("the index '{}' fits 32 bits; cast(i64, ...) one of its terms where it does not",
                to_string(index.value)),
         index.loc});
  }
}

// The registers that roles ask for (setmaxnreg) come from those that the CTA starts with. Warpgroups of one
// role only: what several one after the other need at a time is not known here.
void check_register_plan(const ir::Kernel& kernel) {
  std::map<int, int> of_warpgroup;  // roles that ask
  int64_t wanted = 0;
  std::vector<Note> roles;
  for (const ir::Stmt& s : kernel.body) {
    const auto* role = std::get_if<ir::Role>(&s.node);
    if (!role || role->registers == 0) continue;
    for (int g = role->first_warp / 4; g < (role->first_warp + role->warps) / 4; ++g)
      if (of_warpgroup[g]++ > 0) return;
    wanted += int64_t{role->registers} * role->warps / 4;
    roles.push_back({s.loc, format("role '{}' takes {} in {} warpgroup{}", role->name, role->registers,
                                   role->warps / 4, role->warps == 4 ? "" : "s")});
  }
  const int start = launch_registers(kernel);
  const int64_t others = (kernel.warps() + 3) / 4 - static_cast<int64_t>(of_warpgroup.size()),
                pool = int64_t{start} * kernel.warps() / 4;
  if (roles.empty() || wanted + others * start <= pool) return;
  throw Error(
      ErrorKind::user, kernel.loc,
      format("'{}' starts with {} registers a thread, {} over its warpgroups; its roles take {}: an increase "
             "would never be granted",
             kernel.name, start, pool, wanted + others * start),
      std::move(roles));
}

// What the body finds ready: parameters, ids, initialised barriers, allocated tensor memory. And what it
// leaves tidy.
class Frame {
 public:
  Frame(const ir::Kernel& k, ptx::Function& f, ptx::DebugMap& names, const MemoryPlan& plan, Compiled& out)
      : kernel_(k),
        function_(f),
        plan_(plan),
        emit_(f),
        context_{k, emit_, plan, out.notes, names.roles, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}},
        out_(out) {}

  void write() {
    emit_.at(kernel_.loc);
    context_.tensor_map = [this](const TmaPlan& p, const ir::Buffer& b) { return tensor_map(p, b); };
    parameters();
    ids();
    register_tiles();
    set_up();
    lower_block(context_, kernel_.body, ir::ActiveSet::all(kernel_.threads, kernel_.ctas()));
    tear_down();
    emit_.emit("ret", {});
    emit_.finish();
  }

 private:
  ptx::RegId param(const std::string& name, ptx::Type type) {
    ptx::Variable p;
    p.space = ptx::Space::param;
    p.type = type;
    p.name = format("{}_{}", function_.name, name);
    function_.params.push_back(p);
    ptx::RegId r = emit_.fresh(bytes(type) == 8 ? ptx::Type::b64 : ptx::Type::b32);
    emit_.emit(format("ld.param.b{}", bytes(type) * 8), {ptx::reg(r), ptx::address(ptx::symbol(p.name))});
    return r;
  }

  static Size size_of(const Expr& e, const ir::Buffer& b) {
    if (auto c = e.constant()) return {*c, {}};
    if (e->op == ir::Op::variable) return {0, e->variable->name};
    user_error(b.loc, "an extent of '{}' is {}; it must be a number or a size of the kernel", b.name,
               to_string(e));
  }

  void parameters() {
    for (const ir::BufferRef& b : kernel_.globals) {
      Param p;
      p.kind = Param::Kind::tensor;
      p.name = b->name;
      p.dtype = b->dtype;
      p.align = b->align;
      p.loc = b->loc;
      for (const Expr& e : b->shape) p.shape.push_back(size_of(e, *b));
      out_.params.push_back(p);
      ptx::RegId generic = param(b->name, ptx::Type::u64), global = emit_.fresh(ptx::Type::b64);
      emit_.emit("cvta.to.global.u64", {ptx::reg(global), ptx::reg(generic)});
      auto v = std::make_shared<ir::Variable>();
      v->name = b->name;
      v->type = DType::i64;
      v->multiple_of = b->align;
      context_.global_base[b.get()] = v;
      emit_.bind(v, global);
    }
    for (const auto* list : {&kernel_.sizes, &kernel_.scalars}) {
      for (const ir::VarRef& v : *list) {
        Param p;
        p.kind = list == &kernel_.sizes ? Param::Kind::size : Param::Kind::scalar;
        p.name = v->name;
        p.dtype = v->type;
        p.loc = v->loc;
        out_.params.push_back(p);
        emit_.bind(v, param(v->name, bits(v->type) == 64 ? ptx::Type::b64 : ptx::Type::b32));
      }
    }
  }

  ir::VarRef tensor_map(const TmaPlan& plan, const ir::Buffer& tensor) {
    TensorMap m;
    m.tensor = static_cast<size_t>(std::find_if(out_.params.begin(), out_.params.end(),
                                                [&](const Param& p) { return p.name == tensor.name; }) -
                                   out_.params.begin());
    m.dtype = plan.dtype;
    m.box = plan.box;
    m.swizzle = static_cast<TensorMap::Swizzle>(plan.swizzle);
    m.l2 = plan.l2;
    m.nan_fill = plan.nan_fill;
    std::string key = format("{} {} {} {}", tensor.name, static_cast<int>(m.dtype),
                             static_cast<int>(m.swizzle), m.nan_fill);
    for (const Expr& d : plan.dims) key += " " + to_string(d);
    for (const Expr& s : plan.strides) key += " " + to_string(s);
    for (uint32_t b : plan.box) key += format(" {}", b);
    for (const ir::Requirement& r : plan.requirements) require(r);  // a store may need more than a load
    auto [known, fresh] = maps_.try_emplace(key);
    if (!fresh) return known->second;
    for (const Expr& d : plan.dims) m.dims.push_back(extent(d));
    for (const Expr& s : plan.strides) m.strides.push_back(extent(s));

    Param p;
    p.kind = Param::Kind::tensor_map;
    p.name = format("{}_map{}", tensor.name, out_.maps.size());
    p.map = out_.maps.size();
    p.loc = tensor.loc;
    out_.maps.push_back(std::move(m));
    out_.params.push_back(p);
    ptx::Variable v;
    v.space = ptx::Space::param;
    v.type = ptx::Type::b8;
    v.name = format("{}_{}", function_.name, p.name);
    v.align = 64;
    v.is_array = true;
    v.dims = {128};
    function_.params.push_back(v);
    known->second = make_variable(p.name, DType::i64, 0, std::nullopt, true);
    emit_.at_entry([&] {
      ptx::RegId in_param = emit_.fresh(ptx::Type::b64), generic = emit_.fresh(ptx::Type::b64);
      emit_.emit("mov.b64", {ptx::reg(in_param), ptx::symbol(v.name)});
      emit_.emit("cvta.param.u64", {ptx::reg(generic), ptx::reg(in_param)});
      emit_.bind(known->second, generic);
    });
    return known->second;
  }

  void require(const ir::Requirement& r) {
    for (const auto& known : out_.requirements)
      if (known.text == r.text) return;
    out_.requirements.push_back(
        {[e = r.condition](const auto& size) { return evaluate(e, size) != 0; }, r.text, r.loc});
  }

  ir::VarRef special(const char* reg, const char* name, std::optional<int64_t> hi, bool uniform) {
    ir::VarRef v = make_variable(name, DType::i32, 0, hi, uniform);
    ptx::RegId r = emit_.fresh(ptx::Type::b32);
    emit_.emit("mov.b32", {ptx::reg(r), ptx::special(reg)});
    emit_.bind(v, r);
    return v;
  }

  void ids() {
    context_.thread = special("%tid.x", "thread", kernel_.threads - 1, false);
    context_.warp = make_variable("warp", DType::i32, 0, kernel_.warps() - 1, false);
    ptx::RegId first = emit_.fresh(ptx::Type::b32);
    emit_.emit("shfl.sync.idx.b32", {ptx::reg(first), ptx::reg(emit_.reg(Expr(context_.thread) / 32)),
                                     ptx::integer(0), ptx::integer(31), ptx::integer(-1)});
    emit_.bind(context_.warp, first);
    static constexpr const char* kCta[] = {"%ctaid.x", "%ctaid.y", "%ctaid.z"};
    static constexpr const char* kGrid[] = {"%nctaid.x", "%nctaid.y", "%nctaid.z"};
    for (int i = 0; i < 3; ++i) {
      auto n = kernel_.grid[i].constant();
      if (!n || *n > 1)
        context_.cta[i] = special(kCta[i], kCta[i] + 1, n ? std::optional(*n - 1) : std::nullopt, true);
      if (!n) context_.grid[i] = special(kGrid[i], kGrid[i] + 1, std::nullopt, true);
    }
    int ctas = kernel_.ctas();
    if (ctas > 1) context_.cluster_rank = special("%cluster_ctarank", "cluster_rank", ctas - 1, true);

    // An address of shared memory may hold the CTA's rank in its cluster above the 18 bits of an offset.
    auto base = std::make_shared<ir::Variable>();
    base->name = "shared";
    base->lo = 0;
    if (ctas == 1) base->hi = 1 << 18;
    base->multiple_of = 1024;
    context_.shared_base = context_.matrix_base = base;
    if (plan_.shared_bytes == 0) return;
    ptx::RegId shared = emit_.fresh(ptx::Type::b32);
    emit_.emit("mov.b32", {ptx::reg(shared), ptx::symbol("smem")});
    emit_.bind(base, shared);
    context_.cluster_base = base;
    if (ctas > 1) cluster_bases(shared);
  }

  void cluster_bases(ptx::RegId shared) {
    // "Shared memory descriptor": encode(x) = (x & 0x3FFFF) >> 4.
    auto matrix = std::make_shared<ir::Variable>();
    matrix->name = "matrix_shared";
    matrix->lo = 0;
    matrix->hi = 1 << 18;
    matrix->multiple_of = 1024;
    context_.matrix_base = matrix;
    ptx::RegId offset = emit_.fresh(ptx::Type::b32);
    emit_.emit("and.b32", {ptx::reg(offset), ptx::reg(shared), ptx::integer(0x3ffff)});
    emit_.bind(matrix, offset);
    context_.pair_base = home_base(shared, ir::Scope::cta_pair, Expr(context_.cluster_rank) / 2 * Expr(2));
    context_.cluster_base = home_base(shared, ir::Scope::cluster, 0);
  }

  // Where the barriers of an owner lie that has several CTAs: in the shared memory of the CTA of that rank.
  ir::VarRef home_base(ptx::RegId shared, ir::Scope owner, const Expr& rank) {
    const bool any = std::any_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                                 [&](const ir::BufferRef& b) { return b->is_barrier && b->scope == owner; });
    if (!any) return nullptr;
    ir::VarRef base = make_variable(format("{}_shared", ir::name(owner)), DType::i32, 0, std::nullopt, true);
    ptx::RegId r = emit_.fresh(ptx::Type::b32);
    emit_.emit("mapa.shared::cluster.u32", {ptx::reg(r), ptx::reg(shared), ptx::reg(emit_.reg(rank))});
    emit_.bind(base, r);
    return base;
  }

  void register_tiles() {
    for (const ir::BufferRef& b : kernel_.buffers) {
      if (b->space != ir::Space::registers) continue;
      int width = bits(b->dtype);
      if (width != 16 && width != 32)
        user_error(b->loc, "register tiles hold 16- or 32-bit elements; '{}' holds {}", b->name,
                   name(b->dtype));
      int64_t elements = b->layout.tile_layout().storage().span();
      if (elements * width % 32 != 0)
        user_error(b->loc, "a thread's part of '{}' is {} elements of 16 bits: an odd number", b->name,
                   elements);
      int64_t words = elements * width / 32;
      if (words > 255)
        user_error(b->loc, "'{}' takes {} registers of each thread; there are 255", b->name, words);
      auto& regs = context_.registers[b.get()];
      for (int64_t i = 0; i < words; ++i)
        regs.push_back(emit_.fresh(b->dtype == DType::f32 ? ptx::Type::f32 : ptx::Type::b32));
    }
  }

  // By one warp: each thread of the others would branch around it.
  template <class F>
  void only(const Expr& condition, F&& body) {
    std::string end = emit_.fresh_label("skip");
    ptx::Operand p = emit_.value(condition);
    emit_.emit_if(ptx::negated(p.as<ptx::RegOperand>()->reg), "bra", {ptx::symbol(end)});
    emit_.open(Emitter::RegionKind::branch);
    body();
    emit_.close();
    emit_.label(end);
  }

  void set_up() {
    std::vector<ir::BufferRef> barriers;
    for (const ir::BufferRef& b : kernel_.buffers)
      if (b->is_barrier) barriers.push_back(b);
    Expr thread(context_.thread);
    if (!barriers.empty()) {
      emit_.comment("one thread initialises the barriers");
      only(thread == 0, [&] {
        for (const ir::BufferRef& b : barriers) {
          emit_.at(b->loc);
          for (int64_t s = 0; s < *b->shape[0].constant(); ++s)
            emit_.emit("mbarrier.init.shared::cta.b64",
                       {emit_.address(barrier_address(context_, *b, Expr(s))), ptx::integer(b->arrivals)});
        }
        // "mbarrier.init": visible to the async proxy and, in a cluster, to the peers.
        emit_.emit("fence.mbarrier_init.release.cluster", {});
      });
    }
    if (plan_.tensor_memory_columns != 0) {
      emit_.comment("one warp allocates tensor memory");
      only(thread < 32, [&] {
        emit_.emit(tcgen05("alloc", ".sync.aligned.shared::cta.b32"),
                   {slot(), ptx::integer(plan_.tensor_memory_columns)});
        emit_.emit(tcgen05("relinquish_alloc_permit", ".sync.aligned"), {});
      });
    }
    emit_.at(kernel_.loc);
    if (plan_.tensor_memory_columns != 0) emit_.emit("tcgen05.fence::before_thread_sync", {});
    // In a cluster, peers may use each other's barriers and memory from here on.
    if (kernel_.ctas() > 1 || !barriers.empty() || plan_.tensor_memory_columns != 0) meet();
    if (plan_.tensor_memory_columns == 0) return;
    emit_.emit("tcgen05.fence::after_thread_sync", {});
    context_.tensor_base = make_variable("tensor_memory", DType::i32, 0, std::nullopt, true);
    ptx::RegId r = emit_.fresh(ptx::Type::b32);
    emit_.emit("ld.shared.b32", {ptx::reg(r), slot()});
    emit_.bind(context_.tensor_base, r);
  }

  std::string tcgen05(const char* what, const char* modifiers) const {
    return format("tcgen05.{}.cta_group::{}{}", what, plan_.cta_group, modifiers);
  }

  // All threads of the CTA, or of the cluster where there is one.
  void meet() {
    if (kernel_.ctas() > 1) {
      emit_.emit("barrier.cluster.arrive.aligned", {});
      emit_.emit("barrier.cluster.wait.aligned", {});
    } else {
      emit_.emit("barrier.sync.aligned", {ptx::integer(0)});
    }
  }

  ptx::Operand slot() {
    return emit_.address(Expr(context_.shared_base) + Expr(static_cast<int64_t>(plan_.tensor_memory_slot)));
  }

  void tear_down() {
    emit_.at(kernel_.loc);
    const bool tensor_memory = plan_.tensor_memory_columns != 0;
    if (tensor_memory) emit_.emit("tcgen05.fence::before_thread_sync", {});
    if (kernel_.ctas() > 1) emit_.comment("no CTA leaves while a peer may still use its memory");
    if (kernel_.ctas() > 1 || tensor_memory) meet();
    if (!tensor_memory) return;
    emit_.comment("the warp that allocated tensor memory frees it, after the last use");
    only(Expr(context_.thread) < 32, [&] {
      emit_.emit("tcgen05.fence::after_thread_sync", {});
      emit_.emit(tcgen05("dealloc", ".sync.aligned.b32"), {ptx::reg(emit_.reg(Expr(context_.tensor_base))),
                                                           ptx::integer(plan_.tensor_memory_columns)});
    });
  }

  const ir::Kernel& kernel_;
  ptx::Function& function_;
  const MemoryPlan& plan_;
  Emitter emit_;
  Context context_;
  Compiled& out_;
  std::map<std::string, ir::VarRef> maps_;
};

}  // namespace
}  // namespace lowering

namespace {
std::atomic<void (*)(const Compiled&)> compiled_observer = nullptr;
}

Compiled lower(const ir::Kernel& kernel) {
  using namespace lowering;
  Compiled out;
  out.name = kernel.name;
  out.entry = entry_name(kernel.name);
  auto names = std::make_shared<ptx::DebugMap>();
  names->kernel = kernel.name;
  MemoryPlan plan = plan_memory(kernel, *names);
  check_register_plan(kernel);
  check_index_ranges(kernel, out);

  auto module = std::make_shared<ptx::Module>();
  module->name = kernel.name;
  module->version_major = 8;
  module->version_minor = 7;
  module->target = {ir::name(kernel.arch)};
  if (kernel.arch == ir::Arch::sm_103a) module->version_minor = 8;
  if (plan.shared_bytes != 0) {
    ptx::Variable shared;
    shared.space = ptx::Space::shared;
    shared.type = ptx::Type::b8;
    shared.name = "smem";
    shared.align = 1024;
    shared.is_array = true;
    shared.dims = {-1};
    shared.linkage = {"extern"};
    module->items.push_back(shared);
  }
  ptx::Function f;
  f.name = out.entry;
  f.linkage = {"visible"};
  f.directives = {format(".reqntid {}, 1, 1", kernel.threads), ".minnctapersm 1"};
  if (trades_registers(kernel.body)) f.directives[1] = format(".maxnreg {}", launch_registers(kernel));
  int ctas = kernel.ctas();
  if (ctas > 1)
    f.directives.push_back(
        format(".reqnctapercluster {}, {}, {}", kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]));
  Frame(kernel, f, *names, plan, out).write();
  for (const Param& p : out.params) names->params.push_back(p.name);
  module->items.push_back(std::move(f));

  for (int i = 0; i < 3; ++i) {
    out.grid[i] = extent(kernel.grid[i]);
    out.cluster[i] = static_cast<uint32_t>(kernel.cluster[i]);
  }
  for (const ir::Requirement& r : kernel.requirements)
    out.requirements.push_back(
        {[e = r.condition](const auto& size) { return evaluate(e, size) != 0; }, r.text, r.loc});
  out.block[0] = static_cast<uint32_t>(kernel.threads);
  out.dynamic_shared = static_cast<uint32_t>(plan.shared_bytes);
  out.text = std::make_shared<const std::string>(ptx::print_and_number(*module));
  out.module = module;
  out.names = names;
  if (auto* seen = compiled_observer.load()) seen(out);
  return out;
}

void on_compiled(void (*seen)(const Compiled&)) { compiled_observer = seen; }

}  // namespace tw
