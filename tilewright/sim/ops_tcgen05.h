#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/matrix_op.h"

// What the tcgen05 instructions of one CTA share; ops_tcgen05.cpp has allocation, loads, stores and
// synchronisation, ops_tcgen05_mma.cpp what the tensor core does: mma, cp, commit.
namespace tw::sim {

// Operations a thread or warp has issued, as far as something may still wait for them.
class IssuedOps {
 public:
  void add(std::shared_ptr<AsyncOp> op) { ops_.push_back(std::move(op)); }
  // Whether all have written their results.
  bool done() const {
    for (const auto& op : ops_) {
      if (!op->reached(Milestone::writes_done)) return false;
    }
    return true;
  }
  void prune() {
    std::erase_if(ops_, [](const auto& op) { return op->reached(Milestone::writes_done); });
  }
  const std::vector<std::shared_ptr<AsyncOp>>& ops() const { return ops_; }
  size_t size() const { return ops_.size(); }

 private:
  std::vector<std::shared_ptr<AsyncOp>> ops_;
};

struct Tcgen05 {
  explicit Tcgen05(Cta& owner) : cta(owner) {}
  Cta& cta;
  TensorMemory memory;
  std::vector<IssuedOps> loads, stores;                 // by warp of the CTA
  std::unordered_map<uint32_t, IssuedOps> tensor_core;  // mma and cp by thread: what tcgen05.commit tracks
  IssuedOps copies, products;                           // of all threads, in issue order: the pipelines

  static Tcgen05& of(Cta& cta);
  std::string name_of(int lane, int column) const;  // "acc, column 5 (lane 3)"
};

// Operands common to the family.
void take_cta_group(Decoding& d);  // cta_group::2 is not modelled
void decode_tcgen05_mma(Decoding& d);
void decode_tcgen05_cp(Decoding& d);
void decode_tcgen05_commit(Decoding& d);
uint32_t tensor_address(const Warp& w, Slot s, int64_t offset, uint32_t lane);

}  // namespace tw::sim
