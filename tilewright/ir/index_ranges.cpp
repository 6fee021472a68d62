#include "tilewright/ir/index_ranges.h"

#include <algorithm>
#include <type_traits>

#include "tilewright/ir/guards.h"

namespace tw::ir {
namespace {

bool is_sum(const Expr& e) {
  return is_integer(e.type()) && bits(e.type()) == 32 && (e->op == Op::add || e->op == Op::mul);
}

// Whether an expression keeps its value: a condition that holds at the begin of a block holds in all of it.
bool lasts(const Expr& value) {
  bool lasting = true;
  visit(value, [&](const Expr& e) {
    if (e->op == Op::variable) lasting &= e->variable->assigned_once;
    if (e->op == Op::load || e->op == Op::element || e->op == Op::coordinate) lasting = false;
  });
  return lasting;
}

// The same expression with every variable and id as narrow as one launch makes it.
class AtLaunch {
 public:
  using Sizes = IndexRanges::Sizes;
  AtLaunch(const Kernel& kernel, const std::map<const Variable*, Expr>& declared,
           const std::map<const Variable*, const For*>& counters, const Sizes& size)
      : kernel_(kernel), declared_(declared), counters_(counters), size_(size) {}

  Expr narrow(const Expr& e) {
    if (e->op == Op::variable) return variable(e->variable);
    if (e->op == Op::scope_id) return id(e->id);
    return rebuild(e, [this](const Expr& a) { return narrow(a); });
  }

 private:
  // A variable with these bounds that stands for `name`.
  static Expr stand_in(const std::string& name, DType type, const Range& r) {
    if (r.lo && r.hi && *r.lo == *r.hi) return integer(type, *r.lo);
    auto v = std::make_shared<Variable>();
    v->name = name;
    v->type = type;
    v->lo = r.lo;
    v->hi = r.hi;
    return Expr(VarRef(std::move(v)));
  }

  Expr variable(const VarRef& v) {
    if (const auto known = variables_.find(v.get()); known != variables_.end()) return known->second;
    return variables_.emplace(v.get(), stand_in(v->name, v->type, bounds(*v))).first->second;
  }

  Range bounds(const Variable& v) {
    const auto is_v = [&](const VarRef& other) { return other.get() == &v; };
    if (size_ && std::any_of(kernel_.sizes.begin(), kernel_.sizes.end(), is_v)) {
      const int64_t value = size_(v.name);
      return {value, value};
    }
    if (const auto d = declared_.find(&v); d != declared_.end()) return range(narrow(d->second));
    const auto loop = counters_.find(&v);
    if (loop == counters_.end()) return {v.lo, v.hi};
    Range r{range(narrow(loop->second->begin)).lo, range(narrow(loop->second->end)).hi};
    if (r.hi) r.hi = std::max(*r.hi - 1, r.lo.value_or(*r.hi - 1));
    return r;
  }

  Expr id(ScopeId id) {
    if (const auto known = ids_.find(id); known != ids_.end()) return known->second;
    return ids_.emplace(id, stand_in(name(id), DType::i32, bounds(id))).first->second;
  }

  Range bounds(ScopeId id) {
    const auto grid = [&](ScopeId first) {
      return range(narrow(kernel_.grid[static_cast<size_t>(id) - static_cast<size_t>(first)])).hi;
    };
    switch (id) {
      case ScopeId::thread: return {0, kernel_.threads - 1};
      case ScopeId::warp: return {0, kernel_.warps() - 1};
      case ScopeId::cluster_rank: return {0, kernel_.ctas() - 1};
      case ScopeId::cta_x:
      case ScopeId::cta_y:
      case ScopeId::cta_z: {
        const auto ctas = grid(ScopeId::cta_x);
        return {0, ctas ? std::optional(std::max<int64_t>(*ctas - 1, 0)) : ctas};
      }
      case ScopeId::grid_x:
      case ScopeId::grid_y:
      case ScopeId::grid_z: return {1, grid(ScopeId::grid_x)};
      default: return range(Expr(id));
    }
  }

  const Kernel& kernel_;
  const std::map<const Variable*, Expr>& declared_;
  const std::map<const Variable*, const For*>& counters_;
  const Sizes& size_;
  std::map<const Variable*, Expr> variables_;
  std::map<ScopeId, Expr> ids_;
};

Range bounds_of(AtLaunch& launch, const IndexValue& v) {
  const Expr value = launch.narrow(v.value);
  const Range everywhere = range(value);
  if (!leaves_32_bits(everywhere) || v.guards.empty()) return everywhere;
  Guards guards;
  for (const Expr& g : v.guards) guards.add(launch.narrow(g));
  return guards.never() ? Range{0, -1} : guards.range(value);
}

// Whether all of `fewer` are among `more`.
bool among(const std::vector<Expr>& fewer, const std::vector<Expr>& more) {
  return std::all_of(fewer.begin(), fewer.end(), [&](const Expr& f) {
    return std::any_of(more.begin(), more.end(), [&](const Expr& m) { return same(f, m); });
  });
}

}  // namespace

IndexRanges::IndexRanges(Kernel kernel) : kernel_(std::move(kernel)) { block(kernel_.body); }

Range IndexRanges::of(const IndexValue& value, const Sizes& size) const {
  AtLaunch launch(kernel_, declared_, counters_, size);
  return bounds_of(launch, value);
}

bool IndexRanges::overflows(size_t i, const Sizes& size) const {
  std::vector<int64_t> sizes;
  for (const VarRef& v : kernel_.sizes) sizes.push_back(size(v->name));
  std::lock_guard lock(mutex_);
  if (overflows_.empty() || sizes != sizes_) {
    AtLaunch launch(kernel_, declared_, counters_, size);
    overflows_.clear();
    for (const IndexValue& v : values_) overflows_.push_back(leaves_32_bits(bounds_of(launch, v)));
    sizes_ = std::move(sizes);
  }
  return overflows_[i];
}

bool leaves_32_bits(const Range& r) { return r.lo && r.hi && (*r.lo < INT32_MIN || *r.hi > INT32_MAX); }

void IndexRanges::consumed(const Expr& e) {
  if (is_sum(e) && std::none_of(values_.begin(), values_.end(), [&](const IndexValue& known) {
        return same(known.value, e) && among(known.guards, guards_);
      }))
    values_.push_back({e, loc_, guards_});
  inside(e);
}

template <class Body>
void IndexRanges::guarded(const Expr& condition, Body body) {
  const bool counts = lasts(condition);
  if (counts) guards_.push_back(condition);
  body();
  if (counts) guards_.pop_back();
}

void IndexRanges::inside(const Expr& e) {
  // What the condition does not choose may wrap.
  if (e->op == Op::logical_and || e->op == Op::logical_or || e->op == Op::select) {
    consumed(e->args[0]);
    guarded(e->op == Op::logical_or ? !e->args[0] : e->args[0], [&] { consumed(e->args[1]); });
    if (e->op == Op::select) guarded(!e->args[0], [&] { consumed(e->args[2]); });
    return;
  }
  // Part of a sum, or widened term by term.
  const bool exact = is_sum(e) || (e->op == Op::cast && is_integer(e.type()) && bits(e.type()) == 64);
  for (const Expr& a : e->args) {
    if (exact && is_sum(a)) inside(a);
    else consumed(a);
  }
}

void IndexRanges::data(const Expr& e) {
  visit(e, [this](const Expr& part) {
    if (part->op != Op::load) return;
    for (const Expr& a : part->args) consumed(a);
  });
}

void IndexRanges::read(const Tile& tile) {
  for (const TileDim& d : tile.dims) {
    // The last element of the tile is what must be within reach.
    if (tile.buffer->space == Space::global) consumed(d.offset + Expr(std::max<int64_t>(d.extent, 1) - 1));
    else consumed(d.offset);
  }
}

void IndexRanges::block(const Block& b) {
  for (const Stmt& s : b) {
    loc_ = s.loc;
    std::visit(
        [this](const auto& n) {
          using T = std::decay_t<decltype(n)>;
          if constexpr (std::is_same_v<T, Declare> || std::is_same_v<T, Assign>) {
            consumed(n.value);
            if (std::is_same_v<T, Declare> && n.variable->assigned_once)
              declared_.emplace(n.variable.get(), n.value);
          } else if constexpr (std::is_same_v<T, Store>) {
            read(n.element);
            data(n.value);
          } else if constexpr (std::is_same_v<T, If>) {
            consumed(n.condition);
            guarded(n.condition, [&] { block(*n.then); });
            if (n.otherwise) guarded(!n.condition, [&] { block(*n.otherwise); });
          } else if constexpr (std::is_same_v<T, For>) {
            consumed(n.begin);
            consumed(n.end);
            counters_.emplace(n.variable.get(), &n);
            block(*n.body);
          } else if constexpr (std::is_same_v<T, While>) {
            consumed(n.condition);
            block(*n.body);
          } else if constexpr (std::is_same_v<T, Role> || std::is_same_v<T, Elected>) {
            block(*n.body);
          } else if constexpr (std::is_same_v<T, TileOp>) {
            for (const Tile& t : n.operands) read(t);
            if (n.value.defined()) data(n.value);
          } else if constexpr (std::is_same_v<T, BarrierOp>) {
            consumed(n.stage);
          } else if constexpr (std::is_same_v<T, Intrinsic>) {
            for (const auto& o : n.operands) {
              if (const auto* t = std::get_if<Tile>(&o)) read(*t);
              else data(std::get<Expr>(o));
            }
          }
        },
        s.node);
  }
}

}  // namespace tw::ir
