#include <array>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/layout/constructors.h"

namespace tw {
namespace {

using namespace axis;

struct ShapeFacts {
  std::string_view name;
  int64_t columns;  // 32-bit columns at .x1
  int64_t max_num;
};

constexpr std::array<ShapeFacts, 4> shape_facts = {
    {{"32x32b", 1, 128}, {"16x64b", 2, 128}, {"16x128b", 4, 64}, {"16x256b", 8, 32}}};

const ShapeFacts& facts(Tcgen05Shape s) { return shape_facts[static_cast<size_t>(s)]; }

int64_t per_column(DType element) {
  const int b = bits(element);
  if (b > 32 || 32 % b != 0)
    user_error({}, "{} does not pack into 32-bit columns of tensor memory", name(element));
  return 32 / b;
}

}  // namespace

std::string_view name(Tcgen05Shape shape) { return facts(shape).name; }

int64_t tcgen05_num(Tcgen05Shape shape, DType element, int64_t columns) {
  const ShapeFacts& f = facts(shape);
  const int64_t width = f.columns * per_column(element);
  if (columns % width != 0 || !is_power_of_two(columns / width) || columns / width > f.max_num)
    user_error({}, "tcgen05.{} moves {} columns of {} times 1, 2, 4, ..., {}; {} columns are not among them",
               f.name, width, name(element), f.max_num, columns);
  return columns / width;
}

TileLayout tcgen05_atom_layout(Tcgen05Shape shape, DType element, int64_t rows, int64_t columns) {
  const int64_t num = tcgen05_num(shape, element, columns);
  const int64_t e = per_column(element);
  const bool full_lanes = shape == Tcgen05Shape::s32x32b;
  if (rows != 128 && (rows != 64 || full_lanes))
    user_error({}, "tcgen05.{} of a warpgroup covers {} rows, not {}", name(shape),
               full_lanes ? "128" : "64 or 128", rows);
  if (full_lanes) return row_per_thread_layout(columns);

  // Registers of one issue, per lane: its 16 rows of `columns` words over 32 lanes.
  const int64_t registers = facts(shape).columns * num / 2;
  std::vector<Iter> iters = {{4, 1, wid_in_wg}};
  if (rows == 128) iters.push_back({2, registers * e, m});
  auto add = [&](std::initializer_list<Iter> more) { iters.insert(iters.end(), more); };
  if (shape == Tcgen05Shape::s16x64b) add({{2, 1, laneid}, {8, 4, laneid}, {num, e, m}, {2, 2, laneid}});
  else if (shape == Tcgen05Shape::s16x128b) add({{2, e, m}, {8, 4, laneid}, {num, 2 * e, m}, {4, 1, laneid}});
  else add({{2, 2 * e, m}, {8, 4, laneid}, {num, 4 * e, m}, {4, 1, laneid}, {2, e, m}});
  add({{e, 1, m}});
  return TileLayout(std::move(iters)).canonicalize();
}

int64_t data_path_rows(DataPath path) {
  switch (path) {
    case DataPath::A:
    case DataPath::D: return 128;
    case DataPath::G: return 32;
    default: return 64;
  }
}

DataPath data_path_of(int64_t rows, int cta_group, bool ws, bool sparse_a) {
  if (cta_group == 1 && rows == 128) return DataPath::D;
  if (cta_group == 1 && rows == 64) return ws ? DataPath::E : DataPath::F;
  if (cta_group == 1 && rows == 32 && ws) return DataPath::G;
  if (cta_group == 2 && !ws && rows == 128) return sparse_a ? DataPath::C : DataPath::B;
  if (cta_group == 2 && !ws && rows == 256) return DataPath::A;
  user_error({}, "tcgen05.mma has no M = {} with cta_group::{}{} (PTX ISA, Data Path Layout Organization)",
             rows, cta_group, ws ? " and .ws" : "");
}

TileLayout tmem_datapath_layout(DataPath path, int64_t columns, int64_t lane_offset) {
  const bool half = path == DataPath::C || path == DataPath::F;
  if (lane_offset != 0 && !(half && lane_offset == 16))
    user_error({}, "tensor-memory lane offset {}: only data paths C and F may start at lane 16", lane_offset);
  return tmem_mma_operand_layout(path, columns, columns).with_offset({{TLane, lane_offset}});
}

TileLayout tmem_mma_operand_layout(DataPath path, int64_t columns, int64_t n) {
  const int64_t parts = path == DataPath::B || path == DataPath::E ? 2 : path == DataPath::G ? 4 : 1;
  if (n < 1 || columns % n != 0) user_error({}, "{} columns are no multiple of N = {}", columns, n);
  if (n % parts != 0)
    user_error({}, "this data path splits the columns in {}; N = {} is no multiple", parts, n);
  const int64_t rows = data_path_rows(path), width = n / parts;
  std::vector<Iter> iters;
  if (path == DataPath::C || path == DataPath::F) iters = {{4, 32, TLane}, {16, 1, TLane}};
  else iters = {{rows, 1, TLane}};
  iters.insert(iters.end(), {{columns / n, width, TCol}, {parts, rows, TLane}, {width, 1, TCol}});
  return TileLayout(std::move(iters)).canonicalize();
}

TileLayout sf_tmem_layout(int64_t rows, int64_t scales, int64_t scales_per_mma) {
  if (rows < 32 || rows % 32 != 0)
    user_error({}, "scale factors come in 32 rows a lane partition, not {}", rows);
  if (scales_per_mma != 1 && scales_per_mma != 2 && scales_per_mma != 4)
    user_error({}, "an MMA takes 1, 2 or 4 scales a row, not {}", scales_per_mma);
  if (scales < 1 || scales % scales_per_mma != 0 || (scales > 4 && scales % 4 != 0))
    user_error({}, "{} scales a row do not fill 32-bit columns of {} an MMA", scales, scales_per_mma);
  const int64_t groups = rows / 32, in_column = scales < 4 ? scales : 4;
  return TileLayout({{groups, 4, TCol},
                     {32, 1, TLane},
                     {scales / in_column, 4 * groups, TCol},
                     {in_column, 1, TCol}},
                    {{4, 32, TLane}})
      .canonicalize();
}

}  // namespace tw
