#include "tilewright/check/elsewhere.h"

#include <algorithm>

namespace tw::check {
namespace {

using Part = std::shared_ptr<const Known>;

bool covers(const Known& a, const Known& b) {
  return a.ordinary.covers(b.ordinary) && a.proxied.covers(b.proxied) && a.caused.covers(b.caused);
}

Part merged(const Part& a, const Part& b) {
  if (a == b || covers(*a, *b)) return a;
  if (covers(*b, *a)) return b;
  auto both = std::make_shared<Known>(*a);
  both->ordinary.join(b->ordinary);
  both->proxied.join(b->proxied);
  both->caused.join(b->caused);
  return both;
}

}  // namespace

Elsewhere merged(const Elsewhere& a, const Elsewhere& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  auto both = std::make_shared<ElsewhereMap>();
  both->reserve(std::max(a->size(), b->size()));
  bool fresh = false;  // anything that `a` lacks
  auto x = a->begin(), y = b->begin();
  while (x != a->end() || y != b->end()) {
    if (y == b->end() || (x != a->end() && x->first < y->first)) {
      both->push_back(*x++);
    } else if (x == a->end() || y->first < x->first) {
      both->push_back(*y++);
      fresh = true;
    } else {
      both->emplace_back(x->first, merged(x->second, y->second));
      fresh |= both->back().second != x->second;
      ++x, ++y;
    }
  }
  return fresh ? both : a;
}

Elsewhere proxied(const Elsewhere& a, size_t global) {
  if (!a) return a;
  auto out = std::make_shared<ElsewhereMap>();
  for (const auto& [cluster, known] : *a) {
    if (known->proxied.covers(known->ordinary, global)) {
      out->emplace_back(cluster, known);
      continue;
    }
    auto seen = std::make_shared<Known>(*known);
    seen->proxied.join(seen->ordinary, global);
    out->emplace_back(cluster, std::move(seen));
  }
  return out;
}

const Known* find(const Elsewhere& a, uint64_t cluster) {
  if (!a) return nullptr;
  const auto at = std::lower_bound(a->begin(), a->end(), cluster,
                                   [](const auto& entry, uint64_t c) { return entry.first < c; });
  return at != a->end() && at->first == cluster ? at->second.get() : nullptr;
}

}  // namespace tw::check
