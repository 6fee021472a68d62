#include "tilewright/check/spaces.h"

namespace tw::check {

ProxyFence proxy_fence(const ptx::Instruction& inst) {
  ProxyFence f;
  // "fence.proxy.async::generic": from the generic to the async proxy alone, and for shared memory.
  if (inst.has("async::generic")) {
    f.own = true;
    f.peers = inst.has("acquire");
    return f;
  }
  if (!inst.has("async")) return f;
  const bool cta = inst.has("shared::cta"), cluster = inst.has("shared::cluster"),
             global = inst.has("global");
  f.own = !global;
  f.peers = !global && !cta;
  f.global = !cta && !cluster;
  f.back = true;
  return f;
}

}  // namespace tw::check
