#pragma once
#include <cstdint>

namespace tw::sim {

// The vector instructions of the host that handlers are chosen for when a program is decoded.
enum class VectorLevel : uint8_t { plain, avx2, avx512 };  // avx2: with FMA, F16C, BMI2

VectorLevel vector_level();  // the best this CPU runs, unless a limit is set

// For tests, which compare the levels: programs decoded while it lives use at most `limit`.
class VectorLevelLimit {
 public:
  explicit VectorLevelLimit(VectorLevel limit);
  ~VectorLevelLimit();
  VectorLevelLimit(const VectorLevelLimit&) = delete;
  VectorLevelLimit& operator=(const VectorLevelLimit&) = delete;

 private:
  VectorLevel before_;
};

}  // namespace tw::sim
