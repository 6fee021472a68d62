#include "tilewright/sim/wgmma_fragment.h"

#include <cstring>

namespace tw::sim {
namespace {

constexpr int kRows = 64;

typedef uint32_t Four __attribute__((vector_size(16), aligned(4), may_alias));

// Four registers' threads: thread 4 * r + c holds row r, column c of an 8x4 block. Transposes rows [r, r +
// 4).
struct Block {
  Four v[4];
};
inline Block transpose(Block b) {
  Four a = __builtin_shufflevector(b.v[0], b.v[2], 0, 4, 1, 5),
       c = __builtin_shufflevector(b.v[0], b.v[2], 2, 6, 3, 7);
  Four d = __builtin_shufflevector(b.v[1], b.v[3], 0, 4, 1, 5),
       e = __builtin_shufflevector(b.v[1], b.v[3], 2, 6, 3, 7);
  return {{__builtin_shufflevector(a, d, 0, 4, 1, 5), __builtin_shufflevector(a, d, 2, 6, 3, 7),
           __builtin_shufflevector(c, e, 0, 4, 1, 5), __builtin_shufflevector(c, e, 2, 6, 3, 7)}};
}

// Calls f(register, column, row) for each register of 32-bit elements: it holds rows row + thread / 4 and
// columns column + 2 * (thread % 4).
template <class F>
void each_register(int n, int warp, F f) {
  for (int i = 0; i < n / 2; ++i) f(i, i / 4 * 8 + i % 2, warp * 16 + i / 2 % 2 * 8);
}

void to_tile(const uint32_t* reg, uint32_t* tile, int column, int row) {
  for (int half = 0; half < 8; half += 4) {
    Block b;
    for (int r = 0; r < 4; ++r) b.v[r] = *reinterpret_cast<const Four*>(reg + 4 * (half + r));
    b = transpose(b);
    for (int c = 0; c < 4; ++c)
      *reinterpret_cast<Four*>(tile + (column + 2 * c) * kRows + row + half) = b.v[c];
  }
}

void from_tile(uint32_t* reg, const uint32_t* tile, int column, int row) {
  for (int half = 0; half < 8; half += 4) {
    Block b;
    for (int c = 0; c < 4; ++c)
      b.v[c] = *reinterpret_cast<const Four*>(tile + (column + 2 * c) * kRows + row + half);
    b = transpose(b);
    for (int r = 0; r < 4; ++r) *reinterpret_cast<Four*>(reg + 4 * (half + r)) = b.v[r];
  }
}

}  // namespace

int wgmma_accumulator_registers(DType type, int n) { return type == DType::f16 ? n / 4 : n / 2; }

void wgmma_gather(DType type, int n, int warp, std::span<const uint32_t* const> registers, uint32_t* tile) {
  uint32_t half[32];
  each_register(n, warp, [&](int i, int column, int row) {
    if (type != DType::f16) return to_tile(registers[static_cast<size_t>(i)], tile, column, row);
    // Two f16 of adjacent columns share register i / 2.
    const uint32_t* packed = registers[static_cast<size_t>(i / 2)];
    for (int t = 0; t < 32; ++t) half[t] = i % 2 == 0 ? packed[t] & 0xffff : packed[t] >> 16;
    to_tile(half, tile, column, row);
  });
}

void wgmma_scatter(DType type, int n, int warp, const uint32_t* tile, std::span<uint32_t* const> registers) {
  uint32_t half[32];
  each_register(n, warp, [&](int i, int column, int row) {
    if (type != DType::f16) return from_tile(registers[static_cast<size_t>(i)], tile, column, row);
    from_tile(half, tile, column, row);
    uint32_t* packed = registers[static_cast<size_t>(i / 2)];
    for (int t = 0; t < 32; ++t) packed[t] = i % 2 == 0 ? half[t] : packed[t] | half[t] << 16;
  });
}

void wgmma_gather_a(int warp, std::span<const uint32_t* const> registers, std::byte* rows) {
  for (int i = 0; i < 4; ++i) {
    for (int t = 0; t < 32; ++t) {
      int row = warp * 16 + t / 4 + i % 2 * 8, byte = t % 4 * 4 + i / 2 * 16;
      std::memcpy(rows + row * 32 + byte, &registers[static_cast<size_t>(i)][t], 4);
    }
  }
}

}  // namespace tw::sim
