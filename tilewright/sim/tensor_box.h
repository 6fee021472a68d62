#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "tilewright/sim/tensor_map.h"

// One box of a tensor at some coordinates: which part of it lies inside the tensor, and how its rows lie in
// global and in shared memory (PTX ISA, "Tiled Mode", "Swizzling Modes").
namespace tw::sim {

using Coordinates = std::array<int32_t, kMaxTensorRank>;

class TensorBox {
 public:
  // `shared_address`: where the box begins in shared memory; a multiple of 128. The swizzle pattern is
  // anchored to address 0, so a box that begins inside a repeat of the pattern begins with a later row of it.
  TensorBox(const TensorMapSpec& map, const Coordinates& at, uint32_t shared_address);

  uint32_t bytes() const { return bytes_; }  // of the rows: what counts for an mbarrier
  // What the box reaches over in shared memory. Where rows are shorter than the span of the swizzle each
  // begins a span of its own, and the engine leaves alone what lies between them (recorded on an H200).
  uint32_t footprint() const { return rows_ * pitch_; }
  bool inside() const { return inside_rows_ == rows_ && row_inside_ == row_bytes_; }  // nothing sticks out
  bool outside() const { return inside_rows_ == 0 || row_inside_ == 0; }              // everything does
  // The global addresses from the first to one past the last byte inside. Not for a box that lies outside.
  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }

  // Calls f(row, address) for each row of the box that is inside the tensor in all dimensions but the
  // innermost, in order. `address`: of its first byte inside; row_lead() bytes of the row lie before that,
  // row_inside() bytes are inside.
  template <class F>
  void for_rows(F f) const;
  uint32_t rows() const { return rows_; }
  uint32_t row_bytes() const { return row_bytes_; }
  uint32_t row_pitch() const { return pitch_; }
  uint32_t row_lead() const { return row_lead_; }
  uint32_t row_inside() const { return row_inside_; }

  // Where byte `offset` of the box (rows one after the other, row_pitch() apart) lies, counted from the box's
  // address. Keeps 16-byte pieces together.
  uint32_t place(uint32_t offset) const { return offset ^ ((((phase_ + offset) >> 7) & mask_) << 4); }

  // `box` holds the bytes as they lie in shared memory, footprint() of them. load: fills it with rows from
  // `global` (which points at the byte with address `low()`), and outside and between rows with `fill` for
  // every 16 bits. store: the other way, leaving out what lies outside.
  void load(std::span<std::byte> box, const std::byte* global, uint16_t fill = 0) const;
  void store(std::span<const std::byte> box, std::byte* global) const;
  // Calls f(place, address, bytes) for every piece of at most 16 bytes inside the tensor.
  template <class F>
  void for_pieces(F f) const;
  // Calls f(place, bytes) for what the rows take of shared memory, inside the tensor or not.
  template <class F>
  void for_taken(F f) const;

 private:
  struct Range {
    uint32_t first = 0, count = 0;  // elements of the box inside the tensor
  };
  // The side that a copy writes, or the one that it reads.
  template <bool Written>
  using Bytes = std::conditional_t<Written, std::byte*, const std::byte*>;
  template <uint32_t N, bool Load>
  void copy_rows(Bytes<Load> box, Bytes<!Load> global) const;
  template <bool Load>
  bool copy_whole_rows(Bytes<Load> box, Bytes<!Load> global) const;  // false: rows are of another kind
  static Range clip(int64_t at, uint32_t elements, uint32_t step, uint64_t extent);

  uint32_t rank_, bytes_, rows_ = 1, row_bytes_, pitch_, row_lead_ = 0, row_inside_ = 0, inside_rows_ = 1;
  uint32_t phase_, mask_;
  uint64_t origin_ = 0;  // address of the box's first element, wherever it is
  uint64_t low_ = 0, high_ = 0;
  std::array<Range, kMaxTensorRank> range_{};
  std::array<uint64_t, kMaxTensorRank>
      step_{};  // bytes of global memory from one element of the box to the next
  std::array<uint32_t, kMaxTensorRank> row_step_{};  // rows of the box
};

template <class F>
void TensorBox::for_rows(F f) const {
  if (outside()) return;
  uint64_t address = low_;
  uint32_t row = 0;
  for (uint32_t i = 1; i < rank_; ++i) row += range_[i].first * row_step_[i];
  std::array<uint32_t, kMaxTensorRank> index{};
  while (true) {
    f(row, address);
    uint32_t i = 1;
    for (; i < rank_; ++i) {
      address += step_[i];
      row += row_step_[i];
      if (++index[i] < range_[i].count) break;
      address -= step_[i] * range_[i].count;
      row -= row_step_[i] * range_[i].count;
      index[i] = 0;
    }
    if (i >= rank_) return;
  }
}

template <class F>
void TensorBox::for_pieces(F f) const {
  for_rows([&](uint32_t row, uint64_t address) {
    const uint32_t begin = row * pitch_ + row_lead_, end = begin + row_inside_;
    for (uint32_t at = begin; at < end;) {
      const uint32_t next = (at | 15) + 1 < end ? (at | 15) + 1 : end;
      f(place(at), address + (at - begin), next - at);
      at = next;
    }
  });
}

template <class F>
void TensorBox::for_taken(F f) const {
  if (pitch_ == row_bytes_) return f(uint32_t{0}, bytes_);
  for (uint32_t row = 0; row < rows_; ++row)
    for (uint32_t at = 0; at < row_bytes_; at += 16) f(place(row * pitch_ + at), uint32_t{16});
}

}  // namespace tw::sim
