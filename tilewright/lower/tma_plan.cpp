#include "tilewright/lower/tma_plan.h"

#include <algorithm>
#include <map>

#include "tilewright/base/error.h"
#include "tilewright/ir/simplify.h"

namespace tw::lowering {

using ir::Expr;

namespace {

constexpr int64_t max_box = 256;
constexpr size_t max_rank = 5;
constexpr int64_t stride_multiple = 16;           // bytes
constexpr int64_t piece_bytes = 16;               // what the engine moves at once along a row
constexpr int64_t max_stride = int64_t{1} << 40;  // bytes, exclusive
constexpr int64_t max_dim = int64_t{1} << 32;
constexpr int64_t shared_multiple = 128;  // bytes

template <class T>
using Or = std::variant<T, std::string>;  // a result, or the reason why there is none

bool divides(int64_t n, const Expr& e) {
  if (n == 1) return true;
  if (ir::alignment(e) % n == 0) return true;
  const ir::Linear rest = ir::split(ir::linear(e), n).rest;
  return rest.terms.empty() && rest.constant % n == 0;
}

DType twice_as_wide(DType t) { return bits(t) == 8 ? DType::u16 : bits(t) == 16 ? DType::u32 : DType::u64; }

Expr wide(const Expr& e) { return ir::cast(DType::i64, e); }

int64_t largest_divisor(int64_t n, int64_t limit, int64_t multiple) {
  for (int64_t k = std::min(n, limit); k > 1; --k)
    if (n % k == 0 && k % multiple == 0) return k;
  return 1;
}

// --- The shared side -------------------------------------------------------------------------------------

struct Placed {
  std::vector<Iter> iters;  // of the region, row-major
  Expr place;               // of its first element, in elements, before the swizzle
};

// Part [offset, offset + extent) of one dimension, where only run time knows the offset.
Or<Placed> slice_at_run_time(std::span<const Iter> iters, size_t d, const SharedRegion::Dim& dim) {
  auto no = [&](const char* why) {
    return format("shared-slice: dimension {} is cut at {}, {}", d, to_string(dim.offset), why);
  };
  Placed out{{}, 0};
  int64_t rest = dim.extent, weight = 1;
  bool cut = false;
  for (size_t i = iters.size(); i-- > 0;) {
    const Iter& it = iters[i];
    if (!cut && rest % it.extent == 0) {  // taken whole
      out.iters.insert(out.iters.begin(), it);
      rest /= it.extent;
    } else {
      if (!cut && !divides(weight, dim.offset)) return no("inside what the layout keeps together");
      if (!cut && rest > 1) {
        if (rest > it.extent) return no("which no strides describe");
        if (i > 0 && (it.extent % rest != 0 || !divides(weight * rest, dim.offset)))
          return no("which no strides describe");
        out.iters.insert(out.iters.begin(), {rest, it.stride, it.axis});
      }
      cut = true;
      Expr digit = dim.offset / Expr(weight);
      if (i > 0) digit = digit % Expr(it.extent);
      out.place = out.place + digit * Expr(it.stride);
    }
    weight *= it.extent;
  }
  return out;
}

Or<Placed> slice_shared(const SharedRegion& s) {
  const TileLayout& layout = s.layout.tile_layout();
  if (!layout.replica().empty()) return std::string("shared-layout: it holds copies of its elements");
  for (Axis a : layout.axes())
    if (a != axis::m) return std::string("shared-layout: it is spread over more than memory");
  Shape shape;
  for (const auto& d : s.dims) shape.push_back(d.size);
  if (volume(shape) != layout.size()) return std::string("shared-layout: it has another number of elements");
  const auto grouped = layout.try_group(shape);
  if (!grouped) return std::string("shared-layout: its digits cross the dimensions of the tile");

  Placed out{{}, static_cast<int>(layout.offset()[axis::m])};
  for (size_t d = 0; d < s.dims.size(); ++d) {
    const SharedRegion::Dim& dim = s.dims[d];
    const auto iters = grouped->dim(d);
    if (const auto begin = dim.offset.constant()) {
      if (*begin < 0 || *begin + dim.extent > dim.size)
        return format("shared-slice: [{}, {}) leaves dimension {} of {}", *begin, *begin + dim.extent, d,
                      dim.size);
      const Range range{*begin, *begin + dim.extent};
      const auto part = TileLayout({iters.begin(), iters.end()}).slice(Shape{dim.size}, {&range, 1});
      if (!part)
        return format("shared-slice: no strides describe part [{}, {}) of dimension {}", range.begin,
                      range.end, d);
      out.iters.insert(out.iters.end(), part->shard().begin(), part->shard().end());
      out.place = out.place + Expr(part->offset()[axis::m]);
    } else {
      auto part = slice_at_run_time(iters, d, dim);
      if (auto* why = std::get_if<std::string>(&part)) return *why;
      Placed& p = std::get<Placed>(part);
      out.iters.insert(out.iters.end(), p.iters.begin(), p.iters.end());
      out.place = out.place + p.place;
    }
  }
  out.iters = TileLayout(out.iters).canonicalize().shard();
  std::erase_if(out.iters, [](const Iter& it) { return it.extent == 1; });
  return out;
}

Or<SwizzleMode> swizzle_mode(const Layout& layout, DType dtype) {
  if (!layout.swizzle()) return SwizzleMode::none;
  for (SwizzleMode mode : {SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128})
    if (*layout.swizzle() == Swizzle::of(mode, dtype)) return mode;
  return std::string("shared-swizzle: not one of 32, 64 or 128 bytes");
}

// Bytes after which the pattern of a swizzle repeats ("Swizzling Modes"): 8, 4 or 2 rows of 128 bytes.
int64_t pattern_bytes(SwizzleMode mode) {
  return mode == SwizzleMode::none ? shared_multiple : 8 * width_bytes(mode);
}

// --- Both sides together ---------------------------------------------------------------------------------

// A run of the copy that has one stride on either side.
struct Atom {
  int64_t extent;
  size_t dim;      // of the tensor
  int64_t weight;  // elements between its values along that dimension
  int64_t place;   // elements between them in shared memory
};

// The common refinement of the tensor's dimensions and the iters of the tile.
Or<std::vector<Atom>> refine(const GlobalRegion& g, const std::vector<Iter>& iters) {
  std::vector<Atom> atoms;
  size_t d = g.dims.size();
  int64_t left = 1, weight = 1;  // of dimension d
  for (size_t i = iters.size(); i-- > 0;) {
    int64_t rest = iters[i].extent, place = iters[i].stride;
    while (rest > 1) {
      while (left == 1) {
        left = g.dims[--d].extent;
        weight = 1;
      }
      const int64_t e = std::min(rest, left);
      if (std::max(rest, left) % e != 0)
        return format("group-global: {} elements of dimension {} meet {} of the shared tile", left, d, rest);
      atoms.push_back({e, d, weight, place});
      rest /= e;
      place *= e;
      left /= e;
      weight *= e;
    }
  }
  return atoms;
}

// How many of the atoms, sorted by place, fill shared memory without a hole, or the reason why they overlap
// or do not begin densely.
Or<size_t> dense_prefix(const std::vector<Atom>& chain, bool holes_allowed) {
  if (chain.empty()) return std::string("shared-chain: a single element");
  int64_t covered = 1;
  std::optional<size_t> dense;
  for (size_t i = 0; i < chain.size(); ++i) {
    const Atom& a = chain[i];
    if (a.place != covered && (i == 0 || a.place < covered || !holes_allowed))
      return format("shared-chain: a stride of {} elements in shared memory follows {} that lie together",
                    a.place, covered);
    if (a.place != covered && !dense) dense = i;
    covered = a.place * a.extent;
  }
  return dense.value_or(chain.size());
}

// --- A tensor map in the making --------------------------------------------------------------------------

struct BoxDim {
  Expr size, stride /*bytes*/, coordinate;
  int64_t box = 1;
  bool issued = false;  // the coordinate differs between instructions
};

// A loop over instructions: each step moves `bytes` on in shared memory and `step` along dimension `dim`.
struct IssueAxis {
  int64_t count, bytes;
  size_t dim;
  int64_t step;
};

struct Candidate {
  DType dtype;
  SwizzleMode swizzle;
  std::vector<BoxDim> dims;     // innermost first
  std::vector<IssueAxis> axes;  // the first varies fastest

  int64_t element_bytes() const { return bits(dtype) / 8; }
};

// The tensor map whose box holds the first `prefix` atoms of the chain. A dimension of the tensor is split at
// the weights of its boxed atoms; what is not boxed becomes a loop over instructions.
Or<Candidate> candidate(DType dtype, SwizzleMode swizzle, const GlobalRegion& g,
                        const std::vector<Atom>& chain, size_t prefix, const TmaOptions& options) {
  Candidate c{dtype, swizzle, {}, {}};
  const int64_t bytes = c.element_bytes();

  std::vector<int64_t> box(chain.size(), 1);
  std::vector<std::map<int64_t, size_t>> dim_at(g.dims.size());  // by weight: index into c.dims
  for (size_t i = 0; i < prefix; ++i) {
    const int64_t limit = i == 0 ? max_box : std::min(max_box, options.box_rows);
    box[i] = chain[i].extent <= limit
                 ? chain[i].extent
                 : largest_divisor(chain[i].extent, limit, i == 0 ? std::max<int64_t>(1, 16 / bytes) : 1);
    if (box[i] > 1 || i == 0) {
      dim_at[chain[i].dim][chain[i].weight] = c.dims.size();
      c.dims.emplace_back().box = box[i];
    }
    if (box[i] != chain[i].extent) break;
  }
  auto add_whole = [&](size_t d) {
    if (dim_at[d].contains(1)) return;
    dim_at[d][1] = c.dims.size();
    c.dims.emplace_back();
  };
  for (const Atom& a : chain) add_whole(a.dim);
  for (size_t d = 0; d < g.dims.size(); ++d) add_whole(d);

  for (size_t d = 0; d < g.dims.size(); ++d) {
    const GlobalRegion::Dim& dim = g.dims[d];
    const int64_t outermost = dim_at[d].rbegin()->first;
    if (!divides(outermost, dim.offset))
      return format("coordinate: offset {} of dimension {} is no multiple of {}", to_string(dim.offset), d,
                    outermost);
    if (!divides(outermost, dim.size))
      return format("global-shape: extent {} of dimension {} is no multiple of {}", to_string(dim.size), d,
                    outermost);
    for (auto it = dim_at[d].begin(); it != dim_at[d].end(); ++it) {
      const auto next = std::next(it);
      const int64_t weight = it->first;
      BoxDim& b = c.dims[it->second];
      b.stride = wide(dim.stride) * Expr(weight * bytes);
      b.size = next == dim_at[d].end() ? dim.size / Expr(weight) : Expr(next->first / weight);
      b.coordinate = next == dim_at[d].end() ? dim.offset / Expr(weight) : Expr(0);
    }
  }
  for (size_t i = 0; i < chain.size(); ++i) {
    const Atom& a = chain[i];
    if (box[i] == a.extent) continue;
    const auto [weight, dim] = *std::prev(dim_at[a.dim].upper_bound(a.weight));
    c.axes.push_back({a.extent / box[i], a.place * box[i] * bytes, dim, a.weight * box[i] / weight});
    c.dims[dim].issued = true;
  }
  return c;
}

// Rows wider than a box may be: the copy as one of elements of twice the size, if everything is even.
bool widen_rows(DType& dtype, GlobalRegion& g, std::vector<Atom>& chain) {
  const int64_t bytes = bits(dtype) / 8;
  const size_t row = chain[0].dim;
  if (bytes > 4 || chain[0].weight != 1 || !g.dims[row].stride.is(1) || !divides(2, g.dims[row].size) ||
      !divides(2, g.dims[row].offset))
    return false;
  for (size_t d = 0; d < g.dims.size(); ++d)
    if (d != row && !divides(2, g.dims[d].stride)) return false;
  for (size_t i = 0; i < chain.size(); ++i) {
    if ((i == 0 ? chain[i].extent : chain[i].place) % 2 != 0) return false;
    if (i > 0 && chain[i].dim == row && chain[i].weight % 2 != 0) return false;
  }

  dtype = twice_as_wide(dtype);
  for (size_t d = 0; d < g.dims.size(); ++d)
    if (d != row) g.dims[d].stride = g.dims[d].stride / Expr(2);
  g.dims[row].size = g.dims[row].size / Expr(2);
  g.dims[row].offset = g.dims[row].offset / Expr(2);
  g.dims[row].extent /= 2;
  chain[0].extent /= 2;
  for (size_t i = 1; i < chain.size(); ++i) {
    chain[i].place /= 2;
    if (chain[i].dim == row) chain[i].weight /= 2;
  }
  return true;
}

bool inner_box_is_legal(const Candidate& c, int64_t box) {
  const int64_t bytes = box * c.element_bytes();
  return bytes % 16 == 0 && (c.swizzle == SwizzleMode::none || bytes <= width_bytes(c.swizzle));
}

// The same bytes as elements of twice the size, where everything is even.
std::optional<Candidate> widened(Candidate c) {
  const int64_t bytes = c.element_bytes();
  if (bytes > 4 || c.dims.empty()) return std::nullopt;
  BoxDim& inner = c.dims[0];
  if (!inner.stride.is(bytes) || inner.box % 2 != 0 || inner.issued || !divides(2, inner.size) ||
      !divides(2, inner.coordinate))
    return std::nullopt;
  for (size_t i = 1; i < c.dims.size(); ++i)
    if (!divides(2 * bytes, c.dims[i].stride)) return std::nullopt;
  c.dtype = twice_as_wide(c.dtype);
  inner.size = inner.size / Expr(2);
  inner.coordinate = inner.coordinate / Expr(2);
  inner.stride = Expr(2 * bytes);
  inner.box /= 2;
  return c;
}

void erase_dim(Candidate& c, size_t d) {
  c.dims.erase(c.dims.begin() + static_cast<std::ptrdiff_t>(d));
  for (IssueAxis& a : c.axes)
    if (a.dim > d) --a.dim;
}

// A dimension of one element says nothing, as long as nobody reaches beside it.
bool drop_unit(Candidate& c) {
  for (size_t i = 1; i < c.dims.size(); ++i) {
    const BoxDim& b = c.dims[i];
    if (b.issued || b.box != 1 || !b.size.is(1) || !b.coordinate.is(0)) continue;
    erase_dim(c, i);
    return true;
  }
  return false;
}

// Joins two dimensions that follow each other in memory, the inner one copied whole: what lies outside the
// tensor stays outside.
bool merge_pair(Candidate& c, bool may_widen) {
  for (size_t i = 0; i + 1 < c.dims.size(); ++i) {
    BoxDim &in = c.dims[i], &out = c.dims[i + 1];
    if (in.issued || out.issued || !in.size.is(in.box) || !in.coordinate.is(0)) continue;
    if (!ir::same(out.stride, in.stride * Expr(in.box))) continue;
    const auto size = out.size.constant();
    if (size && *size * in.box > max_dim) continue;
    const int64_t box = in.box * out.box;
    if (i == 0 && !inner_box_is_legal(c, box)) continue;
    if (box > max_box) {
      // Wider elements rather than leaving a short innermost row.
      if (i == 0 && may_widen && c.dims.size() > 2 && out.size.is(out.box) && out.coordinate.is(0))
        if (auto w = widened(c); w && box / 2 <= max_box) {
          c = std::move(*w);
          return true;
        }
      continue;
    }
    in.coordinate = out.coordinate * Expr(in.box);
    in.size = out.size * Expr(in.box);
    in.box = box;
    erase_dim(c, i + 1);
    return true;
  }
  return false;
}

// The first rule of cuTensorMapEncodeTiled that the map breaks for certain.
std::optional<std::string> broken_rule(const Candidate& c) {
  if (c.dims.size() > max_rank)
    return format("rank: a tensor map has 1 to {} dimensions, got {}", max_rank, c.dims.size());
  for (size_t i = 0; i < c.dims.size(); ++i)
    if (const auto n = c.dims[i].size.constant(); n && (*n < 1 || *n > max_dim))
      return format("global_dim: dimension {} has {} elements, it takes 1 to 2^32", i, *n);
  for (size_t i = 1; i < c.dims.size(); ++i) {
    const auto n = c.dims[i].stride.constant();
    if (n && (*n < 0 || *n >= max_stride))
      return format("global_stride_range: the stride of dimension {} is {} bytes, it takes 0 to 2^40 - 1", i,
                    *n);
  }
  for (size_t i = 1; i < c.dims.size(); ++i)
    if (const auto n = c.dims[i].stride.constant(); n && *n % stride_multiple != 0)
      return format("global_stride_alignment: the stride of dimension {} is {} bytes, no multiple of {}", i,
                    *n, stride_multiple);
  if (!c.dims[0].stride.is(c.element_bytes()))
    return format("inner_stride: neighbours in shared memory lie {} bytes apart in the tensor",
                  to_string(c.dims[0].stride));
  const int64_t row = c.dims[0].box * c.element_bytes();
  if (row % 16 != 0) return format("inner_box_bytes: a row of the box has {} bytes, no multiple of 16", row);
  if (c.swizzle != SwizzleMode::none && row != width_bytes(c.swizzle))
    return format("swizzle_inner_box: a row of the box has {} bytes, the swizzle {}", row,
                  width_bytes(c.swizzle));
  return std::nullopt;
}

// Brings a candidate to its shortest form and, where only wider elements are legal, to those.
Or<Candidate> legalized(Candidate c, bool may_widen) {
  for (;;) {
    while (drop_unit(c) || merge_pair(c, may_widen)) {
    }
    auto why = broken_rule(c);
    if (!why) return c;
    auto wider = may_widen ? widened(c) : std::nullopt;
    if (!wider) return *why;
    c = std::move(*wider);
  }
}

// --- The plan --------------------------------------------------------------------------------------------

std::optional<std::string> refusal(DType dtype, const TmaOptions& options) {
  if (dtype == DType::b1 || bits(dtype) % 8 != 0) return format("dtype: TMA moves no {}", name(dtype));
  if (options.oob && options.direction == TmaDirection::store)
    return std::string("oob_direction: only a load fills what lies outside the tensor");
  const bool is_real = is_float(dtype) && bits(dtype) >= 16;  // fp8 travels as bytes
  if (options.oob == OobFill::nan && !is_real)
    return format("nan_oob_dtype: {} cannot be filled with NaN", name(dtype));
  return std::nullopt;
}

// A box begins at whole 16 bytes of its rows, also outside the tensor: a GPU takes any other coordinate for
// an illegal instruction. The PTX ISA says so for sub-byte types only.
std::optional<std::string> broken_coordinate(const Candidate& c, const Expr& inner) {
  const int64_t bytes = c.element_bytes(), multiple = piece_bytes / bytes;
  if (divides(multiple, inner)) return std::nullopt;
  if (const auto n = inner.constant())
    return format("inner_coordinate: a box begins at element {} of a row, byte {}, no multiple of {}", *n,
                  *n * bytes, piece_bytes);
  return format(
      "inner_coordinate: a box begins at element {} of a row, which is not known to be a multiple of {} "
      "elements, {} bytes",
      to_string(inner), multiple, piece_bytes);
}

// Whether a store may write beyond the end of a row: it writes whole 16 bytes, as an H200 showed. Loads fill
// by the element.
bool may_overwrite(const Candidate& c, const std::vector<TmaInstruction>& instructions) {
  const BoxDim& row = c.dims[0];
  if (divides(piece_bytes / c.element_bytes(), row.size)) return false;
  const auto size = row.size.constant();
  return !size || std::any_of(instructions.begin(), instructions.end(), [&](const TmaInstruction& t) {
    const auto begin = t.coordinates[0].constant();
    return !begin || *begin + row.box > *size;
  });
}

Or<TmaPlan> plan_of(const Candidate& c, const Expr& place, const TmaOptions& options) {
  TmaPlan p;
  p.dtype = c.dtype;
  p.swizzle = c.swizzle;
  p.nan_fill = options.oob == OobFill::nan;
  p.l2 = options.l2;
  p.shared_align = static_cast<uint32_t>(pattern_bytes(c.swizzle));
  for (const BoxDim& d : c.dims) {
    p.dims.push_back(d.size);
    p.box.push_back(static_cast<uint32_t>(d.box));
    if (&d == &c.dims[0]) continue;
    p.strides.push_back(d.stride);
    if (!divides(stride_multiple, d.stride))
      p.requirements.push_back({d.stride % Expr(stride_multiple) == Expr(0),
                                format("{} is a multiple of {}: TMA needs strides of whole {} bytes",
                                       to_string(d.stride), stride_multiple, stride_multiple),
                                {}});
  }

  int64_t count = 1;
  for (const IssueAxis& a : c.axes) count *= a.count;
  for (int64_t n = 0; n < count; ++n) {
    TmaInstruction t;
    std::vector<int64_t> steps(c.dims.size(), 0);
    int64_t rest = n, skipped = 0;
    for (const IssueAxis& a : c.axes) {
      steps[a.dim] += rest % a.count * a.step;
      skipped += rest % a.count * a.bytes;
      rest /= a.count;
    }
    for (size_t d = 0; d < c.dims.size(); ++d)
      t.coordinates.push_back(ir::cast(DType::i32, c.dims[d].coordinate + Expr(steps[d])));
    if (auto why = broken_coordinate(c, t.coordinates[0])) return *why;
    t.shared_offset = ir::cast(DType::i32, place + Expr(skipped));
    if (!divides(p.shared_align, t.shared_offset))
      return format(
          "shared-alignment: a box begins at byte {} of the tile, it must begin at a multiple of {}",
          to_string(t.shared_offset), p.shared_align);
    p.instructions.push_back(std::move(t));
  }
  if (options.direction == TmaDirection::store && may_overwrite(c, p.instructions)) {
    const int64_t bytes = c.element_bytes(), multiple = piece_bytes / bytes;
    const Expr& size = c.dims[0].size;
    if (const auto n = size.constant())
      return format("inner_size: rows of {} bytes, no multiple of {}: a store would write beyond their end",
                    *n * bytes, piece_bytes);
    // Rows that lie densely meet the same requirement as strides.
    if (p.strides.empty() || !ir::same(p.strides[0], wide(size) * Expr(bytes)))
      p.requirements.push_back(
          {size % Expr(multiple) == Expr(0),
           format("{} is a multiple of {}: TMA stores whole {} bytes, also at the end of a "
                  "row",
                  to_string(size), multiple, piece_bytes),
           {}});
  }
  return p;
}

}  // namespace

int64_t TmaPlan::box_bytes() const {
  int64_t n = bits(dtype) / 8;
  for (uint32_t b : box) n *= b;
  return n;
}

TmaPlanOr plan_tma(DType dtype, const GlobalRegion& global, const SharedRegion& shared,
                   const TmaOptions& options) {
  if (auto why = refusal(dtype, options)) return *why;
  int64_t from = 1, to = 1;
  for (const auto& d : global.dims) from *= d.extent;
  for (const auto& d : shared.dims) to *= d.extent;
  if (from != to) return format("shape: {} elements of the tensor, {} of the shared tile", from, to);

  const auto mode = swizzle_mode(shared.layout, dtype);
  if (auto* why = std::get_if<std::string>(&mode)) return *why;
  const auto placed = slice_shared(shared);
  if (auto* why = std::get_if<std::string>(&placed)) return *why;
  const auto& [iters, place] = std::get<Placed>(placed);
  const Expr first_byte = place * Expr(static_cast<int64_t>(bits(dtype) / 8));
  auto atoms = refine(global, iters);
  if (auto* why = std::get_if<std::string>(&atoms)) return *why;
  auto& chain = std::get<std::vector<Atom>>(atoms);
  std::stable_sort(chain.begin(), chain.end(),
                   [](const Atom& a, const Atom& b) { return a.place < b.place; });
  const auto dense = dense_prefix(chain, options.several);
  if (auto* why = std::get_if<std::string>(&dense)) return *why;

  const bool may_widen = options.oob != OobFill::nan;
  GlobalRegion g = global;
  while (may_widen && chain[0].extent > max_box && widen_rows(dtype, g, chain)) {
  }
  auto attempt = [&](size_t prefix) -> TmaPlanOr {
    auto raw = candidate(dtype, std::get<SwizzleMode>(mode), g, chain, prefix, options);
    if (auto* why = std::get_if<std::string>(&raw)) return *why;
    auto legal = legalized(std::get<Candidate>(std::move(raw)), may_widen);
    if (auto* why = std::get_if<std::string>(&legal)) return *why;
    return plan_of(std::get<Candidate>(legal), first_byte, options);
  };
  // The longest box that is legal. If none is, what stands against the longest of all is the reason, unless a
  // shorter one would do and only begins at a wrong place.
  TmaPlanOr longest = attempt(std::get<size_t>(dense));
  if (std::holds_alternative<TmaPlan>(longest) || !options.several) return longest;
  for (size_t prefix = std::get<size_t>(dense) - 1; prefix > 0; --prefix) {
    TmaPlanOr shorter = attempt(prefix);
    const auto* why = std::get_if<std::string>(&shorter);
    if (!why || why->starts_with("inner_coordinate")) return shorter;
  }
  return longest;
}

TmaPlanOr plan_tma(const ir::Tile& global, const ir::Tile& shared, const TmaOptions& options) {
  require(global.buffer->space == ir::Space::global && shared.buffer->space == ir::Space::shared,
          "a tile in global and one in shared memory");
  if (global.buffer->dtype != shared.buffer->dtype)
    return format("dtype: '{}' holds {}, '{}' holds {}", global.buffer->name, name(global.buffer->dtype),
                  shared.buffer->name, name(shared.buffer->dtype));
  GlobalRegion g;
  Expr stride = ir::integer(DType::i64, 1);
  for (size_t d = global.dims.size(); d-- > 0;) {
    const ir::TileDim& t = global.dims[d];
    g.dims.insert(g.dims.begin(), {global.buffer->shape[d], stride, t.offset, t.kept ? t.extent : 1});
    stride = stride * wide(global.buffer->shape[d]);
  }
  SharedRegion s{shared.buffer->layout, {}};
  const std::vector<int64_t> sizes = shared.buffer->extents();
  for (size_t d = 0; d < shared.dims.size(); ++d) {
    const ir::TileDim& t = shared.dims[d];
    s.dims.push_back({sizes[d], t.offset, t.kept ? t.extent : 1});
  }
  return plan_tma(global.buffer->dtype, g, s, options);
}

}  // namespace tw::lowering
