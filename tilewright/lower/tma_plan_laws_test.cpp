// A plan against element-wise application of both layouts: every instruction's box is walked as the ISA
// describes it, and each byte of shared memory must meet the byte of the tensor that the copy names.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <map>

#include "tilewright/base/format.h"
#include "tilewright/base/math.h"
#include "tilewright/layout/constructors.h"
#include "tilewright/lower/tma_plan.h"

namespace tw::lowering {
namespace {

using ir::Expr;
using rc::gen::element;
using rc::gen::inRange;

void check(const char* what, const std::function<void()>& property) {
  EXPECT_TRUE(rc::check(what, property));
}

constexpr int64_t outside = INT64_MIN;
using Bytes = std::map<int64_t, int64_t>;  // place in shared memory -> place in the tensor, or outside

// Numbers of one copy, and the run-time variables that stand for some of them.
struct Copy {
  DType dtype = DType::f16;
  Shape size, stride, offset, extent;  // of the tensor, outermost dimension first
  Layout layout;
  Shape tile_size, tile_offset, tile_extent;
  std::vector<std::pair<ir::VarRef, int64_t>> variables;

  int64_t element_bytes() const { return bits(dtype) / 8; }

  // The number itself, or a variable of that value, of which the planner learns some alignment.
  Expr number(int64_t value, bool at_run_time) {
    if (!at_run_time) return Expr(static_cast<int>(value));
    ir::Variable v;
    v.name = tw::format("v{}", variables.size());
    const int64_t known = value == 0 ? 1 << 10 : value & -value;
    v.multiple_of = *element(int64_t{1}, std::min<int64_t>(known, 1 << 10));
    variables.emplace_back(std::make_shared<const ir::Variable>(v), value);
    return Expr(variables.back().first);
  }
  int64_t value(Expr e) const {
    for (const auto& [v, number] : variables) e = ir::substitute(e, v, Expr(static_cast<int>(number)));
    RC_ASSERT(e.constant().has_value());
    return *e.constant();
  }
};

Bytes element_wise(const Copy& c) {
  Bytes map;
  for (int64_t i = 0; i < volume(c.extent); ++i) {
    Shape from = delinearize(i, c.extent), to = delinearize(i, c.tile_extent);
    int64_t address = 0;
    bool inside = true;
    for (size_t d = 0; d < from.size(); ++d) {
      from[d] += c.offset[d];
      inside = inside && from[d] >= 0 && from[d] < c.size[d];
      address += from[d] * c.stride[d] * c.element_bytes();
    }
    for (size_t d = 0; d < to.size(); ++d) to[d] += c.tile_offset[d];
    const int64_t place = c.layout.at(to, c.tile_size)[axis::m] * c.element_bytes();
    for (int64_t b = 0; b < c.element_bytes(); ++b) map[place + b] = inside ? address + b : outside;
  }
  return map;
}

// "Swizzling Modes": within rows of 128 bytes, the index of a 16-byte chunk is exclusive-ored with as many
// low bits of the row's index as the mode has.
int64_t swizzled(int64_t address, SwizzleMode mode) {
  const int64_t mask = mode == SwizzleMode::none ? 0 : width_bytes(mode) / 16 - 1;
  return address ^ (((address >> 7) & mask) << 4);
}

Bytes simulate(const Copy& c, const TmaPlan& p) {
  Bytes map;
  const int64_t bytes = bits(p.dtype) / 8;
  Shape box(p.box.rbegin(), p.box.rend());  // outermost first
  const size_t rank = box.size();
  RC_ASSERT(rank >= 1u && rank <= 5u && p.dims.size() == rank && p.strides.size() == rank - 1);
  std::vector<int64_t> dims, strides{bytes};
  for (const Expr& e : p.dims) dims.push_back(c.value(e));
  for (const Expr& e : p.strides) strides.push_back(c.value(e));
  for (size_t d = 0; d < rank; ++d) {
    RC_ASSERT(p.box[d] >= 1u && p.box[d] <= 256u);
    RC_ASSERT(d == 0 || strides[d] % 16 == 0);
  }
  RC_ASSERT(p.box[0] * bytes % 16 == 0);
  for (const TmaInstruction& t : p.instructions) RC_ASSERT(c.value(t.coordinates[0]) * bytes % 16 == 0);
  for (const auto& r : p.requirements) RC_ASSERT(c.value(r.condition) == 1);

  for (const TmaInstruction& t : p.instructions) {
    std::vector<int64_t> at;
    for (const Expr& e : t.coordinates) at.push_back(c.value(e));
    const int64_t begin = c.value(t.shared_offset);
    RC_ASSERT(begin % p.shared_align == 0);
    for (int64_t i = 0; i < volume(box); ++i) {
      const Shape outermost_first = delinearize(i, box);
      int64_t address = 0;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t x = at[d] + outermost_first[rank - 1 - d];
        inside = inside && x >= 0 && x < dims[d];
        address += x * strides[d];
      }
      const int64_t place = swizzled(begin + i * bytes, p.swizzle);
      for (int64_t b = 0; b < bytes; ++b) {
        const bool first = map.emplace(place + b, inside ? address + b : outside).second;
        RC_ASSERT(first);
      }
    }
  }
  RC_ASSERT(static_cast<int64_t>(map.size()) == p.bytes());
  return map;
}

// A matrix cut out of a tensor with batch dimensions, rows perhaps made of two dimensions, into (a part of) a
// stage of a tile; any part may overhang the tensor.
struct Shapes {
  int64_t rows, columns, columns_per_row;  // of the copy; elements that lie together in a row
};

Shapes random_tile(Copy& c) {
  c.dtype = *element(DType::u8, DType::f16, DType::f32);
  const SwizzleMode mode = *element(SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128);
  const bool plain = mode == SwizzleMode::none && *rc::gen::arbitrary<bool>();
  const int64_t width = width_bytes(mode) / c.element_bytes();
  const int64_t rows = plain ? *inRange<int64_t>(1, 40) : 8 * *inRange<int64_t>(1, 6);
  const bool broad = plain && *rc::gen::arbitrary<bool>();  // rows wider than a box
  const int64_t columns = width * (broad ? *inRange<int64_t>(16, 80) : *inRange<int64_t>(1, 5));
  const int64_t stages = *inRange<int64_t>(1, 4);
  c.tile_size = {stages, rows, columns};
  c.layout =
      plain ? Layout(TileLayout::row_major(c.tile_size)) : mma_shared_layout(c.dtype, mode, c.tile_size);

  // A part of one stage: whole atoms, or any rows of a plain tile.
  const int64_t row_unit = plain ? 1 : 8;
  const bool part = *rc::gen::arbitrary<bool>();
  const int64_t part_rows = part ? row_unit * *inRange<int64_t>(1, rows / row_unit + 1) : rows;
  const int64_t part_columns = part ? width * *inRange<int64_t>(1, columns / width + 1) : columns;
  c.tile_extent = {1, part_rows, part_columns};
  c.tile_offset = {*inRange<int64_t>(0, stages),
                   row_unit * *inRange<int64_t>(0, (rows - part_rows) / row_unit + 1),
                   width * *inRange<int64_t>(0, (columns - part_columns) / width + 1)};
  return {part_rows, part_columns, plain ? part_columns : width};
}

void random_tensor(Copy& c, const Shapes& s) {
  const int64_t unit = 16 / c.element_bytes();  // strides of whole 16 bytes
  const bool aligned = *rc::gen::arbitrary<bool>();
  const int64_t column_unit = aligned ? s.columns_per_row : *element(unit, unit, int64_t{1});
  auto add = [&](int64_t extent, int64_t size_unit, int64_t offset_unit) {
    const int64_t units = tw::ceil_div(extent, size_unit);
    c.extent.push_back(extent);
    c.size.push_back(size_unit * *inRange<int64_t>(1, 2 * units + 2));
    c.offset.push_back(offset_unit *
                       *inRange<int64_t>(-extent / offset_unit, c.size.back() / offset_unit + 1));
  };
  for (int64_t batches = *inRange<int64_t>(0, 2); batches > 0; --batches) {
    c.extent.push_back(1);
    c.size.push_back(*inRange<int64_t>(1, 4));
    c.offset.push_back(*inRange<int64_t>(-1, c.size.back() + 1));
  }
  const int64_t inner_rows = s.rows % 4 == 0 && *rc::gen::arbitrary<bool>() ? 4 : 1;
  add(s.rows / inner_rows, 1, 1);
  if (inner_rows > 1) add(inner_rows, 1, 1);
  add(s.columns, aligned ? std::max(unit, s.columns_per_row) : unit, column_unit);
}

TmaPlanOr plan_tiles(Copy& c, bool at_run_time) {
  auto global = std::make_shared<ir::Buffer>();
  auto shared = std::make_shared<ir::Buffer>();
  global->space = ir::Space::global;
  shared->space = ir::Space::shared;
  global->dtype = shared->dtype = c.dtype;
  auto sometimes = [&] { return at_run_time && *rc::gen::arbitrary<bool>(); };
  ir::Tile from{global, {}}, to{shared, {}};
  for (size_t d = 0; d < c.size.size(); ++d) {
    global->shape.push_back(c.number(c.size[d], sometimes()));
    from.dims.push_back({c.number(c.offset[d], sometimes()), c.extent[d], c.extent[d] > 1});
  }
  for (size_t d = 0; d < c.tile_size.size(); ++d) {
    shared->shape.push_back(Expr(c.tile_size[d]));
    to.dims.push_back({c.number(c.tile_offset[d], sometimes()), c.tile_extent[d], d > 0});
  }
  shared->layout = c.layout;
  return plan_tma(from, to);
}

void agrees(const Copy& c, const TmaPlanOr& result) {
  if (const auto* why = std::get_if<std::string>(&result)) {
    // All that may stand against these copies: a part of a tile that begins between 128-byte lines, offsets
    // of which too little is known, and tensors of which no stride is known to fit.
    const std::string rule = why->substr(0, why->find(':'));
    RC_TAG(rule);
    RC_LOG() << *why << "\n";
    const bool begins_inside = c.offset.back() * c.element_bytes() % 16 != 0;
    RC_ASSERT(rule == "shared-alignment" || (rule == "shared-slice" && !c.variables.empty()) ||
              (rule == "inner_coordinate" && (begins_inside || !c.variables.empty())));
    return;
  }
  const TmaPlan& p = std::get<TmaPlan>(result);
  RC_TAG(p.instructions.size() == 1 ? "one instruction" : "several");
  RC_ASSERT(simulate(c, p) == element_wise(c));
}

TEST(TmaPlanLaws, AgreesWithElementWiseCopies) {
  check("numbers", [] {
    Copy c;
    random_tensor(c, random_tile(c));
    c.stride.assign(c.size.size(), 1);
    for (size_t d = c.size.size(); d-- > 1;) c.stride[d - 1] = c.stride[d] * c.size[d];
    agrees(c, plan_tiles(c, false));
  });
}

TEST(TmaPlanLaws, AgreesWhereRunTimeDecides) {
  check("variables", [] {
    Copy c;
    random_tensor(c, random_tile(c));
    c.stride.assign(c.size.size(), 1);
    for (size_t d = c.size.size(); d-- > 1;) c.stride[d - 1] = c.stride[d] * c.size[d];
    agrees(c, plan_tiles(c, true));
  });
}

}  // namespace
}  // namespace tw::lowering
