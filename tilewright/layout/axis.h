#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw {

// A named direction of a physical space: a coordinate of threads (laneid, warpid, ...) or of storage (m,
// TCol, ...). Interned: copying and comparing cost as much as for an integer.
class Axis {
 public:
  constexpr Axis() = default;  // `m`

  std::string_view name() const;
  constexpr bool is_thread() const { return thread_; }
  constexpr bool is_memory() const { return !thread_; }
  constexpr uint16_t id() const { return id_; }

  constexpr bool operator==(const Axis&) const = default;
  // By kind (memory first), then in the order of registration: stable within one run of the program.
  constexpr std::strong_ordering operator<=>(const Axis& o) const {
    if (auto c = thread_ <=> o.thread_; c != 0) return c;
    return id_ <=> o.id_;
  }

  // By name or short name (l laneid, w warpid, wiw wid_in_wg, tiw tid_in_wg); nullopt when unknown.
  static std::optional<Axis> find(std::string_view name);
  // Adds a named axis, or returns the one already there; thread-safe. A user error when `name` is no
  // identifier, or is known with the other kind.
  enum class Kind { memory, thread };
  static Axis define(std::string_view name, Kind kind);

  // One of the predefined axes below.
  constexpr Axis(uint16_t id, bool thread) : id_(id), thread_(thread) {}

 private:
  uint16_t id_ = 0;
  bool thread_ = false;
};

namespace axis {
// Storage. m counts elements (of a buffer, or registers of a thread); TLane, TCol address tensor memory;
// P, F, Bank are the partition, free and bank coordinates of a partitioned scratchpad.
inline constexpr Axis m{0, false}, P{1, false}, F{2, false}, Bank{3, false}, TLane{4, false}, TCol{5, false};
// Threads. warpid = 4 wgid + wid_in_wg, tid_in_wg = 32 wid_in_wg + laneid, tx = 128 wgid + tid_in_wg.
inline constexpr Axis laneid{6, true}, warpid{7, true}, wgid{8, true}, wid_in_wg{9, true},
    tid_in_wg{10, true}, tx{11, true};
// CTAs in the grid (bx, by, bz), in their cluster (cbx, cby, cbz).
inline constexpr Axis bx{12, true}, by{13, true}, bz{14, true}, cbx{15, true}, cby{16, true}, cbz{17, true};
}  // namespace axis

}  // namespace tw
