#include "tilewright/check/scope.h"

#include <string_view>

namespace tw::check {
namespace {

Scope scope_of(const ptx::Instruction& i, Scope otherwise) {
  for (std::string_view m : i.tokens) {
    if (m == "cta") return Scope::cta;
    if (m == "cluster") return Scope::cluster;
    if (m == "gpu" || m == "gl" || m == "sys") return Scope::gpu;
  }
  return otherwise;
}

Semantics of_memory(const ptx::Instruction& i, bool atomic) {
  Semantics s;
  const bool ordered = i.has("acq_rel");
  s.acquires = ordered || i.has("acquire");
  s.releases = ordered || i.has("release");
  s.is_volatile = i.has("volatile");
  const bool relaxed = i.has("relaxed") || s.is_volatile || i.has("mmio");
  s.strong = atomic || s.acquires || s.releases || relaxed;
  if (!s.strong) return s;
  // "atom", "red": .relaxed and .gpu where nothing is said; "volatile Operation": relaxed at system scope.
  s.scope = scope_of(i, Scope::gpu);
  // "Reductions do not form Acquire Patterns".
  s.observes = i.opcode() == "ld" || i.opcode() == "atom";
  if (!s.observes) s.acquires = false;
  return s;
}

Semantics of_fence(const ptx::Instruction& i) {
  Semantics s;
  // "A .release proxy fence can form a release sequence": of the proxy fences these have a scope.
  if ((i.has("proxy") && !i.has("tensormap::generic")) || i.has("mbarrier_init")) return s;
  s.strong = true;
  s.acquires = !i.has("release");
  s.releases = !i.has("acquire");
  s.scope = scope_of(i, Scope::gpu);
  return s;
}

}  // namespace

const char* name(Scope s) {
  switch (s) {
    case Scope::none: return "no";
    case Scope::cta: return ".cta";
    case Scope::cluster: return ".cluster";
    case Scope::gpu: return ".gpu";
  }
  return "?";
}

Semantics semantics(const ptx::Instruction& i) {
  const std::string_view op = i.opcode();
  if (op == "ld" || op == "st") return of_memory(i, false);
  if (op == "atom" || op == "red") return of_memory(i, true);
  if (op == "fence" || op == "membar") return of_fence(i);
  Semantics s;
  if (op == "mbarrier") {
    // "mbarrier.arrive", "mbarrier.try_wait": release or acquire at .cta where nothing is said.
    const bool waits = i.has("try_wait") || i.has("test_wait");
    s.strong = true;
    s.scope = scope_of(i, Scope::cta);
    (waits ? s.acquires : s.releases) = !i.has("relaxed");
  } else if (op == "bar" || op == "barrier") {
    const bool cluster = i.has("cluster");
    s.strong = true;
    s.scope = cluster ? Scope::cluster : Scope::cta;
    s.acquires = !i.has("arrive");
    s.releases = !i.has("wait") && !i.has("relaxed");
  }
  return s;
}

}  // namespace tw::check
