#include "tilewright/sim/matrix_kernels.inc"

namespace tw::sim {

extern const MatrixKernels kMatrixKernelsV3;
const MatrixKernels kMatrixKernelsV3{"x86-64-v3", pack, multiply};

}  // namespace tw::sim
