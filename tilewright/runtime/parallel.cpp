#include "tilewright/runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tilewright/base/math.h"

namespace tw {

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body) {
  std::atomic<int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  auto work = [&] {
    try {
      for (int64_t begin = next.fetch_add(grain); begin < count; begin = next.fetch_add(grain))
        body(begin, std::min(begin + grain, count));
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    for (int64_t i = 1; i < std::min(cores, ceil_div(count, grain)); ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tw
