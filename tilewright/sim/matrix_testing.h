#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/sim/matrix_descriptor.h"

// For tests: MMA operands placed element by element as the PTX ISA's tables say, without the code under test.
namespace tw::sim::testing {

// --- an independent model of the layouts: the table "Canonical Layouts" of the PTX ISA, evaluated as CuTe
// layouts ---

// A CuTe mode: nested extents and strides, the first varies fastest.
using Mode = std::vector<std::pair<long, long>>;

inline long evaluate(const Mode& mode, long index) {
  long offset = 0;
  for (auto [extent, stride] : mode) {
    offset += index % extent * stride;
    index /= extent;
  }
  return offset;
}

struct Strides {
  long lbo, sbo;  // bytes
};

// Byte address of element (mn, k), before swizzling, relative to the start. T = 128 / sizeof_bits.
inline long canonical(SwizzleMode swizzle, bool mn_major, long T, Strides bytes, long mn, long k) {
  const long element = 16 / T, many = 1 << 20;
  const long LBO = bytes.lbo / element, SBO = bytes.sbo / element;
  Mode row, column;
  if (mn_major) {
    switch (swizzle) {
      case SwizzleMode::none: row = {{T, 1}, {1, T}, {many, SBO}}, column = {{8, T}, {many, LBO}}; break;
      case SwizzleMode::b32: row = {{T, 1}, {2, T}, {many, LBO}}, column = {{8, 2 * T}, {many, SBO}}; break;
      case SwizzleMode::b64: row = {{T, 1}, {4, T}, {many, LBO}}, column = {{8, 4 * T}, {many, SBO}}; break;
      case SwizzleMode::b128: row = {{T, 1}, {8, T}, {many, LBO}}, column = {{8, 8 * T}, {many, SBO}}; break;
      // Table 55: the atom is 8x4 in units of 128 bits.
      case SwizzleMode::b128_atom32:
        row = {{T, 1}, {8, T}, {many, LBO}}, column = {{4, 8 * T}, {many, SBO}};
        break;
    }
  } else {
    switch (swizzle) {
      case SwizzleMode::none: row = {{8, T}, {many, SBO}}, column = {{T, 1}, {many, LBO}}; break;
      case SwizzleMode::b32: row = {{8, 2 * T}, {many, SBO}}, column = {{T, 1}, {many, T}}; break;
      case SwizzleMode::b64: row = {{8, 4 * T}, {many, SBO}}, column = {{T, 1}, {many, T}}; break;
      case SwizzleMode::b128: row = {{8, 8 * T}, {many, SBO}}, column = {{T, 1}, {many, T}}; break;
      case SwizzleMode::b128_atom32: require(false, "no K-major layout has 32B atoms"); break;
    }
  }
  return (evaluate(row, mn) + evaluate(column, k)) * element;
}

// Swizzle<B, M, S> of CuTe on a byte address: bits [M + S, M + S + B) are XORed into bits [M, M + B).
inline long swizzled(SwizzleMode mode, long address) {
  auto apply = [&](int B, int M, int S) { return address ^ ((address >> S) & (((1l << B) - 1) << M)); };
  switch (mode) {
    case SwizzleMode::none: return address;
    case SwizzleMode::b32: return apply(1, 4, 3);
    case SwizzleMode::b64: return apply(2, 4, 3);
    case SwizzleMode::b128: return apply(3, 4, 3);
    case SwizzleMode::b128_atom32: return apply(2, 5, 2);
  }
  return address;
}

// A matrix of values and its codes, to be placed in a memory image element by element.
struct Matrix {
  DType type;
  int mn, k;
  std::vector<uint32_t> codes;
  std::vector<double> values;
  double at(int i, int j) const { return values[static_cast<size_t>(i * k + j)]; }
  uint32_t code(int i, int j) const { return codes[static_cast<size_t>(i * k + j)]; }
};

inline Matrix random_matrix(DType type, int mn, int k, std::mt19937& random) {
  Matrix m{type, mn, k, {}, {}};
  for (int i = 0; i < mn * k; ++i) {
    uint32_t code = 0;
    double value = 0;
    if (is_integer(type)) {
      code = random() & 0xff;
      value = type == DType::i8 ? static_cast<double>(static_cast<int8_t>(code)) : code;
    } else {
      do {  // any finite code, not so large that products overflow
        code = random();
        if (type == DType::tf32 || type == DType::bf16 || type == DType::f16) {
          float f = std::ldexp(static_cast<float>(static_cast<int>(random() % 2001) - 1000),
                               -static_cast<int>(random() % 14));
          code = type == DType::tf32 ? std::bit_cast<uint32_t>(f) | (random() & 0x1fff) : from_float(type, f);
        }
        code &= bits(type) == 32 ? ~0u : (1u << bits(type)) - 1;
        value = to_double(type, code);
      } while (!std::isfinite(value));
    }
    m.codes.push_back(code);
    m.values.push_back(value);
  }
  return m;
}

inline long chunk_T(DType type) { return type == DType::tf32 ? 4 : bits(type) == 16 ? 8 : 16; }

// Writes element (mn, k) into the image. 6- and 4-bit elements: 16 of them packed into the first bytes of a
// 16-byte container whose place is that of 16 one-byte elements.
inline void place(std::vector<std::byte>& image, const Matrix& m, SwizzleMode swizzle, bool mn_major,
                  Strides strides, long start, long pattern_start, int i, int j) {
  long T = chunk_T(m.type);
  if (bits(m.type) < 8) {
    long container = start + canonical(swizzle, mn_major, T, strides, i, j / 16 * 16);
    container = pattern_start + swizzled(swizzle, container - pattern_start);
    for (int bit = 0; bit < bits(m.type); ++bit) {
      int at = j % 16 * bits(m.type) + bit;
      auto& b = image[static_cast<size_t>(container + at / 8)];
      b = (b & ~std::byte(1 << at % 8)) | std::byte((m.code(i, j) >> bit & 1) << at % 8);
    }
    return;
  }
  long address = start + canonical(swizzle, mn_major, T, strides, i, j);
  address = pattern_start + swizzled(swizzle, address - pattern_start);
  uint32_t code = m.code(i, j);
  std::memcpy(image.data() + address, &code, static_cast<size_t>(16 / T));
}

}  // namespace tw::sim::testing
