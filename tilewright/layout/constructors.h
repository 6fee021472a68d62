#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tilewright/base/dtype.h"
#include "tilewright/layout/layout.h"

namespace tw {

// Layouts that the hardware fixes. Register fragments use `laneid` (and `wid_in_wg` for a warpgroup) for the
// thread, and `m` for the element in the thread's 32-bit registers, which hold 32/bits of them, lowest first.
// A wrong shape or type is a user error that names those there are.

// --- Shared memory ---------------------------------------------------------------------------------------

// The logical shape of a swizzle atom: 8 rows of the swizzle's width.
Shape mma_shared_atom_shape(DType element, SwizzleMode mode);
// Which dimension of an operand is contiguous: K, or M (of A) or N (of B).
enum class Major : uint8_t { k, mn };
// A tile [..., rows, K] as wgmma and tcgen05.mma read it ("Canonical Layouts"). K-major: atoms follow one
// another along the rows, then along K, then along the outer dimensions; rows are a multiple of 8, K of the
// atom's width. MN-major: the same with rows and K exchanged.
Layout mma_shared_layout(DType element, SwizzleMode mode, std::span<const int64_t> shape,
                         Major major = Major::k);

// --- Warp and warpgroup fragments ------------------------------------------------------------------------

// mma.m16n8kK ("Matrix Fragments for mma.m16n8k16" and neighbours): A (16, k), B (k, 8), C and D (16, 8).
TileLayout mma_a_fragment(DType element, int64_t k);
TileLayout mma_b_fragment(DType element, int64_t k);
TileLayout mma_accumulator_fragment();  // 32-bit elements

// ldmatrix and stmatrix .m8n8.xN.b16 ("Warp-level matrix load instruction: ldmatrix"): (matrices, 8, 8) of
// 16-bit elements, matrices 1, 2 or 4; lane 8i+r holds the address of row r of matrix i.
TileLayout ldmatrix_fragment(int64_t matrices, bool transposed = false);

// wgmma.mma_async.m64nNkK ("Register Fragments"): D is (64, n) of 32-bit elements, A is (64, 256/bits).
TileLayout wgmma_accumulator_fragment(int64_t n);
TileLayout wgmma_a_fragment(DType element);

// One row a thread of the warpgroup: (128, columns), thread r holds row r.
TileLayout row_per_thread_layout(int64_t columns, int64_t rows = 128);

// --- Tensor memory ---------------------------------------------------------------------------------------

// tcgen05.ld / .st shapes ("Matrix fragments for shape .32x32b" and neighbours).
enum class Tcgen05Shape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b };
std::string_view name(Tcgen05Shape shape);
// Registers of a warpgroup for a (rows, columns) tile. 32x32b: 128 rows; the others 64, or 128 when the
// instruction is issued twice, for the lower and upper 16 lanes of each warp (the second issue's registers
// follow the first's). Elements of 16 bits lie two a 32-bit column. columns must be the shape's width times a
// legal .num.
TileLayout tcgen05_atom_layout(Tcgen05Shape shape, DType element, int64_t rows, int64_t columns);
// The .num qualifier of that instruction.
int64_t tcgen05_num(Tcgen05Shape shape, DType element, int64_t columns);

// Where tcgen05.mma puts the part of D that one CTA holds ("Data Path Layout Organization"), 32-bit elements:
//
//   A  M = 256, cta_group::2          128 rows
//   B  M = 128, cta_group::2           64 rows, columns in two halves
//   C  M = 128, cta_group::2, sparse   64 rows
//   D  M = 128                        128 rows
//   E  M = 64, .ws                     64 rows, columns in two halves
//   F  M = 64                          64 rows
//   G  M = 32, .ws                     32 rows, columns in four quarters
enum class DataPath : uint8_t { A, B, C, D, E, F, G };
int64_t data_path_rows(DataPath path);
DataPath data_path_of(int64_t m, int cta_group, bool ws, bool sparse_a = false);
// Over (rows, columns). lane_offset: 0, or 16 for C and F, which may use the upper half of each warp's lanes.
TileLayout tmem_datapath_layout(DataPath path, int64_t columns, int64_t lane_offset = 0);

// D of several tcgen05.mma side by side in tensor memory: (rows, columns), n columns an instruction.
TileLayout tmem_mma_operand_layout(DataPath path, int64_t columns, int64_t n);

// Scale factors in tensor memory ("Block Scaling"): (rows, scales) bytes, TCol counting bytes. A 32-bit
// column holds four scales of a row, lane r mod 32 its row; the next 32 rows stand in the next column, and
// all four lane partitions hold a copy.
TileLayout sf_tmem_layout(int64_t rows, int64_t scales, int64_t scales_per_mma = 4);

// --- Partitioned scratchpads -----------------------------------------------------------------------------

// kinds has one letter a dimension, P (partition) or F (free); both are row-major. A single P dimension above
// 128 is split, its higher part becoming the slowest free dimension.
TileLayout partitioned_layout(std::string_view kinds, std::span<const int64_t> shape);
// The free coordinate split into banks of 512 elements.
TileLayout to_banks(const TileLayout& layout);

// --- Permutation through shuffles ------------------------------------------------------------------------

// How a warp moves a tile from `source` to `target`, two plain layouts of the same elements in shared memory,
// without bank conflicts: in step r, lane l takes element l + 32*(r XOR (l >> (5-k))), so the k highest bits
// of the lane shuffle its steps. The smallest such k; 0 when nothing moves; nullopt when none helps, or when
// an element is narrower than a bank, which then serves several lanes. A user error unless the elements are
// 32 times a power of two up to 32.
std::optional<int> conflict_free_xor(const TileLayout& source, const TileLayout& target, int element_bytes);

}  // namespace tw
