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
  };

  explicit Shadow(uint64_t bytes) : cells_((bytes + 15) / 16) {}

  // Records an access. conflict(entry) hears of each earlier one of the same bytes where one of the two is a
  // write. ordered(entry) tells whether an earlier read comes first in every run; it may then be forgotten.
  template <class F, class G>
  void access(uint64_t begin, uint64_t bytes, uint32_t stamp, bool write, F conflict, G ordered) {
    for (uint64_t at = begin; at < begin + bytes;) {
      const uint64_t cell = at / 16, end = std::min(begin + bytes, (cell + 1) * 16);
      const auto mask = static_cast<uint16_t>(((1u << (end - at)) - 1) << (at % 16));
      touch(cells_[cell], mask, stamp, write, conflict, ordered);
      at = end;
    }
  }

 private:
  struct Cell {
    Entry first;
    std::vector<Entry> others;
  };

  template <class F, class G>
  void touch(Cell& cell, uint16_t mask, uint32_t stamp, bool write, F& conflict, G& ordered) {
    const auto clashes = [&](const Entry& e) {
      return (e.bytes & mask) && (e.write || write) && e.stamp != stamp;
    };
    if (cell.first.stamp == stamp && cell.first.bytes == mask && cell.first.write == write &&
        cell.others.empty())
      return;
    if (cell.first.stamp && clashes(cell.first)) conflict(cell.first);
    for (const Entry& e : cell.others)
      if (clashes(e)) conflict(e);
    if (write) {  // whoever follows this write follows what it followed
      if ((cell.first.bytes & ~mask) == 0) cell.first = {};
      std::erase_if(cell.others, [&](const Entry& e) { return (e.bytes & ~mask) == 0; });
    }
    const Entry fresh{stamp, mask, write};
    if (!cell.first.stamp) {
      cell.first = fresh;
      return;
    }
    const auto same = [&](const Entry& e) { return e.stamp == stamp && e.write == write; };
    if (same(cell.first)) {
      cell.first.bytes |= mask;
      return;
    }
    for (Entry& e : cell.others)
      if (same(e)) {
        e.bytes |= mask;
        return;
      }
    constexpr size_t kMany = 8;
    if (cell.others.size() >= kMany)
      std::erase_if(cell.others,
                    [&](const Entry& e) { return !e.write && (e.bytes & ~mask) == 0 && ordered(e); });
    cell.others.push_back(fresh);
  }

  std::vector<Cell> cells_;
};

}  // namespace tw::check
