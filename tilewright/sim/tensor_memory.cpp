#include "tilewright/sim/tensor_memory.h"

#include <algorithm>
#include <cstring>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"

namespace tw::sim {
namespace {

template <class... Args>
[[noreturn]] void fault(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::fault, {}, tw::vformat(text, fmt::make_format_args(args...)));
}

}  // namespace

// --- allocation ---

std::string TensorAllocator::broken_rule(int columns) const {
  if (columns < 32 || columns > 512 || !is_power_of_two(columns))
    return tw::format("tcgen05.alloc of {} columns: the number must be a power of two in [32, 512]", columns);
  if (!permitted_) return "tcgen05.alloc after tcgen05.relinquish_alloc_permit";
  if (columns > largest_allowed_)
    return tw::format(
        "tcgen05.alloc of {} columns after one of {}: the number should not increase between allocations",
        columns, largest_allowed_);
  if (columns > static_cast<int>(owner_.size()))
    return tw::format("tcgen05.alloc of {} columns, but the machine has {}", columns, owner_.size());
  return "";
}

std::optional<int> TensorAllocator::lowest_free(int columns) const {
  for (int c = 0; c + columns <= static_cast<int>(owner_.size()); c += columns) {
    const auto begin = owner_.begin() + c, end = begin + columns;
    if (std::none_of(begin, end, [](int o) { return o >= 0; })) return c;
  }
  return std::nullopt;
}

std::optional<int> TensorAllocator::allocate(int columns) {
  if (const std::string broken = broken_rule(columns); !broken.empty()) fault("{}", broken);
  const std::optional<int> at = lowest_free(columns);
  if (!at) return std::nullopt;
  std::fill_n(owner_.begin() + *at, columns, *at);
  largest_allowed_ = columns;
  return at;
}

void TensorAllocator::release(int column, int columns) {
  for (const Range& r : live()) {
    if (r.column != column) continue;
    if (r.columns != columns) {
      fault("tcgen05.dealloc of {} columns at column {}, where {} were allocated", columns, column,
            r.columns);
    }
    std::fill_n(owner_.begin() + column, columns, -1);
    return;
  }
  fault("tcgen05.dealloc at column {}, where no allocation begins", column);
}

bool TensorAllocator::all_allocated(int column, int columns) const {
  int any = 0;
  for (int c = column; c < column + columns; ++c) any |= owner_[static_cast<size_t>(c)];
  return any >= 0;
}

std::vector<TensorAllocator::Range> TensorAllocator::live() const {
  std::vector<Range> ranges;
  for (int c = 0; c < static_cast<int>(owner_.size()); ++c) {
    int owner = owner_[static_cast<size_t>(c)];
    if (owner == c) ranges.push_back({c, 1});
    else if (owner >= 0) ++ranges.back().columns;
  }
  return ranges;
}

// --- shapes of ld and st ---

const char* name(TensorShape shape) {
  switch (shape) {
    case TensorShape::s32x32b: return ".32x32b";
    case TensorShape::s16x64b: return ".16x64b";
    case TensorShape::s16x128b: return ".16x128b";
    case TensorShape::s16x256b: return ".16x256b";
    case TensorShape::s16x32bx2: return ".16x32bx2";
  }
  return "?";
}

int TensorTransfer::registers() const {
  int each = shape == TensorShape::s16x128b ? 2 : shape == TensorShape::s16x256b ? 4 : 1;
  if (!is_power_of_two(num) || num * each > 128) fault("{} has no .x{}", name(shape), num);
  return num * each;
}

int TensorTransfer::columns() const {
  int each = 1;
  if (shape == TensorShape::s16x64b) each = 2;
  if (shape == TensorShape::s16x128b) each = 4;
  if (shape == TensorShape::s16x256b) each = 8;
  return num * each * (pack16 ? 2 : 1);
}

TensorAddress TensorTransfer::cell(int thread, int index) const {
  int lane = 0, word = 0, second = 0;
  switch (shape) {
    case TensorShape::s32x32b: lane = thread, word = index; break;
    case TensorShape::s16x64b: lane = thread % 2 * 8 + thread / 4, word = index * 2 + thread / 2 % 2; break;
    case TensorShape::s16x128b: lane = index % 2 * 8 + thread / 4, word = index / 2 * 4 + thread % 4; break;
    case TensorShape::s16x256b:
      lane = index / 2 % 2 * 8 + thread / 4, word = index / 4 * 8 + thread % 4 * 2 + index % 2;
      break;
    case TensorShape::s16x32bx2: lane = thread % 16, word = index, second = thread / 16 * half_offset; break;
  }
  return {lane, word * (pack16 ? 2 : 1) + second};
}

// --- the memory ---

namespace {
// Cells of which all are unwritten, kept for the host thread's next CTA: fresh pages cost more than most
// uses.
std::vector<std::vector<uint32_t>>& spare_cells() {
  thread_local std::vector<std::vector<uint32_t>> spare;
  return spare;
}
}  // namespace

TensorMemory::TensorMemory() {
  auto& spare = spare_cells();
  if (spare.empty()) {
    cells_.assign(static_cast<size_t>(kLanes) * kColumns, 0xffffffff);
  } else {
    cells_ = std::move(spare.back());
    spare.pop_back();
  }
}

TensorMemory::~TensorMemory() {
  constexpr size_t most = 8;
  const bool clean =
      std::all_of(written_.begin(), written_.end(), [](const auto& w) { return (w[0] | w[1]) == 0; });
  if (clean && allocator.live().empty() && spare_cells().size() < most)
    spare_cells().push_back(std::move(cells_));
}

void TensorMemory::append(const AccumulatorTile& d, const MatrixProduct& product) {
  MatrixUnit* idle = nullptr;
  for (auto& unit : units_) {
    if (unit->pending() && unit->tile() == d) return unit->append(d, product);
    if (unit->pending() && unit->tile().overlaps(d)) unit->flush();
    if (!unit->pending()) idle = unit.get();
  }
  if (!idle && units_.size() < kMaxUnits) idle = units_.emplace_back(std::make_unique<MatrixUnit>()).get();
  if (!idle) {
    flush();
    idle = units_.front().get();
  }
  idle->append(d, product);
}

bool TensorMemory::pending() const {
  return std::any_of(units_.begin(), units_.end(), [](const auto& unit) { return unit->pending(); });
}

void TensorMemory::flush() {
  for (auto& unit : units_) unit->flush();
}

// `count` lanes in one half of the memory.
void TensorMemory::mark(int lane, int count, int c) {
  const uint64_t mask = (uint64_t{1} << count) - 1;  // count <= 32
  written_[static_cast<size_t>(c)][lane / 64] |= mask << lane % 64;
}

void TensorMemory::check_columns(int first, int count) const {
  if (first + count > kColumns)
    fault("tensor memory columns {} to {} are beyond its {}", first, first + count - 1, kColumns);
  if (allocator.all_allocated(first, count)) return;
  for (int c = first; c < first + count; ++c) {
    if (!allocator.allocated(c)) fault("tensor memory column {} is not allocated", c);
  }
}

void TensorMemory::release(int first, int columns) {
  flush();
  allocator.release(first, columns);
  std::fill_n(written_.begin() + first, columns, std::array<uint64_t, 2>{});
  std::fill_n(column(first), static_cast<size_t>(columns) * kLanes, 0xffffffff);
}

void TensorMemory::check(TensorAddress base, const TensorTransfer& t, int warp, bool reads) const {
  if (base.lane < warp * 32 || base.lane + t.lanes() > warp * 32 + 32) {
    fault("lanes {} to {} of tensor memory: warp {} of a warpgroup can access lanes {} to {} only", base.lane,
          base.lane + t.lanes() - 1, warp, warp * 32, warp * 32 + 31);
  }
  if (base.lane % 16 != 0)
    not_modelled({}, "{} at lane {}, which is no multiple of 16", name(t.shape), base.lane);
  check_columns(base.column, t.columns());
  if (t.shape == TensorShape::s16x32bx2) {
    if (base.column + t.half_offset < 0) fault("tensor memory column {}", base.column + t.half_offset);
    check_columns(base.column + t.half_offset, t.columns());
  }
  if (!reads) return;
  if (t.shape == TensorShape::s32x32b) {
    bool all = true;
    for (int c = base.column; c < base.column + t.columns(); ++c) all &= warp_written(base.lane, c);
    if (all) return;
  }
  for (int i = 0; i < t.registers(); ++i) {
    for (int thread = 0; thread < 32; ++thread) {
      TensorAddress c = t.cell(thread, i);
      for (int second = 0; second <= (t.pack16 ? 1 : 0); ++second) {
        int lane = base.lane + c.lane, col = base.column + c.column + second;
        if (!written(lane, col))
          fault("tensor memory lane {}, column {} is read but nothing has written it", lane, col);
      }
    }
  }
}

void TensorMemory::load(TensorAddress base, const TensorTransfer& t, int warp,
                        std::span<uint32_t* const> registers) {
  flush();
  check(base, t, warp, true);
  for (size_t i = 0; i < registers.size(); ++i) {
    if (t.shape == TensorShape::s32x32b && !t.pack16) {
      std::memcpy(registers[i], column(base.column + static_cast<int>(i)) + base.lane, 128);
      continue;
    }
    for (int thread = 0; thread < 32; ++thread) {
      TensorAddress c = t.cell(thread, static_cast<int>(i));
      const uint32_t* cell = column(base.column + c.column) + base.lane + c.lane;
      registers[i][thread] = t.pack16 ? (cell[0] & 0xffff) | cell[kLanes] << 16 : cell[0];
    }
  }
}

void TensorMemory::store(TensorAddress base, const TensorTransfer& t, int warp,
                         std::span<const uint32_t* const> registers) {
  flush();
  check(base, t, warp, false);
  for (size_t i = 0; i < registers.size(); ++i) {
    if (t.shape == TensorShape::s32x32b && !t.pack16) {
      const int c = base.column + static_cast<int>(i);
      std::memcpy(column(c) + base.lane, registers[i], 128);
      mark(base.lane, 32, c);
      continue;
    }
    for (int thread = 0; thread < 32; ++thread) {
      TensorAddress c = t.cell(thread, static_cast<int>(i));
      int lane = base.lane + c.lane, col = base.column + c.column;
      uint32_t value = registers[i][thread];
      column(col)[lane] = t.pack16 ? value & 0xffff : value;
      mark(lane, 1, col);
      if (!t.pack16) continue;
      column(col + 1)[lane] = value >> 16;
      mark(lane, 1, col + 1);
    }
  }
}

void TensorMemory::copy(TensorAddress base, CopyShape shape, const OperandGeometry& source,
                        const std::byte* memory) {
  flush();
  if (base.lane != 0) not_modelled({}, "tcgen05.cp to lane {}", base.lane);
  check_columns(base.column, copy_columns(shape));
  for (int row = 0; row < copy_rows(shape); ++row) {
    int lanes[4] = {row, -1, -1, -1};
    if (shape == CopyShape::c64x128b_02_13) lanes[1] = row + 64;  // warps 0, 2 and 1, 3
    if (shape == CopyShape::c64x128b_01_23)
      lanes[0] = row + row / 32 * 32, lanes[1] = lanes[0] + 32;  // 0, 1 and 2, 3
    if (shape == CopyShape::c32x128b) lanes[1] = row + 32, lanes[2] = row + 64, lanes[3] = row + 96;
    for (int c = 0; c < copy_columns(shape); ++c) {
      uint32_t value = 0;
      uint32_t at = source.address(static_cast<uint32_t>(row), static_cast<uint32_t>(c / 4)) +
                    static_cast<uint32_t>(c % 4) * 4;
      std::memcpy(&value, memory + at, 4);
      for (int lane : lanes) {
        if (lane < 0) continue;
        column(base.column + c)[lane] = value;
        mark(lane, 1, base.column + c);
      }
    }
  }
}

AccumulatorTile TensorMemory::accumulator(TensorAddress base, int m, int n, DType type) {
  check_columns(base.column, n);
  AccumulatorTile t{column(base.column), kLanes, m, n, {}, type};
  // Table "Data Path Layout Organization", Tensor Memory Datapath Lane Alignment.
  bool half = m == 64;
  if (base.lane != 0 && !(half && base.lane == 16)) {
    fault("matrix D at lane {}: M = {} needs lane {}", base.lane, m, half ? "0 or 16" : "0");
  }
  for (int g = 0; g < m / 16; ++g) t.lanes[static_cast<size_t>(g)] = half ? g * 32 + base.lane : g * 16;
  return t;
}

AccumulatorTile TensorMemory::half_accumulator(TensorAddress base, int half, int n, DType type) {
  check_columns(base.column, n / 2);
  if (base.lane != 0) fault("matrix D at lane {}: M = 128 with .cta_group::2 needs lane 0", base.lane);
  AccumulatorTile t{column(base.column), kLanes, 64, n / 2, {}, type};
  for (int g = 0; g < 4; ++g) t.lanes[static_cast<size_t>(g)] = half * 64 + g * 16;
  return t;
}

void TensorMemory::read_operand(TensorAddress base, int lane, const AccumulatorTile& d,
                                std::span<std::byte> rows) {
  flush();
  check_columns(base.column, 8);
  if (base.lane != lane) {
    fault("matrix A at lane {} of tensor memory, but matrix D at lane {}: both need the same lanes",
          base.lane, lane);
  }
  for (int m = 0; m < d.m; ++m) {
    int at = d.lanes[static_cast<size_t>(m / 16)] + m % 16;
    for (int c = 0; c < 8; ++c) {
      if (!written(at, base.column + c)) {
        fault("matrix A: tensor memory lane {}, column {} is read but nothing has written it", at,
              base.column + c);
      }
      std::memcpy(rows.data() + m * 32 + c * 4, column(base.column + c) + at, 4);
    }
  }
}

std::optional<TensorAddress> TensorMemory::first_unwritten(const AccumulatorTile& tile, int first) const {
  std::array<uint64_t, 2> mask{};
  for (int g = 0; g < tile.m / 16; ++g) {
    int lane = tile.lanes[static_cast<size_t>(g)];
    mask[lane / 64] |= uint64_t{0xffff} << lane % 64;
  }
  uint64_t any = 0;
  for (int c = first; c < first + tile.n; ++c) {
    const auto& w = written_[static_cast<size_t>(c)];
    any |= (mask[0] & ~w[0]) | (mask[1] & ~w[1]);
  }
  if (any == 0) return std::nullopt;
  for (int c = first; c < first + tile.n; ++c) {
    for (int half = 0; half < 2; ++half) {
      uint64_t missing = mask[half] & ~written_[static_cast<size_t>(c)][half];
      if (missing != 0) return TensorAddress{half * 64 + std::countr_zero(missing), c};
    }
  }
  return std::nullopt;
}

void TensorMemory::mark_written(const AccumulatorTile& tile, int first,
                                const std::array<uint32_t, 4>& disabled_lanes) {
  std::array<uint64_t, 2> mask{};
  for (int g = 0; g < tile.m / 16; ++g) {
    int lane = tile.lanes[static_cast<size_t>(g)];
    mask[lane / 64] |= uint64_t{0xffff} << lane % 64;
  }
  for (int half = 0; half < 2; ++half) {
    mask[half] &= ~(disabled_lanes[2 * half] | uint64_t{disabled_lanes[2 * half + 1]} << 32);
    for (int c = first; c < first + tile.n; ++c) written_[static_cast<size_t>(c)][half] |= mask[half];
  }
}

std::optional<uint32_t> TensorMemory::cell(int lane, int c) {
  flush();
  if (!written(lane, c)) return std::nullopt;
  return column(c)[lane];
}

void TensorMemory::set_cell(int lane, int c, uint32_t value) {
  flush();
  column(c)[lane] = value;
  mark(lane, 1, c);
}

}  // namespace tw::sim
