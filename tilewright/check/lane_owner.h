#pragma once
#include <bit>
#include <cstdint>
#include <optional>

namespace tw::check {

// Which lane of its warp an access of a cell of 16 bytes belongs to, byte by byte: one lane, lanes in a row
// with so many bytes each, several at once, or none that is known (operations, and memory where lanes do not
// count).
class LaneOwner {
 public:
  constexpr LaneOwner() = default;
  static constexpr LaneOwner several() { return LaneOwner(kSeveral); }
  static constexpr LaneOwner one(int lane) { return row(lane, 4); }
  // Byte b belongs to lane `at_0` + (b >> shift); the lane of byte 0 may be outside of what was touched, and
  // then below 0.
  static constexpr LaneOwner row(int at_0, uint32_t shift) {
    return LaneOwner(kRows + (shift << 6) + static_cast<uint32_t>(at_0 + kLowest));
  }
  static constexpr LaneOwner of_code(uint32_t code) { return LaneOwner(code); }
  constexpr uint32_t code() const { return code_; }  // of kBits

  constexpr bool known() const { return code_ != kNobody; }
  constexpr bool is_several() const { return code_ == kSeveral; }
  // Of one or lanes in a row.
  constexpr int lane(uint32_t byte) const {
    const uint32_t c = code_ - kRows;
    return static_cast<int>(c & 63) - kLowest + static_cast<int>(byte >> (c >> 6));
  }
  constexpr bool operator==(const LaneOwner&) const = default;
  static constexpr int kBits = 14;

 private:
  static constexpr uint32_t kNobody = 0, kSeveral = 1, kRows = 2;
  static constexpr int kLowest = 16;
  constexpr explicit LaneOwner(uint32_t code) : code_(code) {}
  uint32_t code_ = kNobody;
};

// Bytes of nobody that is known.
struct NoLanes {
  static constexpr LaneOwner owner(uint64_t, uint64_t, uint32_t) { return {}; }
};

// Bytes that lanes touch one behind the other, from lane `first`, each so many.
class LaneRun {
 public:
  LaneRun(uint32_t first, uint64_t begin, uint32_t bytes) {
    if (!std::has_single_bit(bytes) || begin % bytes != 0) return;
    first_ = static_cast<int>(first);
    shift_ = static_cast<uint32_t>(std::countr_zero(bytes));
  }
  // Every lane touches all of it.
  static LaneRun of_all() {
    LaneRun r(0, 0, 1);
    r.first_ = kAll;
    return r;
  }
  // Of its bytes [from, to), which lie in a cell from byte `at` on.
  LaneOwner owner(uint64_t from, uint64_t to, uint32_t at) const {
    if (first_ < 0) return first_ == kAll ? LaneOwner::several() : LaneOwner();
    const int low = first_ + static_cast<int>(from >> shift_),
              high = first_ + static_cast<int>((to - 1) >> shift_);
    return low == high ? LaneOwner::one(low) : LaneOwner::row(low - static_cast<int>(at >> shift_), shift_);
  }

 private:
  static constexpr int kNone = -1, kAll = -2;
  int first_ = kNone;
  uint32_t shift_ = 0;
};

}  // namespace tw::check
