#include "tilewright/runtime/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/base/math.h"
#include "tilewright/runtime/parallel.h"
#include "tilewright/runtime/storage.h"

namespace tw {
namespace {

// Register block of the product, and how much of k a packed panel holds: a panel of B stays in L1, one of A
// in L2.
constexpr int64_t kRows = 4, kColumns = 8, kDepth = 512;
constexpr int64_t kTaskRows = 64;

using Lanes = double __attribute__((vector_size(32)));  // four columns
constexpr int64_t kVectors = kColumns / 4;

// Panel p, depth k, row r of the panel: source row p * width + r, or 0 past the end. One panel is contiguous.
std::vector<double> pack(std::span<const float> source, int64_t rows, int64_t k, int64_t width) {
  int64_t panels = ceil_div(rows, width);
  std::vector<double> packed(static_cast<size_t>(panels * k * width));
  parallel_for(panels, 8, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t r = 0; r < std::min(width, rows - p * width); ++r)
        for (int64_t i = 0; i < k; ++i)
          packed[static_cast<size_t>((p * k + i) * width + r)] =
              source[static_cast<size_t>((p * width + r) * k + i)];
  });
  return packed;
}

// c[r, j] += sum_i a[i, r] * b[i, j] over `depth`.
__attribute__((target_clones("avx512f", "avx2", "default"))) void block_product(const double* a,
                                                                                const double* b,
                                                                                int64_t depth, double* c) {
  Lanes sum[kRows][kVectors];
  std::memcpy(sum, c, sizeof sum);
  for (int64_t i = 0; i < depth; ++i, a += kRows, b += kColumns) {
    Lanes column[kVectors];
    std::memcpy(column, b, sizeof column);
    // Unrolled, so that the sums live in registers.
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] += a[r] * column[v];
  }
  std::memcpy(c, sum, sizeof sum);
}

double rounded(DType dtype, double value) {
  if (dtype == DType::f64) return value;
  if (is_float(dtype)) return to_double(dtype, from_double(dtype, value));
  return std::nearbyint(value);
}

double relative(double difference, double norm) {
  if (difference == 0) return 0;
  return norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / norm);
}

}  // namespace

std::vector<double> reference_gemm(std::span<const float> a, std::span<const float> b, int64_t m, int64_t n,
                                   int64_t k) {
  require(a.size() == static_cast<size_t>(m * k) && b.size() == static_cast<size_t>(n * k),
          "operands of a reference product have the sizes of their shapes");
  std::vector<double> packed_a = pack(a, m, k, kRows), packed_b = pack(b, n, k, kColumns);
  std::vector<double> d(static_cast<size_t>(m * n));
  parallel_for(m, kTaskRows, [&](int64_t begin, int64_t end) {
    // One depth block at a time over the whole strip, so that the strip of A and the panel of B stay in
    // cache.
    int64_t row_panels = ceil_div(end - begin, kRows), column_panels = ceil_div(n, kColumns);
    std::vector<double> strip(static_cast<size_t>(row_panels * column_panels * kRows * kColumns));
    for (int64_t k0 = 0; k0 < k; k0 += kDepth)
      for (int64_t q = 0; q < column_panels; ++q)
        for (int64_t p = 0; p < row_panels; ++p)
          block_product(&packed_a[static_cast<size_t>(((begin / kRows + p) * k + k0) * kRows)],
                        &packed_b[static_cast<size_t>((q * k + k0) * kColumns)], std::min(kDepth, k - k0),
                        &strip[static_cast<size_t>((p * column_panels + q) * kRows * kColumns)]);
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t block = (i - begin) / kRows * column_panels + j / kColumns;
        d[static_cast<size_t>(i * n + j)] =
            strip[static_cast<size_t>((block * kRows + (i - begin) % kRows) * kColumns + j % kColumns)];
      }
  });
  return d;
}

std::vector<double> reference_gemm(const Tensor& a, const Tensor& b) {
  if (a.shape().size() != 2 || b.shape().size() != 2 || a.shape()[1] != b.shape()[1])
    user_error({}, "a product D = A B^T takes A [m, k] and B [n, k], given {} and {}", shape_text(a.shape()),
               shape_text(b.shape()));
  return reference_gemm(a.download_f32(), b.download_f32(), a.shape()[0], b.shape()[0], a.shape()[1]);
}

Comparison compare(std::span<const float> values, DType dtype, std::span<const double> reference) {
  require(values.size() == reference.size(), "an output and its reference have the same size");
  Comparison result;
  double difference = 0, norm = 0, difference_rounded = 0, norm_rounded = 0, farthest = -1;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < values.size(); ++i) {
    double value = values[i], exact = reference[i], nearest = rounded(dtype, exact);
    // Right where the type holds no finite value: a row of -inf, an overflow the kernel cannot avoid.
    if (!std::isfinite(nearest) && (value == nearest || (std::isnan(value) && std::isnan(nearest)))) continue;
    bool comparable = std::isfinite(value) && std::isfinite(nearest);
    if (!std::isfinite(value)) ++result.non_finite;
    double distance = comparable ? std::abs(value - exact) : kInfinity;
    double step = comparable ? value - nearest : kInfinity;
    if (distance > farthest) {
      farthest = distance;
      result.worst = static_cast<int64_t>(i);
      result.worst_given = value;
      result.worst_expected = exact;
    }
    difference += distance * distance;
    norm += comparable ? exact * exact : 0;
    difference_rounded += step * step;
    norm_rounded += comparable ? nearest * nearest : 0;
  }
  result.error = relative(difference, norm);
  result.error_rounded = relative(difference_rounded, norm_rounded);
  return result;
}

Comparison compare(const Tensor& output, std::span<const double> reference) {
  Comparison result = compare(output.download_f32(), output.dtype(), reference);
  result.unwritten = output.unwritten();
  return result;
}

std::string to_string(const Comparison& c) {
  std::string text = format("error {:.1e}, rounded {:.1e}", c.error, c.error_rounded);
  if (c.non_finite) text += format(", {} elements are not finite", c.non_finite);
  if (c.unwritten) text += format(", {} bytes were never written", c.unwritten);
  if (c.non_finite || c.unwritten)
    text += format(", worst at {}: {} for {}", c.worst, c.worst_given, c.worst_expected);
  return text;
}

}  // namespace tw
