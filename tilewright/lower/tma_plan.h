#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/ir/kernel.h"
#include "tilewright/layout/layout.h"
#include "tilewright/layout/swizzle.h"
#include "tilewright/lower/compiled.h"

// From "copy this part of a tensor to or from that part of shared memory" to TMA instructions: one tensor map
// and, for each instruction, the coordinates of its box and its place in shared memory. Pure: nothing here
// emits code.
namespace tw::lowering {

// A box of a tensor in global memory. Sizes, strides and offsets may be known at run time only.
struct GlobalRegion {
  struct Dim {
    ir::Expr size;    // elements of the tensor along this dimension
    ir::Expr stride;  // elements between neighbours
    ir::Expr offset;  // where the region begins; it may reach outside the tensor
    int64_t extent = 1;
  };
  std::vector<Dim> dims;  // row-major order: the last is usually the contiguous one
};

// A box of a tile in shared memory. Both regions are walked row-major; their dimensions need not agree.
struct SharedRegion {
  struct Dim {
    int64_t size = 1;
    ir::Expr offset;  // inside the tile
    int64_t extent = 1;
  };
  Layout layout;
  std::vector<Dim> dims;
};

enum class TmaDirection : uint8_t { load, store };  // load: global to shared
enum class OobFill : uint8_t { zero, nan };

struct TmaOptions {
  TmaDirection direction = TmaDirection::load;
  std::optional<OobFill> oob = std::nullopt;  // what a load reads outside the tensor; zero unless said
  TensorMap::L2Promotion l2 = TensorMap::L2Promotion::b128;
  int64_t box_rows = 256;  // the most a box may reach in any but its innermost dimension
  // Where one box cannot cover what lies together in shared memory, use smaller boxes and more instructions.
  // Otherwise that is a reason not to use TMA.
  bool several = true;
};

struct TmaInstruction {
  std::vector<ir::Expr> coordinates;  // i32, innermost first, in elements of the plan's type
  ir::Expr shared_offset;             // i32, bytes from the start of the shared buffer
};

// A tensor map in the order of cuTensorMapEncodeTiled, innermost dimension first, and the instructions that
// use it. Element strides are 1, nothing is interleaved.
struct TmaPlan {
  DType dtype = DType::f16;  // may be wider than the tile's: u8 moved as u16
  std::vector<ir::Expr> dims;
  std::vector<ir::Expr> strides;  // i64, bytes, of dims 1 and up
  std::vector<uint32_t> box;
  SwizzleMode swizzle = SwizzleMode::none;
  bool nan_fill = false;
  TensorMap::L2Promotion l2 = TensorMap::L2Promotion::b128;

  std::vector<TmaInstruction> instructions;   // together they move every element of the region once
  uint32_t shared_align = 128;                // bytes, that the shared buffer's address needs
  std::vector<ir::Requirement> requirements;  // what only run-time sizes decide

  // What one instruction adds to the transaction count of its mbarrier: whole boxes, also where they reach
  // outside the tensor.
  int64_t box_bytes() const;
  int64_t bytes() const { return box_bytes() * static_cast<int64_t>(instructions.size()); }
};

// The plan, or the reason why there is none: "rule: what was found". The rules are
//   dtype, shape, shared-layout, shared-slice, shared-swizzle, shared-chain, shared-alignment, group-global,
//   coordinate, global-shape, rank, global_dim, global_stride_range, global_stride_alignment, inner_stride,
//   inner_box_bytes, swizzle_inner_box, inner_coordinate, inner_size, oob_direction, nan_oob_dtype
// after the limits of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object Management"), of
// cp.async.bulk.tensor (PTX ISA) and, for inner_coordinate and inner_size, of an H200.
using TmaPlanOr = std::variant<TmaPlan, std::string>;
TmaPlanOr plan_tma(DType dtype, const GlobalRegion& global, const SharedRegion& shared,
                   const TmaOptions& options = {});

// The same for a tile of a tensor (dense, row-major) and one of a shared buffer of the same type.
TmaPlanOr plan_tma(const ir::Tile& global, const ir::Tile& shared, const TmaOptions& options = {});

}  // namespace tw::lowering
