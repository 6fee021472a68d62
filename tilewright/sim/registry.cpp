#include "tilewright/sim/decode.h"

namespace tw::sim {

DecodeFunction Registry::find(std::string_view opcode) const {
  auto it = table_.find(std::string(opcode));
  return it == table_.end() ? nullptr : it->second;
}

const Registry& Registry::standard() {
  static const Registry registry = [] {
    Registry r;
    register_integer(r);
    register_logic(r);
    register_float(r);
    register_math(r);
    register_compare(r);
    register_convert(r);
    register_move(r);
    register_memory(r);
    register_control(r);
    register_call(r);
    register_sync(r);
    register_mbarrier(r);
    register_warp(r);
    register_atomic(r);
    register_cp_async(r);
    register_launch_control(r);
    register_matrix(r);
    register_wmma(r);
    register_tensormap(r);
    register_wgmma(r);
    register_tcgen05(r);
    return r;
  }();
  return registry;
}

}  // namespace tw::sim
