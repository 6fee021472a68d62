#include "tilewright/sim/tensor_box.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <cstring>
#include <vector>

namespace tw::sim {
namespace {

using Type = TensorMapSpec::Type;
using Swizzle = TensorMapSpec::Swizzle;

// PTX ISA, "Swizzling Modes": the tables give, for each line of 128 bytes, the order of its 16-byte cells.
// The line is counted from the boundary at which the pattern repeats.
uint32_t swizzled(Swizzle s, uint32_t address) {
  const uint32_t line = address / 128, cell = address % 128 / 16;
  static const uint32_t pattern128[8][8] = {
      {0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
      {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2}, {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
  const uint32_t repeat = s == Swizzle::b128 ? 8 : s == Swizzle::b64 ? 4 : s == Swizzle::b32 ? 2 : 1;
  // The smaller patterns are the first rows of the largest.
  return line * 128 + pattern128[line % repeat][cell] * 16 + address % 16;
}

struct Scene {
  TensorMapSpec map;
  Coordinates at{};
  uint32_t address = 0;
  std::vector<std::byte> memory;
};

// Calls f(byte of the box in shared memory, byte of the tensor's memory or -1) for every byte of the box.
template <class F>
void each_byte(const Scene& s, F f) {
  const uint32_t element = s.map.element_bytes();
  std::array<uint32_t, kMaxTensorRank> index{};
  for (uint32_t linear = 0; linear < s.map.box_bytes() / element; ++linear) {
    uint32_t rest = linear;
    for (uint32_t i = 0; i < s.map.rank; ++i)
      index[i] = rest % s.map.box_elements(i), rest /= s.map.box_elements(i);
    bool inside = true;
    int64_t offset = 0;
    for (uint32_t i = 0; i < s.map.rank; ++i) {
      const int64_t c = s.at[i] + int64_t{index[i]} * (i == 0 ? 1 : s.map.element_strides[i]);
      inside = inside && c >= 0 && c < static_cast<int64_t>(s.map.dims[i]);
      offset += c * static_cast<int64_t>(s.map.strides[i]);
    }
    // Every row begins a span of the swizzle.
    const uint32_t row = linear / s.map.box[0], column = linear % s.map.box[0];
    const uint32_t offset_in_tile =
        row * std::max(s.map.row_bytes(), s.map.swizzle_bytes()) + column * element;
    for (uint32_t b = 0; b < element; ++b) {
      const uint32_t place = swizzled(s.map.swizzle, s.address + offset_in_tile + b) - s.address;
      f(place, inside ? offset + b : -1);
    }
  }
}

Scene scene() {
  Scene s;
  TensorMapSpec& m = s.map;
  m.type = *rc::gen::element(Type::u8, Type::u16, Type::f16, Type::u32, Type::f32, Type::u64);
  m.rank = *rc::gen::inRange<uint32_t>(1, 6);
  m.swizzle = static_cast<Swizzle>(*rc::gen::inRange(0, 4));
  const bool narrow = m.swizzle != Swizzle::none && *rc::gen::inRange(0, 3) == 0;
  const uint32_t row = m.swizzle == Swizzle::none ? 16 * *rc::gen::inRange<uint32_t>(1, 6)
                       : narrow ? 16 * *rc::gen::inRange<uint32_t>(1, m.swizzle_bytes() / 16 + 1)
                                : m.swizzle_bytes();
  m.box[0] = row / m.element_bytes();
  m.strides[0] = m.element_bytes();
  uint64_t stride = 0;
  for (uint32_t i = 0; i < m.rank; ++i) {
    m.dims[i] = *rc::gen::inRange<uint64_t>(1, i == 0 ? 2 * m.box[0] : 6);
    if (i == 1) stride = (m.dims[0] * m.element_bytes() + 15) / 16 * 16;
    if (i > 0) {
      m.strides[i] = stride + 16 * *rc::gen::inRange<uint64_t>(0, 2);
      stride = m.strides[i] * m.dims[i];
      m.box[i] = *rc::gen::inRange<uint32_t>(1, i < 3 ? 6 : 3);
      m.element_strides[i] = *rc::gen::inRange<uint32_t>(1, 4);
    }
    s.at[i] =
        *rc::gen::inRange<int32_t>(-static_cast<int32_t>(m.box[i]), static_cast<int32_t>(m.dims[i]) + 1);
  }
  s.address = 1024 + 128 * *rc::gen::inRange<uint32_t>(0, 8);
  s.memory.resize(m.rank == 1 ? m.dims[0] * m.element_bytes() : m.strides[m.rank - 1] * m.dims[m.rank - 1]);
  for (size_t i = 0; i < s.memory.size(); ++i) s.memory[i] = static_cast<std::byte>(1 + i * 37 % 251);
  m.address = 0x10000;
  return s;
}

TEST(TensorBox, LoadsWhatTheElementsSay) {
  EXPECT_TRUE(rc::check([] {
    const Scene s = scene();
    const TensorBox box(s.map, s.at, s.address);
    std::vector<std::byte> got(box.footprint(), std::byte{0xEE}), want(box.footprint());
    box.load(got, s.memory.data() + (box.outside() ? 0 : box.low() - s.map.address));
    each_byte(s, [&](uint32_t place, int64_t at) {
      want.at(place) = at < 0 ? std::byte{0} : s.memory.at(static_cast<size_t>(at));
    });
    RC_ASSERT(got == want);
  }));
}

TEST(TensorBox, StoresWhatTheElementsSay) {
  EXPECT_TRUE(rc::check([] {
    const Scene s = scene();
    const TensorBox box(s.map, s.at, s.address);
    std::vector<std::byte> data(box.footprint());
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 13 % 255);
    std::vector<std::byte> got = s.memory, want = s.memory;
    box.store(data, got.data() + (box.outside() ? 0 : box.low() - s.map.address));
    each_byte(s, [&](uint32_t place, int64_t at) {
      if (at >= 0) want.at(static_cast<size_t>(at)) = data.at(place);
    });
    RC_ASSERT(got == want);
  }));
}

TEST(TensorBox, TakesTheBytesOfItsRowsAlone) {
  EXPECT_TRUE(rc::check([] {
    const Scene s = scene();
    const TensorBox box(s.map, s.at, s.address);
    std::vector<int> got(box.footprint()), want(box.footprint());
    box.for_taken([&](uint32_t place, uint32_t bytes) {
      for (uint32_t b = 0; b < bytes; ++b) ++got.at(place + b);
    });
    each_byte(s, [&](uint32_t place, int64_t) { ++want.at(place); });
    RC_ASSERT(got == want);
    RC_ASSERT(box.bytes() == s.map.box_bytes());
  }));
}

TEST(TensorBox, KnowsTheBytesInside) {
  EXPECT_TRUE(rc::check([] {
    const Scene s = scene();
    const TensorBox box(s.map, s.at, s.address);
    int64_t low = -1, high = -1, count = 0;
    each_byte(s, [&](uint32_t, int64_t at) {
      if (at < 0) return;
      low = low < 0 ? at : std::min(low, at);
      high = std::max(high, at + 1);
      ++count;
    });
    RC_ASSERT(box.outside() == (count == 0));
    RC_ASSERT(box.inside() == (count == box.bytes()));
    if (count == 0) return;
    RC_ASSERT(box.low() == s.map.address + static_cast<uint64_t>(low));
    RC_ASSERT(box.high() == s.map.address + static_cast<uint64_t>(high));
  }));
}

// A tile of a GEMM must cost little: it is loaded hundreds of thousands of times.
TEST(TensorBox, ATileOfAGemmIsFast) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers are slow";
#endif
  TensorMapSpec m;
  m.type = Type::f16;
  m.rank = 2;
  m.dims = {4096, 4096};
  m.strides = {2, 8192};
  m.box = {64, 128};
  m.swizzle = Swizzle::b128;
  std::vector<std::byte> memory(4096 * 8192), box(16384);
  double best = 1;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const TensorBox b(m, {64, 128 * (repeat % 8), 0, 0, 0}, 1024);
    b.load(box, memory.data() + b.low());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 10e-6);
  RecordProperty("microseconds", static_cast<int>(best * 1e6));
}

}  // namespace
}  // namespace tw::sim
