#include "tilewright/check/elsewhere.h"

#include <algorithm>

namespace tw::check {
namespace {

using Part = std::shared_ptr<const Known>;

bool covers(const Known& a, const Known& b) {
  return a.ordinary.covers(b.ordinary) && a.proxied.covers(b.proxied) && a.caused.covers(b.caused) &&
         a.maps.covers(b.maps);
}

Part merged(const Part& a, const Part& b) {
  if (a == b || covers(*a, *b)) return a;
  if (covers(*b, *a)) return b;
  auto both = std::make_shared<Known>(*a);
  both->ordinary.join(b->ordinary);
  both->proxied.join(b->proxied);
  both->caused.join(b->caused);
  both->maps.join(b->maps);
  return both;
}

// `part` takes over what is ordinary, from place `begin` on.
Elsewhere fenced(const Elsewhere& a, Clock Known::*part, size_t begin) {
  if (!a) return a;
  auto out = std::make_shared<ElsewhereMap>();
  for (const auto& [cluster, known] : *a) {
    if ((*known.*part).covers(known->ordinary, begin)) {
      out->emplace_back(cluster, known);
      continue;
    }
    auto seen = std::make_shared<Known>(*known);
    (*seen.*part).join(seen->ordinary, begin);
    out->emplace_back(cluster, std::move(seen));
  }
  return out;
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

Elsewhere proxied(const Elsewhere& a, size_t global) { return fenced(a, &Known::proxied, global); }
Elsewhere mapped(const Elsewhere& a) { return fenced(a, &Known::maps, 0); }

const Known* find(const Elsewhere& a, uint64_t cluster) {
  if (!a) return nullptr;
  const auto at = std::lower_bound(a->begin(), a->end(), cluster,
                                   [](const auto& entry, uint64_t c) { return entry.first < c; });
  return at != a->end() && at->first == cluster ? at->second.get() : nullptr;
}

}  // namespace tw::check
