#pragma once
#include <cstdint>

#include "tilewright/check/lane_owner.h"

namespace tw::check {

// An access of bytes of one cell of 16, in one word: millions of them are made, and compared, in a second.
class ShadowEntry {
 public:
  constexpr ShadowEntry() = default;
  constexpr ShadowEntry(uint32_t stamp, uint16_t bytes, bool write, bool atomic, LaneOwner owner = {})
      : word_(stamp | uint64_t{bytes} << 32 | uint64_t{write} << kWrite | uint64_t{atomic} << (kWrite + 1) |
              uint64_t{owner.code()} << kOwner) {}

  constexpr uint32_t stamp() const { return static_cast<uint32_t>(word_); }  // 0: no access
  constexpr uint32_t bytes() const { return static_cast<uint16_t>(word_ >> 32); }
  constexpr bool write() const { return word_ >> kWrite & 1; }
  constexpr bool atomic() const { return word_ >> (kWrite + 1) & 1; }  // two atomics do not race
  constexpr LaneOwner owner() const { return LaneOwner::of_code(static_cast<uint32_t>(word_ >> kOwner)); }

  constexpr void renumber(uint32_t stamp) { word_ = (word_ & ~uint64_t{0xFFFF'FFFF}) | stamp; }
  // Whether it is of no bytes but those of `other`.
  constexpr bool within(ShadowEntry other) const { return (bytes() & ~other.bytes()) == 0; }
  // Whether they touch the same bytes, and which of them came first may make a difference.
  constexpr bool clashes(ShadowEntry other) const {
    const uint64_t both = word_ & other.word_, either = word_ | other.word_;
    return static_cast<uint16_t>(both >> 32) && (either >> kWrite & 1) && !(both >> (kWrite + 1) & 1) &&
           stamp() != other.stamp();
  }
  // Whether it can stand for a later access too, and does from now on: the same one, of other bytes or by
  // another lane.
  [[gnu::always_inline]] constexpr bool take_in(ShadowEntry later) {
    constexpr uint64_t kSame = uint64_t{1} << kWrite | 0xFFFF'FFFF;
    if ((word_ ^ later.word_) & kSame) return false;
    if ((word_ ^ later.word_) >> kOwner != 0) [[unlikely]]
      return take_in_of_others(later);
    word_ |= later.word_ & uint64_t{0xFFFF} << 32;
    return true;
  }

 private:
  static constexpr int kWrite = 48, kOwner = 50;
  static_assert(kOwner + LaneOwner::kBits == 64);

  [[gnu::noinline]] constexpr bool take_in_of_others(ShadowEntry later) {
    if (later.within(*this) && owner().is_several()) return true;
    if (bytes() != later.bytes() || !owner().known() || !later.owner().known()) return false;
    *this = ShadowEntry(stamp(), static_cast<uint16_t>(bytes()), write(), atomic(), LaneOwner::several());
    return true;
  }

  uint64_t word_ = 0;
};

}  // namespace tw::check
