#pragma once
#include <cstdint>
#include <functional>

namespace tw {

// Calls body(begin, end) for consecutive pieces of [0, count) of at most `grain`, on as many host threads as
// there are cores. Which thread runs which piece is not determined. The first exception of a body is thrown
// on.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace tw
