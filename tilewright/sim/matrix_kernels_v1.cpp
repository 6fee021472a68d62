#include "tilewright/sim/matrix_kernels.inc"

namespace tw::sim {

extern const MatrixKernels kMatrixKernelsV1;
const MatrixKernels kMatrixKernelsV1{"x86-64", pack, multiply};

}  // namespace tw::sim
