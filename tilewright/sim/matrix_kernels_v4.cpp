#include "tilewright/sim/matrix_kernels.inc"

namespace tw::sim {

extern const MatrixKernels kMatrixKernelsV4;
const MatrixKernels kMatrixKernelsV4{"x86-64-v4", pack, multiply};

}  // namespace tw::sim
