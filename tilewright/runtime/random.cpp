#include "tilewright/runtime/random.h"

#include <cmath>
#include <numbers>

#include "tilewright/runtime/parallel.h"

namespace tw {
namespace {

// Output i of splitmix64 started at `seed`.
uint64_t splitmix64(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// In (0, 1): odd multiples of 2^-54, so that the logarithm below is finite.
double unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

}  // namespace

std::vector<float> random_normal(size_t count, uint64_t seed, double deviation) {
  std::vector<float> values(count);
  // Neighbouring seeds start far apart in the sequence.
  uint64_t start = splitmix64(seed, 0);
  auto pairs = static_cast<int64_t>((count + 1) / 2);
  parallel_for(pairs, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto at = static_cast<uint64_t>(2 * i);
      double radius = deviation * std::sqrt(-2 * std::log(unit(splitmix64(start, at))));
      double angle = 2 * std::numbers::pi * unit(splitmix64(start, at + 1));
      values[at] = static_cast<float>(radius * std::cos(angle));
      if (at + 1 < count) values[at + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
  return values;
}

void fill_normal(Tensor& tensor, uint64_t seed, double deviation) {
  tensor.upload(random_normal(static_cast<size_t>(tensor.elements()), seed, deviation));
}

}  // namespace tw
