#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "tilewright/check/shadow_entry.h"

namespace tw::check {

// The last accesses of every byte of a memory, by stamps. Cells of 16 bytes; most are used whole, by few
// accesses, and that is the fast path.
class Shadow {
 public:
  using Entry = ShadowEntry;

  explicit Shadow(uint64_t bytes) : cells_((bytes + 15) / 16) {}

  // Records an access. conflict(earlier, entry) hears of each earlier one of the same bytes where one of the
  // two is a write. ordered(earlier, entry) tells whether an earlier read comes first in every run; it may
  // then be forgotten. `lanes`: whose bytes these are.
  template <class F, class G, class Lanes = NoLanes>
  void access(uint64_t begin, uint64_t bytes, uint32_t stamp, bool write, bool atomic, F conflict, G ordered,
              const Lanes& lanes = {}) {
    const uint64_t last = begin + bytes;
    for (uint64_t at = begin; at < last;) {
      if constexpr (std::is_same_v<Lanes, NoLanes>) {
        const Entry whole(stamp, kWhole, write, atomic);
        for (Cell* cell = &cells_[at / 16]; at % 16 == 0 && at + 16 <= last; at += 16)
          touch(*cell++, whole, conflict, ordered);
        if (at == last) return;
      }
      const uint64_t cell = at / 16, end = std::min(last, (cell + 1) * 16);
      const auto mask = static_cast<uint16_t>(((1u << (end - at)) - 1) << (at % 16));
      const LaneOwner owner = lanes.owner(at - begin, end - begin, static_cast<uint32_t>(at % 16));
      touch(cells_[cell], Entry(stamp, mask, write, atomic, owner), conflict, ordered);
      at = end;
    }
  }

  // f(cell, entry) of every entry.
  template <class F>
  void each(F f) const {
    for (uint64_t c = 0; c < cells_.size(); ++c) {
      for (Entry e : cells_[c].few)
        if (e.stamp()) f(c, e);
      if (cells_[c].more)
        for (Entry e : *cells_[c].more) f(c, e);
    }
  }

  // f(stamp&) of every entry: to see which stamps are in use, and to renumber them.
  template <class F>
  void each_stamp(F f) {
    const auto renumber = [&](Entry& e) {
      uint32_t stamp = e.stamp();
      f(stamp);
      e.renumber(stamp);
    };
    for (Cell& cell : cells_) {
      for (Entry& e : cell.few)
        if (e.stamp()) renumber(e);
      if (cell.more)
        for (Entry& e : *cell.more) renumber(e);
    }
  }

 private:
  static constexpr uint32_t kWhole = 0xFFFF;
  // `few` fills up from its start, then `more`.
  struct Cell {
    std::array<Entry, 3> few;
    std::unique_ptr<std::vector<Entry>> more;
  };

  template <class F, class G>
  void touch(Cell& cell, Entry fresh, F& conflict, G& ordered) {
    Entry& first = cell.few[0];
    if (!cell.few[1].stamp()) {  // at most one access so far
      if (first.bytes() == fresh.bytes() && first.take_in(fresh)) return;
      if (fresh.write() && !fresh.atomic() && first.within(fresh)) {
        if (first.clashes(fresh)) conflict(first, fresh);
        first = fresh;
        return;
      }
    }
    for (Entry e : cell.few) {
      if (!e.stamp()) break;
      if (e.clashes(fresh)) conflict(e, fresh);
    }
    if (cell.more)
      for (Entry e : *cell.more)
        if (e.clashes(fresh)) conflict(e, fresh);
    if (fresh.write()) {
      for (Entry e : cell.few)
        if (e.bytes() == fresh.bytes() && e.take_in(fresh)) fresh = e;  // of several lanes
      if (fresh.bytes() == kWhole && !fresh.atomic() && !cell.more) {
        cell.few = {fresh};
        return;
      }
      // Whoever follows this write follows what it followed; atomics need not follow each other.
      erase_if(cell, [fresh, &ordered](Entry e) {
        return e.within(fresh) && (!(e.atomic() && fresh.atomic()) || ordered(e, fresh));
      });
    }
    for (Entry& e : cell.few) {
      if (!e.stamp()) {
        e = fresh;
        return;
      }
      if (e.take_in(fresh)) return;
    }
    if (!cell.more) cell.more = std::make_unique<std::vector<Entry>>();
    for (Entry& e : *cell.more)
      if (e.take_in(fresh)) return;
    constexpr size_t kMany = 8, kMost = 256;
    if (cell.more->size() >= kMany)
      std::erase_if(*cell.more, [fresh, &ordered](Entry e) {
        return !e.write() && e.within(fresh) && ordered(e, fresh);
      });
    if (cell.more->size() >= kMost) cell.more->erase(cell.more->begin());
    cell.more->push_back(fresh);
  }

  template <class P>
  static void erase_if(Cell& cell, P gone) {
    size_t kept = 0;
    for (Entry e : cell.few) {
      if (!e.stamp()) break;
      if (!gone(e)) cell.few[kept++] = e;
    }
    if (cell.more) {
      std::erase_if(*cell.more, gone);
      for (; kept < cell.few.size() && !cell.more->empty(); cell.more->pop_back())
        cell.few[kept++] = cell.more->back();
    }
    for (; kept < cell.few.size() && cell.few[kept].stamp(); ++kept) cell.few[kept] = {};
  }

  std::vector<Cell> cells_;
};

}  // namespace tw::check
