#pragma once
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/matrix_op.h"

// What the tcgen05 instructions of one CTA share. ops_tcgen05_alloc.cpp has allocation, ops_tcgen05.cpp
// loads, stores and synchronisation, ops_tcgen05_mma.cpp and ops_tcgen05_cp.cpp what the tensor core does.
//
// CTA pairs (.cta_group::2, "CTA Pair"): two CTAs whose %cluster_ctarank differs in the last bit only.
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
  // Of all threads, in issue order: the pipelines. Those of a pair are kept by its even CTA.
  IssuedOps copies, products;

  static Tcgen05& of(Cta& cta);
  std::string name_of(int lane, int column) const;  // "acc, column 5 (lane 3)"
};

// What an operation of the tensor core works on: the CTA of its warp, or the CTAs of the pair, the even one
// first.
struct CtaGroup {
  std::array<Tcgen05*, 2> members{};
  size_t count = 1;
  Tcgen05& home() const { return *members[0]; }  // keeps the pipelines
};
// A fault if there is no peer CTA or it has exited ("Issue Granularity").
CtaGroup group_of(const Warp& w, uint32_t lanes, bool pair);

void issue_to_tensor_core(Warp& w, uint32_t lane, std::shared_ptr<AsyncOp> op, std::string_view engine);
void require_all_lanes(const Warp& w, uint32_t lanes);
// The value that all lanes have; a fault that names `what` otherwise.
uint32_t uniform(const Warp& w, Slot s, uint32_t lanes, const char* what);

// Operands common to the family.
bool take_cta_group(Decoding& d);  // true: .cta_group::2
void decode_tcgen05_alloc(Decoding& d, std::string_view what, bool pair);
void decode_tcgen05_mma(Decoding& d, bool pair);
void decode_tcgen05_cp(Decoding& d, bool pair);
void decode_tcgen05_commit(Decoding& d, bool pair);
uint32_t tensor_address(const Warp& w, Slot s, int64_t offset, uint32_t lane);

}  // namespace tw::sim
