#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/layout/detail.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {

TileLayout TileLayout::permute_by_groups(std::span<const int> separators, std::span<const int> order) const {
  if (separators.empty() || separators.front() != 0 || separators.back() != static_cast<int>(shard_.size()) ||
      !std::is_sorted(separators.begin(), separators.end()))
    user_error({}, "separators rise from 0 to the number of iters, {}", shard_.size());
  const size_t groups = separators.size() - 1;
  std::vector<bool> seen(groups);
  std::vector<Iter> out;
  for (int g : order) {
    if (g < 0 || static_cast<size_t>(g) >= groups || seen[g])
      user_error({}, "an order of {} dimensions names each of 0..{} once", groups,
                 static_cast<int>(groups) - 1);
    seen[g] = true;
    detail::append(out, std::span(shard_).subspan(separators[g], separators[g + 1] - separators[g]));
  }
  if (order.size() != groups)
    user_error({}, "an order of {} dimensions names each of 0..{} once", groups,
               static_cast<int>(groups) - 1);
  return TileLayout(std::move(out), replica_, offset_);
}

TileLayout TileLayout::permute_dims(std::span<const int64_t> shape, std::span<const int> order) const {
  const Grouped g = group(shape);
  return g.layout.permute_by_groups(g.separators, order).canonicalize();
}

TileLayout TileLayout::broadcast(std::span<const int64_t> shape, int position, int64_t extent) const {
  if (position < 0 || static_cast<size_t>(position) > shape.size())
    user_error({}, "a new dimension stands at 0..{}, not {}", shape.size(), position);
  const Grouped g = group(shape);
  std::vector<Iter> out = g.layout.shard_;
  out.insert(out.begin() + g.separators[position], Iter{extent, 0, axis::m});
  return TileLayout(std::move(out), replica_, offset_).canonicalize();
}

TileLayout TileLayout::unpack(int64_t n, Axis axis) const {
  if (n < 1) user_error({}, "an element is unpacked into at least 1, not {}", n);
  auto factor = [&](Axis a) { return a == axis ? n : 1; };
  std::vector<Iter> out = detail::scale(shard_, factor);
  out.push_back({n, 1, axis});
  return TileLayout(std::move(out), detail::scale(replica_, factor), detail::scale(offset_, factor))
      .canonicalize();
}

std::optional<TileLayout> TileLayout::pack(int64_t n, Axis axis) const {
  if (n < 1) user_error({}, "at least 1 element is packed into one, not {}", n);
  if (size() % n != 0) return std::nullopt;
  const Shape split{size() / n, n};
  const TileLayout c = canonicalize();
  const auto g = c.try_group(split);
  if (!g || detail::fuse(g->dim(1)) != detail::fuse(std::vector<Iter>{{n, 1, axis}})) return std::nullopt;
  bool whole = true;
  auto divide = [&](std::span<const Iter> iters) {
    std::vector<Iter> out(iters.begin(), iters.end());
    for (Iter& it : out)
      if (it.axis == axis && it.extent > 1) {
        whole = whole && it.stride % n == 0;
        it.stride /= n;
      }
    return out;
  };
  std::vector<Iter> shard = divide(g->dim(0)), replica = divide(c.replica_);
  Point origin;
  for (const auto& [a, v] : c.offset_.entries()) {
    whole = whole && (a != axis || v % n == 0);
    origin.add(a, a == axis ? v / n : v);
  }
  if (!whole) return std::nullopt;
  return TileLayout(std::move(shard), std::move(replica), std::move(origin)).canonicalize();
}

TileLayout TileLayout::storage() const {
  std::vector<Iter> kept;
  for (const Iter& it : shard_)
    if (it.axis.is_memory()) kept.push_back(it);
  return TileLayout(std::move(kept)).canonicalize();
}

}  // namespace tw
