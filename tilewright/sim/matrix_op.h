#pragma once
#include <string>

#include "tilewright/sim/async.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/matrix_multiply.h"
#include "tilewright/sim/tensor_memory.h"

// What the asynchronous operations of wgmma and tcgen05 have in common.
namespace tw::sim {

// Errors of an operation name the instruction that issued it, which its warp has long left.
[[noreturn]] void fail(const AsyncOp& op, ErrorKind kind, const std::string& message);

// Runs f; an Error without a location becomes one of `warp`'s current instruction, or of `op`.
template <class F>
auto located(const Warp& warp, uint32_t lanes, F f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.loc() || e.kind() == ErrorKind::internal) throw;
    warp.raise(e.kind(), lanes, e.message(), e.cause());
  }
}
template <class F>
auto located(const AsyncOp& op, F f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.loc() || e.kind() == ErrorKind::internal) throw;
    fail(op, e.kind(), e.message());
  }
}

// An operand in the CTA's shared memory, its addresses made offsets. A fault if it does not lie inside.
MatrixOperand place_in_shared(const Cta& cta, const SharedMatrix& matrix, DType type, bool mn_major,
                              int extent, int k, char letter);
// `op` reads the operand now: a fault that names buffer and element if a byte of it is unwritten.
void check_read(const AsyncOp& op, const Cta& cta, const OperandGeometry& g, char letter);

}  // namespace tw::sim
