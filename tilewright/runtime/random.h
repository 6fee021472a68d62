#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tilewright/runtime/device.h"

// Inputs that look like real ones. Every value is a function of the seed and its index alone: the same on
// every machine, whatever the number of threads, and a prefix of a longer vector.
namespace tw {

// Normal with mean 0 and the given standard deviation (Box-Muller on splitmix64; Steele, Lea, Flood, "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014).
std::vector<float> random_normal(size_t count, uint64_t seed, double deviation = 1);

// Uploads such values, rounded to the tensor's type.
void fill_normal(Tensor& tensor, uint64_t seed, double deviation = 1);

}  // namespace tw
