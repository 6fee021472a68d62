#include "tilewright/layout/text.h"

#include <algorithm>
#include <cctype>

#include "tilewright/base/error.h"

namespace tw {
namespace {

std::string on_axis(int64_t v, Axis a) {
  return a == axis::m ? format("{}", v) : format("{}@{}", v, a.name());
}

std::string iters_text(char kind, std::span<const Iter> iters) {
  std::string extents, strides;
  for (const Iter& it : iters) {
    const char* sep = extents.empty() ? "" : ", ";
    extents += format("{}{}", sep, it.extent);
    strides += format("{}{}", sep, on_axis(it.stride, it.axis));
  }
  if (iters.size() == 1) return format("{}[{} : {}]", kind, extents, strides);
  return format("{}[({}) : ({})]", kind, extents, strides);
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Layout layout() {
    skip();
    if (!text_.substr(at_).starts_with("SW")) return tile();
    const Swizzle s = swizzle();
    if (!(take("∘") || take("o") || take("*"))) fail("expected 'o' between a swizzle and its layout");
    const size_t tile_starts = position();
    TileLayout t = tile();
    try {
      return Layout(s, std::move(t));
    } catch (const Error& e) {
      fail_at(tile_starts, e.message());
    }
  }

  Swizzle swizzle() {
    skip();
    const size_t start = at_;
    if (!take("SW")) fail("expected a swizzle, SW(M,B,S)");
    expect("(");
    const int64_t m = number();
    expect(",");
    const int64_t b = number();
    expect(",");
    const int64_t s = number();
    bool inner = true;
    if (take(",")) {
      if (take("outer")) inner = false;
      else if (!take("inner")) fail("expected 'inner' or 'outer'");
    }
    expect(")");
    for (int64_t v : {m, b, s})
      if (v < 0 || v > 62) fail_at(start, "a swizzle's numbers lie in 0..62");
    try {
      return Swizzle(static_cast<int>(m), static_cast<int>(b), static_cast<int>(s), inner);
    } catch (const Error& e) {
      fail_at(start, e.message());
    }
  }

  TileLayout tile() {
    skip();
    const size_t start = at_;
    std::vector<Iter> shard, replica;
    Point offset;
    take("S");
    shard = iters();
    while (!done()) {
      const bool minus = take("-");
      if (!minus) expect("+");
      if (!minus && take("R")) {
        const auto more = iters();
        replica.insert(replica.end(), more.begin(), more.end());
        continue;
      }
      const size_t number_at = position();
      const auto [value, ax] = value_on_axis();
      if (value < -(int64_t{1} << 61) || value > (int64_t{1} << 61))
        fail_at(number_at, "an offset fits in 61 bits");
      offset.add(ax, minus ? -value : value);
    }
    try {
      return TileLayout(std::move(shard), std::move(replica), std::move(offset));
    } catch (const Error& e) {
      fail_at(start, e.message());
    }
  }

  void end() {
    if (!done()) fail("expected the end of the layout");
  }

 private:
  std::vector<Iter> iters() {
    const bool bracket = take("[");
    const size_t extents_at = position();
    std::vector<int64_t> extents;
    list(
        [&] {
          const size_t here = position();
          extents.push_back(number());
          if (extents.back() < 1) fail_at(here, "an extent is at least 1");
        },
        bracket);
    std::vector<Iter> out;
    if (take(":")) {
      const size_t strides_at = position();
      list(
          [&] {
            const auto [stride, ax] = value_on_axis();
            out.push_back({1, stride, ax});
          },
          false);
      if (out.size() != extents.size())
        fail_at(strides_at, format("{} strides for {} extents", out.size(), extents.size()));
      for (size_t i = 0; i < out.size(); ++i) out[i].extent = extents[i];
    } else {
      try {
        out = TileLayout::row_major(extents).shard();
      } catch (const Error& e) {
        fail_at(extents_at, e.message());
      }
    }
    if (bracket) expect("]");
    return out;
  }

  // item, or (item, item, ...); `open` lets the items stand without parentheses, as in S[8, 4].
  template <class Item>
  void list(Item item, bool open) {
    const bool paren = take("(");
    item();
    while ((paren || open) && take(",")) item();
    if (paren) expect(")");
  }

  std::pair<int64_t, Axis> value_on_axis() {
    const int64_t v = number();
    if (!take("@")) return {v, axis::m};
    const size_t start = position();
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const auto name = text_.substr(start, at_ - start);
    const auto found = Axis::find(name);
    if (!found)
      fail_at(start, name.empty() ? "expected an axis name after '@'" : format("unknown axis '{}'", name));
    return {v, *found};
  }

  int64_t number() {
    const size_t start = position();
    const bool negative = take("-");
    position();
    if (at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_])))
      fail("expected a number");
    int64_t v = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, text_[at_] - '0', &v))
        fail_at(start, "number too large");
    return negative ? -v : v;
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  size_t position() {
    skip();
    return at_;
  }
  bool done() { return position() == text_.size(); }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(format("expected '{}'", token));
  }
  [[noreturn]] void fail(const std::string& what) { fail_at(position(), what); }
  [[noreturn]] void fail_at(size_t where, const std::string& what) {
    const SourceLoc loc(intern(where_), 1, static_cast<uint32_t>(where + 1));
    if (where >= text_.size()) user_error(loc, "{}, at the end of '{}'", what, text_);
    user_error(loc, "{}, at '{}'", what, text_.substr(where, 24));
  }

  std::string_view text_, where_;
  size_t at_ = 0;
};

}  // namespace

std::string to_string(const Iter& iter) {
  return format("{}:{}", iter.extent, on_axis(iter.stride, iter.axis));
}

std::string to_string(const TileLayout& layout) {
  std::string out = iters_text('S', layout.shard());
  if (!layout.replica().empty()) out += " + " + iters_text('R', layout.replica());
  for (const auto& [a, v] : layout.offset().entries())
    out += v < 0 ? format(" - {}", on_axis(-v, a)) : format(" + {}", on_axis(v, a));
  return out;
}

std::string to_string(const Swizzle& s) {
  return format("SW({},{},{}{})", s.per_element, s.swizzle_len, s.atom_len, s.inner ? "" : ",outer");
}

std::string to_string(const Layout& layout) {
  if (!layout.swizzle()) return to_string(layout.tile_layout());
  return format("{} o {}", to_string(*layout.swizzle()), to_string(layout.tile_layout()));
}

std::string to_string(const Point& point, std::span<const Axis> named) {
  std::vector<Axis> shown(named.begin(), named.end());
  for (const auto& [a, v] : point.entries()) shown.push_back(a);
  std::sort(shown.begin(), shown.end(), [](Axis a, Axis b) {
    return a.is_thread() != b.is_thread() ? a.is_thread() : a < b;  // threads first: who, then where
  });
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  std::string out;
  for (Axis a : shown) out += format("{}{} {}", out.empty() ? "" : ", ", a.name(), point[a]);
  return out;
}

TileLayout parse_tile_layout(std::string_view text, std::string_view where) {
  Parser p(text, where);
  TileLayout t = p.tile();
  p.end();
  return t;
}

Swizzle parse_swizzle(std::string_view text, std::string_view where) {
  Parser p(text, where);
  const Swizzle s = p.swizzle();
  p.end();
  return s;
}

Layout parse_layout(std::string_view text, std::string_view where) {
  Parser p(text, where);
  Layout l = p.layout();
  p.end();
  return l;
}

}  // namespace tw
