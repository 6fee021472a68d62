#include "tilewright/ir/kernel.h"

#include "tilewright/base/error.h"

namespace tw::ir {

const char* name(Space space) {
  static constexpr const char* kNames[] = {"global", "shared", "tensor_memory", "registers"};
  return kNames[static_cast<int>(space)];
}
const char* name(Scope scope) {
  static constexpr const char* kNames[] = {"thread", "warp", "warpgroup", "cta", "cta_pair", "cluster"};
  return kNames[static_cast<int>(scope)];
}
const char* name(TileOpKind kind) {
  static constexpr const char* kNames[] = {"copy", "copy_async", "fill", "compute", "gemm_async"};
  return kNames[static_cast<int>(kind)];
}
const char* name(Arch arch) {
  static constexpr const char* kNames[] = {"sm_90a", "sm_100a", "sm_103a"};
  return kNames[static_cast<int>(arch)];
}

Arch arch_from_name(std::string_view text) {
  for (Arch a : {Arch::sm_90a, Arch::sm_100a, Arch::sm_103a})
    if (text == name(a)) return a;
  user_error({}, "unknown architecture '{}'; known: sm_90a, sm_100a, sm_103a", text);
}

std::vector<int64_t> Buffer::extents() const {
  std::vector<int64_t> out;
  for (const Expr& e : shape) {
    auto c = e.constant();
    if (!c) user_error(loc, "the shape of '{}' must be constant here", name);
    out.push_back(*c);
  }
  return out;
}

int64_t Buffer::elements() const {
  int64_t n = 1;
  for (int64_t e : extents()) n *= e;
  return n;
}

std::vector<int64_t> Tile::shape() const {
  std::vector<int64_t> out;
  for (const TileDim& d : dims)
    if (d.kept) out.push_back(d.extent);
  return out;
}

bool Tile::whole() const {
  for (size_t i = 0; i < dims.size(); ++i)
    if (!dims[i].offset.is(0) || !buffer->shape[i].is(dims[i].extent)) return false;
  return true;
}

}  // namespace tw::ir
