#include <algorithm>
#include <array>
#include <tuple>

#include "tilewright/layout/detail.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {
namespace {

// Replicas describe a set, so their order does not matter, and two that interlock without gaps are one.
std::vector<Iter> canonical_replicas(const std::vector<Iter>& replicas) {
  std::vector<Iter> out;
  for (const Iter& it : replicas)
    if (it.extent > 1 && it.stride > 0) out.push_back(it);
  auto key = [](const Iter& it) { return std::tuple(it.axis, -it.stride, -it.extent); };
  std::sort(out.begin(), out.end(), [&](const Iter& a, const Iter& b) { return key(a) < key(b); });
  for (size_t i = out.size(); i-- > 1;) {
    Iter &outer = out[i - 1], inner = out[i];
    if (outer.axis != inner.axis || outer.stride % inner.stride != 0) continue;
    const int64_t step = outer.stride / inner.stride;
    if (step > inner.extent) continue;
    outer = {inner.extent + (outer.extent - 1) * step, inner.stride, outer.axis};
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
    i = out.size();  // the wider iter may now meet others
  }
  return out;
}

// What the thread axes of a layout become: each row asks for all axes named in it, and renames them into one.
struct Widening {
  std::array<Axis, 3> parts;
  size_t count;
  Axis to;
};

int64_t per_thread_axis(Axis part, Axis to) {
  const bool to_warps = to == axis::warpid;
  if (part == axis::laneid || part == axis::tid_in_wg) return 1;
  if (part == axis::warpid) return 32;
  if (part == axis::wid_in_wg) return to_warps ? 1 : 32;
  return to_warps ? 4 : 128;  // wgid
}

// A coordinate beyond the part's own range would land on another thread when renamed.
int64_t places(Axis part) {
  if (part == axis::laneid) return 32;
  if (part == axis::wid_in_wg) return 4;
  if (part == axis::tid_in_wg) return 128;
  return int64_t{1} << 40;
}

}  // namespace

namespace detail {

std::vector<Iter> fuse(std::span<const Iter> shard) {
  std::vector<Iter> out;
  for (Iter it : shard) {
    if (it.extent == 1) continue;
    if (it.stride == 0) it.axis = axis::m;
    if (!out.empty() && out.back().axis == it.axis && out.back().stride == it.extent * it.stride)
      out.back() = {out.back().extent * it.extent, it.stride, it.axis};
    else out.push_back(it);
  }
  return out;
}

}  // namespace detail

TileLayout TileLayout::canonicalize() const {
  return TileLayout(detail::fuse(shard_), canonical_replicas(replica_), offset_);
}

TileLayout TileLayout::canonicalize_threads() const {
  using namespace axis;
  static const Widening widenings[] = {
      {{wgid, wid_in_wg, laneid}, 3, tx},     {{wgid, tid_in_wg, m}, 2, tx},     {{warpid, laneid, m}, 2, tx},
      {{wid_in_wg, laneid, m}, 2, tid_in_wg}, {{wgid, wid_in_wg, m}, 2, warpid},
  };
  TileLayout now = canonicalize();
  const auto present = now.axes();
  const auto threads = std::count_if(present.begin(), present.end(), [](Axis a) {
    return a == wgid || a == wid_in_wg || a == laneid || a == tid_in_wg || a == warpid || a == tx;
  });
  for (const Widening& w : widenings) {
    const auto parts = std::span(w.parts).first(w.count);
    if (threads != static_cast<std::ptrdiff_t>(w.count)) continue;
    if (!std::all_of(parts.begin(), parts.end(), [&](Axis a) {
          return now.has_axis(a) && now.span(a) <= places(a) && now.span(a) - now.extent(a) >= 0;
        }))
      continue;
    auto widen = [&](std::vector<Iter> iters) {
      for (Iter& it : iters)
        if (std::find(parts.begin(), parts.end(), it.axis) != parts.end()) {
          it.stride = detail::checked_mul(it.stride, per_thread_axis(it.axis, w.to));
          it.axis = w.to;
        }
      return iters;
    };
    Point offset;
    for (const auto& [a, v] : now.offset_.entries()) {
      const bool part = std::find(parts.begin(), parts.end(), a) != parts.end();
      offset.add(part ? w.to : a, part ? detail::checked_mul(v, per_thread_axis(a, w.to)) : v);
    }
    return TileLayout(widen(now.shard_), widen(now.replica_), offset).canonicalize();
  }
  return now;
}

}  // namespace tw
