#pragma once
#include <array>

#include "tilewright/check/clock.h"
#include "tilewright/check/elsewhere.h"
#include "tilewright/check/scope.h"

namespace tw::check {

// What an actor knows to have happened, and for whom its effects are visible. The clocks of the second half
// stay empty where a kernel has nothing of the kind.
struct View {
  explicit View(size_t actors = 0)
      : ordinary(actors), proxied(actors), caused(actors), returned(actors), tensor(actors), fenced(actors) {}
  Clock ordinary;  // accesses of threads, ordered by synchronisation
  Clock proxied;   // of those, what a proxy fence made visible to the async proxy, by memory (spaces.h)
  Clock caused;    // events that asynchronous operations followed, beyond `ordinary`
  Clock returned;  // of those, what a proxy fence gave back to threads, by memory
  Clock tensor;    // tensor-memory operations this actor's own may follow: a fence::after came since
  Clock fenced;    // and those that a fence::before passed on

  Clock narrow;                               // accesses known only through hand-overs of too small a scope
  std::array<Clock, kFenceScopes> published;  // what fences let relaxed writes hand over, by their scope

  Clock maps;           // writes that a fence.proxy.tensormap acquired
  Elsewhere elsewhere;  // what is known of other clusters

  void join(const View& other) {
    ordinary.join(other.ordinary);
    join_all_but_ordinary(other);
  }
  void join_all_but_ordinary(const View& other) {
    proxied.join(other.proxied);
    caused.join(other.caused);
    returned.join(other.returned);
    fenced.join(other.fenced);
    narrow.join(other.narrow);
    maps.join(other.maps);
    if (other.elsewhere && elsewhere != other.elsewhere) elsewhere = merged(elsewhere, other.elsewhere);
    for (size_t s = 0; s < kFenceScopes; ++s) published[s].join(other.published[s]);
  }
};

}  // namespace tw::check
