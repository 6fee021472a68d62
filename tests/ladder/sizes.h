#pragma once
#include <cstdint>

namespace tw {

struct LadderSize {
  const char* kernel;
  int64_t m, n, k;
};
// Shapes a step can do: its own tile, K of one to several chunks, wide and tall grids.
inline constexpr LadderSize kLadderSizes[] = {
    {"gemm.step1", 128, 128, 64},  {"gemm.step2", 128, 128, 64},    {"gemm.step2", 128, 128, 128},
    {"gemm.step2", 128, 128, 704}, {"gemm.step3", 128, 128, 64},    {"gemm.step3", 256, 128, 192},
    {"gemm.step3", 128, 384, 64},  {"gemm.step3", 384, 256, 320},   {"gemm.step4", 128, 128, 64},
    {"gemm.step4", 200, 136, 200}, {"gemm.step4", 1, 72, 8},        {"gemm.step5", 200, 136, 200},
    {"gemm.step5", 130, 264, 64},  {"gemm.step6", 200, 136, 200},   {"gemm.step6", 1500, 1800, 136},
    {"gemm.step7", 200, 136, 200}, {"gemm.step7", 1500, 1800, 136}, {"gemm.step7", 64, 64, 1024},
    {"gemm.step8", 200, 136, 200}, {"gemm.step8", 1500, 1800, 136}, {"gemm.step8", 64, 64, 1024},
    {"gemm.step9", 200, 136, 200}, {"gemm.step9", 1500, 1800, 136}, {"gemm.step9", 64, 64, 1024},
    {"gemm", 200, 136, 200},       {"gemm", 1500, 1800, 136},       {"gemm", 64, 64, 1024},
};

}  // namespace tw
