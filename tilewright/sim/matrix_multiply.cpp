#include "tilewright/sim/matrix_multiply.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"

namespace tw::sim {
namespace {

constexpr int kDepth = 64;  // k elements of a panel: A takes 32 KiB and B 64 KiB at most
constexpr int kMaxM = 128, kMaxN = 256;

}  // namespace

bool AccumulatorTile::overlaps(const AccumulatorTile& other) const {
  if (cells >= other.cells + other.n * other.stride || other.cells >= cells + n * stride) return false;
  auto groups = [](const AccumulatorTile& t) {
    uint32_t mask = 0;
    for (size_t g = 0; g < static_cast<size_t>(t.m) / 16; ++g) mask |= 1u << t.lanes[g] / 16;
    return mask;
  };
  return (groups(*this) & groups(other)) != 0;
}

struct MatrixUnit::Buffers {
  alignas(64) float a[kMaxM * kDepth];
  alignas(64) float b[kMaxN * kDepth];
  alignas(64) float staged[kMaxN * kMaxM];  // D as f32, [n][m], when its cells cannot be used directly
};

// Kept for the host thread's next CTA: touching fresh pages costs more than the products of a small tile.
struct MatrixUnit::Spare {
  std::vector<std::unique_ptr<Buffers>> list;
  static Spare& of_thread() {
    thread_local Spare spare;
    return spare;
  }
};

MatrixUnit::MatrixUnit() : kernels(&matrix_kernels()) {
  auto& spare = Spare::of_thread().list;
  if (spare.empty()) {
    buffers_.reset(new Buffers);
  } else {
    buffers_ = std::move(spare.back());
    spare.pop_back();
  }
}

MatrixUnit::~MatrixUnit() {
  auto& spare = Spare::of_thread().list;
  constexpr size_t most = 8;
  if (spare.size() < most) spare.push_back(std::move(buffers_));
}

// Whether a product can join the pending chain: then its result is the same as one by one.
bool MatrixUnit::continues(const AccumulatorTile& d, const MatrixProduct& product) const {
  auto whole = [](const MatrixProduct& p) {
    return p.disabled_lanes == std::array<uint32_t, 4>{} && !p.saturate;
  };
  return depth_ != 0 && d == tile_ && d.type != DType::f16 && product.accumulate &&
         product.scale_exponent == 0 && depth_ + product.k <= kDepth && whole(product) && whole(first_);
}

void MatrixUnit::append(const AccumulatorTile& d, const MatrixProduct& product) {
  require(d.m % 16 == 0 && d.m <= kMaxM && d.n % 8 == 0 && d.n <= kMaxN && product.k <= kDepth,
          "matrix shape");
  if (!continues(d, product)) {
    flush();
    tile_ = d;
    first_ = product;
  }
  auto memory = [](const MatrixOperand& o) { return reinterpret_cast<const uint8_t*>(o.memory); };
  PackTarget a{buffers_->a + depth_ * 32, 32 * kDepth, 1, 32};
  PackTarget b{buffers_->b + depth_, 32 * kDepth, kDepth, 1};
  kernels->pack(product.a.geometry, memory(product.a), a);
  kernels->pack(product.b.geometry, memory(product.b), b);
  if (product.b_upper.memory != nullptr) {
    b.base += d.n / 2 * kDepth;
    kernels->pack(product.b_upper.geometry, memory(product.b_upper), b);
  }
  if (product.negate) {
    for (int m = 0; m < d.m; m += 32) {
      float* panel = a.at(m, 0);
      for (int i = 0; i < product.k * 32; ++i) panel[i] = -panel[i];
    }
  }
  depth_ += product.k;
  if (depth_ == kDepth) flush();
}

void MatrixUnit::flush() {
  if (depth_ == 0) return;
  bool direct =
      tile_.type == DType::f32 && tile_.m % 32 == 0 && first_.disabled_lanes == std::array<uint32_t, 4>{};
  if (direct) {
    Product p{buffers_->a,
              buffers_->b,
              kDepth,
              tile_.m,
              tile_.n,
              depth_,
              reinterpret_cast<float*>(tile_.cells),
              tile_.stride,
              tile_.lanes.data(),
              first_.accumulate,
              std::ldexp(1.0f, -first_.scale_exponent)};
    kernels->multiply(p);
  } else {
    flush_staged();
  }
  depth_ = 0;
}

namespace {

uint32_t add_integers(uint32_t d, float product, bool saturate) {
  int64_t sum = int64_t{static_cast<int32_t>(d)} + static_cast<int64_t>(product);
  if (saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  return static_cast<uint32_t>(sum);
}

}  // namespace

// D through an f32 copy: types other than f32, and masks. Integer products are exact in f32: |a * b| <= 255 *
// 255 and at most 64 of them stay below 2^24.
void MatrixUnit::flush_staged() {
  const AccumulatorTile& t = tile_;
  const bool integer = t.type == DType::i32, load = first_.accumulate && !integer;
  auto cell = [&](int m, int n) -> uint32_t& { return t.cells[n * t.stride + t.lanes[m / 16] + m % 16]; };
  int padded = (t.m + 31) / 32 * 32;
  for (int n = 0; load && n < t.n; ++n) {
    for (int m = 0; m < t.m; ++m) {
      uint32_t c = cell(m, n);
      buffers_->staged[n * kMaxM + m] =
          t.type == DType::f16 ? f16_to_float(static_cast<uint16_t>(c)) : std::bit_cast<float>(c);
    }
  }
  static constexpr int dense[8] = {0, 16, 32, 48, 64, 80, 96, 112};
  kernels->multiply({buffers_->a, buffers_->b, kDepth, padded, t.n, depth_, buffers_->staged, kMaxM, dense,
                     load, std::ldexp(1.0f, -first_.scale_exponent)});
  for (int n = 0; n < t.n; ++n) {
    for (int m = 0; m < t.m; ++m) {
      int lane = t.lanes[m / 16] + m % 16;
      if (first_.disabled_lanes[lane / 32] >> lane % 32 & 1) continue;
      float v = buffers_->staged[n * kMaxM + m];
      uint32_t& c = cell(m, n);
      if (integer) c = add_integers(first_.accumulate ? c : 0, v, first_.saturate);
      else c = t.type == DType::f16 ? float_to_f16(v) : std::bit_cast<uint32_t>(v);
    }
  }
}

double time_matrix_tile(int m, int n, int k, int repeats) {
  std::vector<std::byte> memory(static_cast<size_t>((m + n) * k * 2));
  for (size_t i = 0; i < memory.size() / 2; ++i) {
    uint16_t code = float_to_f16(static_cast<float>(static_cast<int>(i * 7 % 17) - 8) / 8);
    std::memcpy(memory.data() + 2 * i, &code, 2);
  }
  std::vector<uint32_t> cells(128 * 512);
  AccumulatorTile d{cells.data(), 128, m, n, {0, 16, 32, 48, 64, 80, 96, 112}, DType::f32};
  MatrixUnit unit;
  double best = INFINITY;
  for (int r = 0; r < repeats; ++r) {
    auto begin = std::chrono::steady_clock::now();
    for (int chunk = 0; chunk < k / 64; ++chunk) {
      for (int step = 0; step < 4; ++step) {
        SharedMatrix a, b;
        a.swizzle = b.swizzle = SwizzleMode::b128;
        a.stride = b.stride = 1024;
        a.start = static_cast<uint32_t>(chunk * m * 128 + step * 32);
        b.start = static_cast<uint32_t>(m * k * 2 + chunk * n * 128 + step * 32);
        MatrixProduct p;
        p.a = {shared_operand(a, DType::f16, false, m, 16), memory.data()};
        p.b = {shared_operand(b, DType::f16, false, n, 16), memory.data()};
        p.k = 16;
        p.accumulate = true;
        unit.append(d, p);
      }
    }
    unit.flush();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace tw::sim
