#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tilewright/check/shadow.h"

namespace tw::check {

// The last accesses of every byte of a large and mostly empty memory. A page lists what was accessed, as
// spans of bytes; it has a shadow of its own once a write meets another access. Memory that is only read, or
// written once, costs a span for what comes together; the boxes of tensors that nobody writes are kept as
// they are.
class PagedShadow {
 public:
  static constexpr uint64_t kPage = 4096;
  // Where the allocation of an address begins and ends.
  using Extent = std::function<std::pair<uint64_t, uint64_t>(uint64_t address)>;
  // `count` rows of `bytes`, `pitch` apart.
  struct Rows {
    uint64_t begin, bytes, pitch;
    uint32_t count, stamp;
    bool atomic;
  };

  explicit PagedShadow(Extent extent) : extent_(std::move(extent)) {}

  template <class F, class G>
  void read(const Rows& rows, F conflict, G ordered) {
    Region& region = region_of(rows.begin);
    if (!region.written) return region.reads.push_back(rows);
    each_row(rows,
             [&](uint64_t at) { access(at, rows.bytes, rows.stamp, false, rows.atomic, conflict, ordered); });
  }

  // As Shadow::access; conflict(earlier), ordered(earlier).
  template <class F, class G>
  void access(uint64_t begin, uint64_t bytes, uint32_t stamp, bool write, bool atomic, F conflict,
              G ordered) {
    if (write) mark_written(begin);
    for (uint64_t at = begin; at < begin + bytes;) {
      const uint64_t page = at / kPage, end = std::min(begin + bytes, (page + 1) * kPage);
      const Span span{static_cast<uint16_t>(at % kPage), static_cast<uint16_t>(end - page * kPage), stamp,
                      write, atomic};
      touch(at_page(page), span, conflict, ordered);
      at = end;
    }
  }

  // f(address, bytes, stamp, write, atomic) of what is remembered of the accesses with these stamps and later
  // ones, page after page as they were first used since the last call; r(rows) of rows that were read.
  template <class F, class R>
  void each_since(uint32_t stamp, F f, R r) {
    for (auto& [begin, region] : regions_)
      for (; region.told < region.reads.size(); ++region.told)
        if (region.reads[region.told].stamp >= stamp) r(region.reads[region.told]);
    for (const uint64_t number : touched_) {
      Page& page = pages_.at(number);
      page.listed = false;
      const auto tell = [&](uint64_t begin, uint64_t end, uint32_t s, bool write, bool atomic) {
        if (s >= stamp) f(number * kPage + begin, end - begin, s, write, atomic);
      };
      for (const Span& s : page.spans) tell(s.begin, s.end, s.stamp, s.write, s.atomic);
      if (page.cells)
        page.cells->each([&](uint64_t cell, Shadow::Entry e) {
          for (uint32_t byte = 0; byte < 16;) {
            uint32_t to = byte;
            while (to < 16 && (e.bytes() >> to & 1)) ++to;
            if (to > byte) tell(cell * 16 + byte, cell * 16 + to, e.stamp(), e.write(), e.atomic());
            byte = to + 1;
          }
        });
    }
    touched_.clear();
  }

 private:
  struct Span {
    uint16_t begin, end;
    uint32_t stamp;
    bool write, atomic;
    bool meets(const Span& s) const { return begin < s.end && s.begin < end; }
  };
  struct Region {  // an allocation
    uint64_t end = 0;
    bool written = false;
    std::vector<Rows> reads;
    size_t told = 0;
  };
  struct Page {
    std::vector<Span> spans;
    std::unique_ptr<Shadow> cells;  // instead of them
    bool listed = false, written = false;
  };

  template <class F>
  static void each_row(const Rows& rows, F f) {
    for (uint32_t i = 0; i < rows.count; ++i) f(rows.begin + i * rows.pitch);
  }

  Region& region_of(uint64_t address) {
    auto at = regions_.upper_bound(address);
    if (at != regions_.begin() && address < std::prev(at)->second.end) return std::prev(at)->second;
    const auto [begin, end] = extent_(address);
    Region& fresh = regions_[begin];
    fresh.end = end;
    return fresh;
  }

  void mark_written(uint64_t address) {
    if (address >= written_begin_ && address < written_end_) return;
    Region& region = region_of(address);
    std::tie(written_begin_, written_end_) = extent_(address);
    if (region.written) return;
    region.written = true;
    const auto never = [](Shadow::Entry) { return false; };
    for (const Rows& rows : region.reads)
      each_row(rows, [&](uint64_t at) {
        access(
            at, rows.bytes, rows.stamp, false, rows.atomic, [](Shadow::Entry) {}, never);
      });
    region.reads = {};
    region.told = 0;
  }

  Page& at_page(uint64_t number) {
    if (number != recent_) {
      recent_ = number;
      page_ = &pages_[number];
    }
    if (!page_->listed) {
      page_->listed = true;
      touched_.push_back(number);
    }
    return *page_;
  }

  template <class F, class G>
  void touch(Page& page, const Span& s, F& conflict, G& ordered) {
    if (!page.cells && !append(page, s)) {
      page.cells = std::make_unique<Shadow>(kPage);
      for (const Span& old : page.spans)
        page.cells->access(
            old.begin, old.end - old.begin, old.stamp, old.write, old.atomic, [](const auto&, const auto&) {},
            [](const auto&, const auto&) { return false; });
      page.spans = {};
    }
    if (page.cells)
      page.cells->access(
          s.begin, s.end - s.begin, s.stamp, s.write, s.atomic,
          [&](Shadow::Entry e, Shadow::Entry) { conflict(e); },
          [&](Shadow::Entry e, Shadow::Entry) { return ordered(e); });
  }

  // Whether the access fits in the list: it neither meets a write of another, nor as a write any access.
  static bool append(Page& page, const Span& s) {
    constexpr size_t kWritten = 64, kRead = 1024;
    if (page.written || s.write) {
      for (Span& old : page.spans) {
        if (!(old.write || s.write) || !old.meets(s)) continue;
        if (old.stamp != s.stamp || old.write != s.write) return false;
        if (old.begin <= s.begin && s.end <= old.end) return true;
        return false;
      }
    }
    page.written |= s.write;
    if (!page.spans.empty()) {
      Span& last = page.spans.back();
      if (last.stamp == s.stamp && last.write == s.write && last.atomic == s.atomic && s.begin <= last.end &&
          last.begin <= s.begin) {
        last.end = std::max(last.end, s.end);
        return true;
      }
    }
    // So many readers of one page tell enough.
    if (!page.written && page.spans.size() >= kRead) return true;
    if (page.written && page.spans.size() >= kWritten) return false;
    page.spans.push_back(s);
    return true;
  }

  Extent extent_;
  std::map<uint64_t, Region> regions_;  // by where they begin
  uint64_t written_begin_ = 0, written_end_ = 0;
  std::unordered_map<uint64_t, Page> pages_;
  std::vector<uint64_t> touched_;
  uint64_t recent_ = ~uint64_t{0};
  Page* page_ = nullptr;
};

}  // namespace tw::check
