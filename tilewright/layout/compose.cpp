#include <algorithm>
#include <numeric>

#include "tilewright/layout/detail.h"
#include "tilewright/layout/tile_layout.h"

namespace tw {
namespace {

// A digit of the physical side: what one step of it means to the logical index.
struct Digit {
  int64_t extent, stride;  // stride on the physical axis
  int64_t weight;          // of the logical index; 0 for a copy
};

// Digits of a canonical layout on one axis, widest stride first.
std::vector<Digit> digits_on(const TileLayout& l, Axis a) {
  std::vector<Digit> out;
  int64_t weight = 1;
  for (size_t i = l.shard().size(); i-- > 0;) {
    const Iter& it = l.shard()[i];
    if (it.extent > 1 && it.axis == a) out.push_back({it.extent, it.stride, weight});
    weight *= it.extent;
  }
  for (const Iter& it : l.replica())
    if (it.axis == a) out.push_back({it.extent, it.stride, 0});
  std::sort(out.begin(), out.end(),
            [](const Digit& x, const Digit& y) { return std::abs(x.stride) > std::abs(y.stride); });
  return out;
}

int64_t lowest(const TileLayout& l, Axis a) { return l.span(a) - l.extent(a); }

// Looks for digit differences, not all of them 0 on the shard, that cancel on one axis.
struct Collision {
  std::span<const Digit> digits;       // widest stride first
  std::vector<int64_t> reach, common;  // of the digits from i on: the largest sum, the gcd of the strides

  explicit Collision(std::span<const Digit> d) : digits(d), reach(d.size() + 1), common(d.size() + 1) {
    for (size_t i = d.size(); i-- > 0;) {
      reach[i] = reach[i + 1] + (d[i].extent - 1) * std::abs(d[i].stride);
      common[i] = std::gcd(common[i + 1], d[i].stride);
    }
  }
  bool found(size_t i, int64_t sum, bool distinct) const {
    if (i == digits.size()) return sum == 0 && distinct;
    if (std::abs(sum) > reach[i] || (common[i] != 0 && sum % common[i] != 0)) return false;
    const int64_t s = std::abs(digits[i].stride), top = digits[i].extent - 1;
    // |sum + s*delta| must stay within the reach of the digits after this one.
    const int64_t first = std::max(-top, -((sum + reach[i + 1]) / s)),
                  last = std::min(top, (reach[i + 1] - sum) / s);
    for (int64_t delta = first; delta <= last; ++delta)
      if (found(i + 1, sum + s * delta, distinct || (delta != 0 && digits[i].weight != 0))) return true;
    return false;
  }
};

// Follows the values 0, s, 2s, ... of one iter through the digits of `a`, as long as no carry can occur.
class Through {
 public:
  explicit Through(const std::vector<Iter>& a) : a_(a), weight_(a.size(), 1), used_(a.size(), 0) {
    for (size_t k = a.size(); k-- > 1;) weight_[k - 1] = weight_[k] * a[k].extent;
  }
  void start_at(int64_t linear) {
    for (size_t k = 0; k < a_.size(); ++k) used_[k] += linear / weight_[k] % a_[k].extent;
  }
  std::optional<std::vector<Iter>> follow(int64_t extent, int64_t stride) {
    std::vector<Iter> out;
    if (stride == 0) return std::vector<Iter>{{extent, 0, axis::m}};
    if (stride < 0) return std::nullopt;
    while (extent > 1) {
      size_t k = 0;
      while (k < a_.size() && weight_[k] > stride) ++k;
      if (k == a_.size() || stride % weight_[k] != 0) return std::nullopt;
      const int64_t step = stride / weight_[k];
      int64_t count = extent;
      if ((extent - 1) * step >= a_[k].extent) {
        if (a_[k].extent % step != 0 || step >= a_[k].extent) return std::nullopt;
        count = a_[k].extent / step;
        if (extent % count != 0) return std::nullopt;
      }
      used_[k] += (count - 1) * step;
      out.insert(out.begin(), Iter{count, step * a_[k].stride, a_[k].axis});
      extent /= count;
      stride *= count;
    }
    return out;
  }
  bool carries() const {
    for (size_t k = 0; k < a_.size(); ++k)
      if (used_[k] >= a_[k].extent) return true;
    return false;
  }

 private:
  const std::vector<Iter>& a_;
  std::vector<int64_t> weight_,
      used_;  // used_: the highest digit value the iters followed so far can add up to
};

}  // namespace

bool TileLayout::is_injective() const {
  for (const Iter& it : shard_)
    if (it.extent > 1 && it.stride == 0) return false;
  const TileLayout c = canonicalize();
  for (Axis a : c.axes()) {
    const auto digits = digits_on(c, a);
    if (c.size(a) > c.extent(a)) return false;
    if (Collision(digits).found(0, 0, false)) return false;
  }
  return true;
}

int64_t TileLayout::contiguous(Axis axis) const {
  const Iter last = detail::fuse(shard_).empty() ? Iter{} : detail::fuse(shard_).back();
  return last.axis == axis && last.stride == 1 ? last.extent : 1;
}

std::optional<TileLayout> TileLayout::inverse(std::span<const Axis> order) const {
  const TileLayout c = canonicalize();
  for (Axis a : c.axes())
    if (std::find(order.begin(), order.end(), a) == order.end()) return std::nullopt;
  std::vector<Iter> out;
  int64_t origin = 0;
  for (Axis a : order) {
    if (lowest(c, a) != 0) return std::nullopt;
    const auto digits = digits_on(c, a);
    int64_t above = c.extent(a);
    for (const Digit& d : digits) {
      if (d.stride == 0 || above != std::abs(d.stride) * d.extent) return std::nullopt;
      above = std::abs(d.stride);
      if (d.stride < 0) origin += (d.extent - 1) * d.weight;
      out.push_back({d.extent, d.stride < 0 ? -d.weight : d.weight, axis::m});
    }
    if (above != 1) return std::nullopt;
  }
  return TileLayout(std::move(out), {}, {{axis::m, origin}}).canonicalize();
}

std::optional<TileLayout> TileLayout::inverse() const {
  auto found = canonicalize().axes();
  if (found.size() > 1) return std::nullopt;
  if (found.empty()) found.push_back(axis::m);
  return inverse(found);
}

std::optional<TileLayout> TileLayout::compose(const TileLayout& b) const {
  if (lowest(b, axis::m) < 0 || b.span(axis::m) > size()) return std::nullopt;
  const int64_t start = b.offset_[axis::m];
  Point origin;
  for (const auto& [a, v] : b.offset_.entries())
    if (a != axis::m) origin.add(a, v);

  const TileLayout a = canonicalize();
  Through through(a.shard_);
  through.start_at(start);
  std::vector<Iter> shard, replica = a.replica_;
  bool followed = true;
  for (auto [from, to] : {std::pair{&b.shard_, &shard}, std::pair{&b.replica_, &replica}})
    for (const Iter& it : *from) {
      if (it.axis != axis::m || it.extent == 1) {
        to->push_back(it);
        continue;
      }
      const auto pieces = through.follow(it.extent, it.stride);
      followed = followed && pieces;
      if (followed) detail::append(*to, *pieces);
    }
  if (followed && !through.carries()) {
    origin += a.at(start);
    return TileLayout(std::move(shard), std::move(replica), std::move(origin)).canonicalize();
  }

  // Carries are possible: ask the map itself, the copies of an element beside its shard.
  std::vector<Iter> digits = b.shard_;
  detail::append(digits, b.replica_);
  auto map = [&](int64_t x) {
    Point inner = detail::shard_at(digits, x);
    Point p = a.at(inner[axis::m] + start);
    for (const auto& [ax, v] : inner.entries())
      if (ax != axis::m) p.add(ax, v);
    return p;
  };
  const auto all = detail::fit(b.size() * b.copies(), map);
  if (!all) return std::nullopt;
  origin += map(0);
  const Shape sides{b.size(), b.copies()};
  const auto grouped = TileLayout(*all).try_group(sides);
  if (!grouped) return std::nullopt;
  replica = a.replica_;
  detail::append(replica, grouped->dim(1));
  return TileLayout({grouped->dim(0).begin(), grouped->dim(0).end()}, std::move(replica), std::move(origin))
      .canonicalize();
}

std::optional<TileLayout> TileLayout::complement(int64_t places, Axis axis) const {
  const TileLayout c = canonicalize();
  for (Axis a : c.axes())
    if (a != axis) return std::nullopt;
  if (lowest(c, axis) != 0 || places < 1) return std::nullopt;
  std::vector<Iter> gaps;
  int64_t above = places;
  for (const Digit& d : digits_on(c, axis)) {
    const int64_t stride = std::abs(d.stride);
    if (stride == 0 || above % (stride * d.extent) != 0) return std::nullopt;
    gaps.push_back({above / (stride * d.extent), stride * d.extent, axis});
    above = stride;
  }
  gaps.push_back({above, 1, axis});
  return TileLayout(std::move(gaps)).canonicalize();
}

}  // namespace tw
