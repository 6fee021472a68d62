#include "tilewright/sim/matrix_op.h"

#include <algorithm>
#include <array>
#include <span>

#include "tilewright/sim/grid.h"
#include "tilewright/sim/program.h"

namespace tw::sim {
namespace {

template <class... Args>
[[noreturn]] void fault(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::fault, {}, tw::vformat(text, fmt::make_format_args(args...)));
}

// "(m 3, k 17)" of the byte `at` in chunk (row, column).
std::string element(const OperandGeometry& g, char letter, int row, int column, uint32_t at) {
  int e = column * chunk_elements(g.type) + static_cast<int>(at) * 8 / std::max(8, bits(g.type));
  const char* extent = letter == 'A' ? "m" : "n";
  return g.mn_major ? tw::format("({} {}, k {})", extent, e, row)
                    : tw::format("({} {}, k {})", extent, row, e);
}

// Bytes of a chunk that hold elements: 6- and 4-bit elements leave a gap.
uint32_t used_bytes(DType type) { return bits(type) < 8 ? static_cast<uint32_t>(bits(type)) * 2 : 16; }

}  // namespace

void fail(const AsyncOp& op, ErrorKind kind, const std::string& message) {
  std::string text = message;
  SourceLoc loc;
  const auto& source = op.warp->cluster().grid.program.code.source;
  if (const ptx::Instruction* inst = op.pc < source.size() ? source[op.pc] : nullptr) {
    loc = inst->loc;
    text += tw::format("\n  at {}", inst->text());
    if (inst->line != 0) text += tw::format(" (line {} of the PTX)", inst->line);
  }
  text += "\n  issued by " + op.warp->where(op.lanes);
  throw Error(kind, loc, std::move(text));
}

MatrixOperand place_in_shared(const Cta& cta, const SharedMatrix& matrix, DType type, bool mn_major,
                              int extents, int k, char letter) {
  OperandGeometry g = shared_operand(matrix, type, mn_major, extents, k);
  // Shared addresses start at kSharedReserved, a multiple of every swizzle pattern.
  static_assert(kSharedReserved % 1024 == 0);
  bool inside = g.start >= kSharedReserved;
  if (inside) {
    g.start -= kSharedReserved;
    if (extent(g).end > cta.shared.size()) {
      for (int r = 0; r < g.rows && inside; ++r) {
        for (int c = 0; c < g.columns && inside; ++c) {
          inside = cta.shared.contains(g.address(static_cast<uint32_t>(r), static_cast<uint32_t>(c)), 16);
        }
      }
    }
  }
  if (!inside) {
    fault(
        "matrix {} at shared address {:#x} ({}, leading stride {}, stride {}) reaches outside the CTA's "
        "shared memory, "
        "{:#x} to {:#x}",
        letter, matrix.start, name(matrix.swizzle), matrix.leading_stride, matrix.stride, kSharedReserved,
        kSharedReserved + cta.shared.size());
  }
  return {g, cta.shared.data()};
}

static void check_written(const Cta& cta, const OperandGeometry& g, char letter) {
  const WrittenBytes& written = cta.shared.written();
  if (written.all_written()) return;
  ByteRange range = extent(g);
  range.end = std::min(range.end, cta.shared.size());
  if (written.written(range.begin, range.end - range.begin)) return;
  for (int r = 0; r < g.rows; ++r) {
    for (int c = 0; c < g.columns; ++c) {
      uint32_t at = g.address(static_cast<uint32_t>(r), static_cast<uint32_t>(c)), used = used_bytes(g.type);
      if (written.written(at, used)) continue;
      auto missing = static_cast<uint32_t>(written.first_unwritten(at, used));
      fault("matrix {}: element {} is read but nothing has written it: {} (offset {} of shared memory{})",
            letter, element(g, letter, r, c, missing - at), cta.name_of_shared(missing), missing,
            cta.cluster.ctas.size() > 1 ? tw::format(" of CTA rank {}", cta.rank) : "");
    }
  }
}

void check_read(const AsyncOp& op, const Cta& cta, const OperandGeometry& g, char letter) {
  check_written(cta, g, letter);
  if (!cta.cluster.observer()) return;
  // Chunks that lie side by side are one stretch.
  const uint32_t used = used_bytes(g.type);
  std::array<Stretch, 64> stretches;
  size_t count = 0;
  const auto tell = [&] {
    cta.cluster.touches(op, AccessKind::read, cta, std::span(stretches).first(count));
    count = 0;
  };
  Stretch last{0, 0};
  g.each_address([&](uint32_t at) {
    if (at == last.begin + last.bytes) {
      last.bytes += used;
    } else if (at + used == last.begin) {
      last = {at, last.bytes + used};
    } else {
      if (last.bytes != 0) stretches[count++] = last;
      if (count == stretches.size()) tell();
      last = {at, used};
    }
  });
  stretches[count++] = last;
  tell();
}

}  // namespace tw::sim
