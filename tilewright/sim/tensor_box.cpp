#include "tilewright/sim/tensor_box.h"

#include <algorithm>
#include <cstring>

namespace tw::sim {

// The elements at, at + step, ... of which `elements` belong to the box and those from 0 to extent - 1 exist.
TensorBox::Range TensorBox::clip(int64_t at, uint32_t elements, uint32_t step, uint64_t extent) {
  const auto size = static_cast<int64_t>(extent);
  if (at >= size) return {};
  const int64_t first = at >= 0 ? 0 : (-at + step - 1) / step;
  const int64_t end = std::min<int64_t>(elements, (size - at + step - 1) / step);
  if (first >= end) return {};
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end - first)};
}

TensorBox::TensorBox(const TensorMapSpec& map, const Coordinates& at, uint32_t shared_address)
    : rank_(map.rank),
      bytes_(map.box_bytes()),
      row_bytes_(map.row_bytes()),
      pitch_(std::max(map.row_bytes(), map.swizzle_bytes())),
      phase_(shared_address & 1023),
      mask_((map.swizzle_bytes() / 16) - (map.swizzle_bytes() ? 1 : 0)),
      origin_(map.address) {
  const uint32_t element = map.element_bytes();
  uint32_t row_step = 1;
  for (uint32_t i = 0; i < rank_; ++i) {
    const uint32_t step = i == 0 ? 1 : map.element_strides[i];
    range_[i] = clip(at[i], map.box_elements(i), step, map.dims[i]);
    step_[i] = map.strides[i] * step;
    origin_ += static_cast<uint64_t>(at[i]) * map.strides[i];  // modulo 2^64: the sum is what counts
    if (i == 0) continue;
    row_step_[i] = row_step;
    row_step *= map.box_elements(i);
    inside_rows_ *= range_[i].count;
  }
  rows_ = row_step;
  row_lead_ = range_[0].first * element;
  row_inside_ = range_[0].count * element;
  if (outside()) return;
  low_ = high_ = origin_;
  for (uint32_t i = 0; i < rank_; ++i) {
    low_ += range_[i].first * step_[i];
    high_ += (range_[i].first + range_[i].count - 1) * step_[i];
  }
  high_ += element;
}

// Rows that fill the span of the swizzle and lie inside, in N pieces of 16 bytes: one key places them all.
template <uint32_t N, bool Load>
void TensorBox::copy_rows(Bytes<Load> box, Bytes<!Load> global) const {
  for_rows([&](uint32_t row, uint64_t address) {
    const auto outer = global + (address - low_);
    // Rows lie far apart, each on a page of its own: more than the processor foresees.
    constexpr int64_t ahead = 24;
    const auto later = outer + ahead * static_cast<int64_t>(step_[1]);
    __builtin_prefetch(later, !Load);
    if (N > 4) __builtin_prefetch(later + 64, !Load);
    const uint32_t at = row * N * 16, key = (phase_ + at) >> 7 & mask_;
    const auto inner = box + at;
#pragma GCC unroll 8
    for (uint32_t c = 0; c < N; ++c) {
      if constexpr (Load) std::memcpy(inner + ((c ^ key) << 4), outer + c * 16, 16);
      else std::memcpy(outer + c * 16, inner + ((c ^ key) << 4), 16);
    }
  });
}

template <bool Load>
bool TensorBox::copy_whole_rows(Bytes<Load> box, Bytes<!Load> global) const {
  if (row_inside_ != row_bytes_ || row_bytes_ != 16 * (mask_ + 1)) return false;
  switch (mask_ + 1) {
    case 8: copy_rows<8, Load>(box, global); return true;
    case 4: copy_rows<4, Load>(box, global); return true;
    case 2: copy_rows<2, Load>(box, global); return true;
    default: return false;
  }
}

void TensorBox::load(std::span<std::byte> box, const std::byte* global, uint16_t fill) const {
  if (!inside() || pitch_ != row_bytes_) {
    if (fill == 0) std::memset(box.data(), 0, box.size());
    else
      for (size_t at = 0; at < box.size(); at += 2) std::memcpy(&box[at], &fill, 2);
  }
  if (mask_ == 0) {
    return for_rows([&](uint32_t row, uint64_t address) {
      std::memcpy(box.data() + row * row_bytes_ + row_lead_, global + (address - low_), row_inside_);
    });
  }
  if (copy_whole_rows<true>(box.data(), global)) return;
  for_pieces([&](uint32_t to, uint64_t address, uint32_t bytes) {
    std::memcpy(box.data() + to, global + (address - low_), bytes);
  });
}

void TensorBox::store(std::span<const std::byte> box, std::byte* global) const {
  if (mask_ == 0) {
    return for_rows([&](uint32_t row, uint64_t address) {
      std::memcpy(global + (address - low_), box.data() + row * row_bytes_ + row_lead_, row_inside_);
    });
  }
  if (copy_whole_rows<false>(box.data(), global)) return;
  for_pieces([&](uint32_t from, uint64_t address, uint32_t bytes) {
    std::memcpy(global + (address - low_), box.data() + from, bytes);
  });
}

}  // namespace tw::sim
