#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tilewright/check/clock.h"

// Knowledge that comes from other clusters of the launch, by release and acquire patterns on global memory.
namespace tw::check {

// What is known of one cluster's actors: as in View.
struct Known {
  Clock ordinary, proxied, caused, maps;
};

// By cluster, ascending. Shared and never changed: most hand-overs pass on the same.
using ElsewhereMap = std::vector<std::pair<uint64_t, std::shared_ptr<const Known>>>;
using Elsewhere = std::shared_ptr<const ElsewhereMap>;

Elsewhere merged(const Elsewhere& a, const Elsewhere& b);
// The same after a proxy fence of global memory: all that is known of it is visible to the async proxy.
// `global`: as in Spaces; all clusters of a launch are alike.
Elsewhere proxied(const Elsewhere& a, size_t global);
// The same after a fence.proxy.tensormap that acquires: all that is known may be used as a tensor map.
Elsewhere mapped(const Elsewhere& a);
const Known* find(const Elsewhere& a, uint64_t cluster);

}  // namespace tw::check
