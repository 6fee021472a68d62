#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace tw::check {

// The last accesses of every byte of a memory, by stamps. Cells of 16 bytes; most are used whole, by few
// accesses, and that is the fast path.
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

  // f(cell, entry) of every entry.
  template <class F>
  void each(F f) const {
    for (uint64_t c = 0; c < cells_.size(); ++c) {
      for (const Entry& e : cells_[c].few)
        if (e.stamp) f(c, e);
      if (cells_[c].more)
        for (const Entry& e : *cells_[c].more) f(c, e);
    }
  }

  // f(stamp&) of every entry: to see which stamps are in use, and to renumber them.
  template <class F>
  void each_stamp(F f) {
    for (Cell& cell : cells_) {
      for (Entry& e : cell.few)
        if (e.stamp) f(e.stamp);
      if (cell.more)
        for (Entry& e : *cell.more) f(e.stamp);
    }
  }

 private:
  // `few` fills up from its start, then `more`.
  struct Cell {
    std::array<Entry, 3> few;
    std::unique_ptr<std::vector<Entry>> more;
  };

  template <class F, class G>
  void touch(Cell& cell, const Entry& fresh, F& conflict, G& ordered) {
    const auto clashes = [&](const Entry& e) {
      return (e.bytes & fresh.bytes) && (e.write || fresh.write) && !(e.atomic && fresh.atomic) &&
             e.stamp != fresh.stamp;
    };
    const auto same = [&](const Entry& e) { return e.stamp == fresh.stamp && e.write == fresh.write; };
    Entry& first = cell.few[0];
    if (!cell.few[1].stamp) {  // at most one access so far
      if (same(first) && first.bytes == fresh.bytes) return;
      if (fresh.write && !fresh.atomic && (first.bytes & ~fresh.bytes) == 0) {
        if (first.stamp && clashes(first)) conflict(first);
        first = fresh;
        return;
      }
    }
    for (const Entry& e : cell.few) {
      if (!e.stamp) break;
      if (clashes(e)) conflict(e);
    }
    if (cell.more)
      for (const Entry& e : *cell.more)
        if (clashes(e)) conflict(e);
    if (fresh.write)
      // Whoever follows this write follows what it followed; atomics need not follow each other.
      erase_if(cell, [&](const Entry& e) {
        return (e.bytes & ~fresh.bytes) == 0 && (!(e.atomic && fresh.atomic) || ordered(e));
      });
    for (Entry& e : cell.few) {
      if (!e.stamp) {
        e = fresh;
        return;
      }
      if (same(e)) {
        e.bytes |= fresh.bytes;
        return;
      }
    }
    if (!cell.more) cell.more = std::make_unique<std::vector<Entry>>();
    for (Entry& e : *cell.more)
      if (same(e)) {
        e.bytes |= fresh.bytes;
        return;
      }
    constexpr size_t kMany = 8, kMost = 256;
    if (cell.more->size() >= kMany)
      std::erase_if(*cell.more,
                    [&](const Entry& e) { return !e.write && (e.bytes & ~fresh.bytes) == 0 && ordered(e); });
    if (cell.more->size() >= kMost) cell.more->erase(cell.more->begin());
    cell.more->push_back(fresh);
  }

  template <class P>
  static void erase_if(Cell& cell, P gone) {
    size_t kept = 0;
    for (const Entry& e : cell.few) {
      if (!e.stamp) break;
      if (!gone(e)) cell.few[kept++] = e;
    }
    if (cell.more) {
      std::erase_if(*cell.more, gone);
      for (; kept < cell.few.size() && !cell.more->empty(); cell.more->pop_back())
        cell.few[kept++] = cell.more->back();
    }
    for (; kept < cell.few.size() && cell.few[kept].stamp; ++kept) cell.few[kept] = {};
  }

  std::vector<Cell> cells_;
};

}  // namespace tw::check
