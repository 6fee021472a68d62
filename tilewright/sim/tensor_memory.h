#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewright/sim/matrix_multiply.h"

// Tensor memory of one SM ("Tensor Memory", tcgen05): 128 lanes by 512 columns of 32-bit cells, each written
// or not. Errors are Error(fault) without a location; the instruction's handler adds it.
namespace tw::sim {

// "Tensor Memory Addressing": lane in bits 31-16, column in bits 15-0.
struct TensorAddress {
  int lane = 0, column = 0;
  static TensorAddress decode(uint32_t bits) {
    return {static_cast<int>(bits >> 16), static_cast<int>(bits & 0xffff)};
  }
  uint32_t encode() const { return static_cast<uint32_t>(lane) << 16 | static_cast<uint32_t>(column); }
};

// The columns a CTA may allocate and has allocated ("tcgen05.alloc, tcgen05.dealloc,
// tcgen05.relinquish_alloc_permit").
class TensorAllocator {
 public:
  explicit TensorAllocator(int columns) : owner_(static_cast<size_t>(columns), -1) {}
  // First column of the lowest free range; nothing if the caller has to wait. A fault if `columns` is no
  // power of two in [32, 512], is larger than in an earlier allocation, or follows a relinquish.
  std::optional<int> allocate(int columns);
  bool refuses(int columns) const { return !broken_rule(columns).empty(); }  // allocate() would be a fault
  // For a number that it does not refuse.
  bool has_room(int columns) const { return lowest_free(columns).has_value(); }
  void release(int column, int columns);  // a fault unless this is an allocation
  void relinquish() { permitted_ = false; }
  bool allocated(int column) const { return owner_[static_cast<size_t>(column)] >= 0; }
  bool all_allocated(int column, int columns) const;
  struct Range {
    int column, columns;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> live() const;  // what a kernel must have freed when it ends

 private:
  std::string broken_rule(int columns) const;  // by an allocation; "" if none
  std::optional<int> lowest_free(int columns) const;
  std::vector<int> owner_;  // of each column: the first column of its allocation, or -1
  int largest_allowed_ = 512;
  bool permitted_ = true;
};

// Shapes of tcgen05.ld and tcgen05.st ("Data Movement Shape").
enum class TensorShape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };
const char* name(TensorShape shape);  // ".32x32b", ...

struct TensorTransfer {
  TensorShape shape = TensorShape::s32x32b;
  int num = 1;          // .x1 to .x128
  bool pack16 = false;  // .pack::16b, .unpack::16b: two adjacent columns' low halves in one register
  int half_offset = 0;  // immHalfSplitoff of .16x32bx2, columns

  int registers() const;  // Tables 49 and 50; a fault if the table has no entry
  int lanes() const { return shape == TensorShape::s32x32b ? 32 : 16; }
  int columns() const;  // of one access (.16x32bx2 makes two)
  // Lane and column of register `index` of thread `thread`, from the base address (figures 183 to 187).
  TensorAddress cell(int thread, int index) const;
};

// Shapes of tcgen05.cp.
enum class CopyShape : uint8_t { c128x256b, c128x128b, c64x128b_02_13, c64x128b_01_23, c32x128b };

class TensorMemory {
 public:
  static constexpr int kLanes = 128, kColumns = 512;
  TensorMemory();
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  TensorAllocator allocator{kColumns};

  // Products on disjoint accumulators are pending side by side: kernels issue those of several consumers in
  // turn, and each chain still passes over its accumulator as a whole.
  void append(const AccumulatorTile& d, const MatrixProduct& product);
  bool pending() const;
  void flush();  // before any other access to cells

  void release(int column, int columns);  // the cells become unwritten

  // tcgen05.ld, tcgen05.st of warp `warp` of its warpgroup (0 to 3). registers[i] is row i: 32 threads.
  void load(TensorAddress base, const TensorTransfer& t, int warp, std::span<uint32_t* const> registers);
  void store(TensorAddress base, const TensorTransfer& t, int warp,
             std::span<const uint32_t* const> registers);
  // The checks of load and store alone: "Access restrictions", allocation; and for loads that all cells are
  // written.
  void check(TensorAddress base, const TensorTransfer& t, int warp, bool reads) const;

  // tcgen05.cp of a matrix in shared memory; `source` has the shape's rows and one or two chunks a row.
  void copy(TensorAddress base, CopyShape shape, const OperandGeometry& source, const std::byte* memory);
  static int copy_rows(CopyShape shape) {
    return shape <= CopyShape::c128x128b ? 128 : shape == CopyShape::c32x128b ? 32 : 64;
  }
  static int copy_columns(CopyShape shape) { return shape == CopyShape::c128x256b ? 8 : 4; }

  // The tile of an m x n accumulator at `base` of tcgen05.mma.cta_group::1 without .ws ("Data Path Layout
  // Organization", layouts D and F), and a fault if its lanes or columns do not fit.
  AccumulatorTile accumulator(TensorAddress base, int m, int n, DType type);
  // Layout B, the 2x2 data path of M = 128 with cta_group::2: this CTA's 64 rows of columns [0, n / 2) in
  // lanes 0 to 63 (half 0) or of columns [n / 2, n) in lanes 64 to 127 (half 1), n / 2 columns of tensor
  // memory each.
  AccumulatorTile half_accumulator(TensorAddress base, int half, int n, DType type);
  // Rows of A in tensor memory as 32 bytes each, in the same lanes as D's: `m` x 8 cells from `base`, whose
  // lane must be `lane`.
  void read_operand(TensorAddress base, int lane, const AccumulatorTile& d, std::span<std::byte> rows);

  // The first cell of the tile that nothing has written.
  std::optional<TensorAddress> first_unwritten(const AccumulatorTile& tile, int column) const;
  void mark_written(const AccumulatorTile& tile, int column, const std::array<uint32_t, 4>& disabled_lanes);

  // For tests and debuggers.
  std::optional<uint32_t> cell(int lane, int column);
  void set_cell(int lane, int column, uint32_t value);

 private:
  uint32_t* column(int c) { return cells_.data() + static_cast<size_t>(c) * kLanes; }
  bool written(int lane, int c) const { return written_[static_cast<size_t>(c)][lane / 64] >> lane % 64 & 1; }
  void mark(int lane, int count, int c);
  bool warp_written(int lane, int c) const {  // the 32 lanes from `lane`
    return static_cast<uint32_t>(written_[static_cast<size_t>(c)][lane / 64] >> lane % 64) == ~uint32_t{0};
  }
  void check_columns(int first, int count) const;

  static constexpr size_t kMaxUnits = 4;
  std::vector<std::unique_ptr<MatrixUnit>> units_;  // what is pending in them is disjoint
  std::vector<uint32_t> cells_;  // [column][lane]: a warp's 32 lanes of one column are contiguous
  std::array<std::array<uint64_t, 2>, kColumns> written_{};
};

}  // namespace tw::sim
