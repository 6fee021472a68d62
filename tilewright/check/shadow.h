#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace tw::check {

// The last accesses of every byte of a memory, by stamps. Cells of 16 bytes; most are used whole, by one
// access at a time, and that is the fast path.
class Shadow {
 public:
  struct Entry {
    uint32_t stamp = 0;  // 0: none
    uint16_t bytes = 0;  // of the cell
    bool write = false;
    bool atomic = false;  // two atomics do not race
  };

  explicit Shadow(uint64_t bytes) : cells_((bytes + 15) / 16) {}

  // Records an access. conflict(entry) hears of each earlier one of the same bytes where one of the two is a
  // write. ordered(entry) tells whether an earlier read comes first in every run; it may then be forgotten.
  template <class F, class G>
  void access(uint64_t begin, uint64_t bytes, uint32_t stamp, bool write, bool atomic, F conflict,
              G ordered) {
    for (uint64_t at = begin; at < begin + bytes;) {
      const uint64_t cell = at / 16, end = std::min(begin + bytes, (cell + 1) * 16);
      const auto mask = static_cast<uint16_t>(((1u << (end - at)) - 1) << (at % 16));
      touch(cells_[cell], {stamp, mask, write, atomic}, conflict, ordered);
      at = end;
    }
  }

 private:
  struct Cell {
    Entry first;
    std::vector<Entry> others;
  };

  template <class F, class G>
  void touch(Cell& cell, const Entry& fresh, F& conflict, G& ordered) {
    const auto clashes = [&](const Entry& e) {
      return (e.bytes & fresh.bytes) && (e.write || fresh.write) && !(e.atomic && fresh.atomic) &&
             e.stamp != fresh.stamp;
    };
    const auto same = [&](const Entry& e) { return e.stamp == fresh.stamp && e.write == fresh.write; };
    if (same(cell.first) && cell.first.bytes == fresh.bytes && cell.others.empty()) return;
    if (cell.first.stamp && clashes(cell.first)) conflict(cell.first);
    for (const Entry& e : cell.others)
      if (clashes(e)) conflict(e);
    if (fresh.write) {
      // Whoever follows this write follows what it followed; atomics need not follow each other.
      const auto replaced = [&](const Entry& e) {
        return (e.bytes & ~fresh.bytes) == 0 && (!(e.atomic && fresh.atomic) || ordered(e));
      };
      if (cell.first.stamp && replaced(cell.first)) cell.first = {};
      std::erase_if(cell.others, replaced);
    }
    if (!cell.first.stamp) {
      cell.first = fresh;
      return;
    }
    if (same(cell.first)) {
      cell.first.bytes |= fresh.bytes;
      return;
    }
    for (Entry& e : cell.others)
      if (same(e)) {
        e.bytes |= fresh.bytes;
        return;
      }
    constexpr size_t kMany = 8;
    if (cell.others.size() >= kMany)
      std::erase_if(cell.others,
                    [&](const Entry& e) { return !e.write && (e.bytes & ~fresh.bytes) == 0 && ordered(e); });
    cell.others.push_back(fresh);
  }

  std::vector<Cell> cells_;
};

}  // namespace tw::check
