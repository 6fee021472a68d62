#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "tilewright/base/error.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/program.h"

// Running a grid on host threads so that the result does not depend on how many there are.
//
// A program that never touches global memory in a way another cluster could wait for needs no order: each
// host thread takes the next cluster and runs it to its end. Any other program runs in rounds. In the first
// half of a round every resident cluster runs on its own, for a fixed number of instructions, or until an
// access that needs an order stops it. In the second half those accesses happen one after the other, in the
// order of the clusters. Both halves depend on instruction counts only. (The idea is that of deterministic
// multiprocessing by quanta: J. Devietti et al., "DMP: deterministic shared memory multiprocessing", ASPLOS
// 2009.)
namespace tw::sim {

namespace {

// Runs `body(thread)` on n threads, this one among them.
void on_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 1; i < n; ++i) threads.emplace_back(body, i);
  body(0);
  for (auto& t : threads) t.join();
}

class Runner {
 public:
  Runner(const Grid& grid, int threads) : grid_(grid), threads_(threads) {}

  RunStats run() {
    if (!grid_.program.ordered || grid_.clusters == 1) {
      run_freely();
    } else if (grid_.options.schedulers && grid_.options.schedulers->interleaves()) {
      run_interleaved();
    } else {
      run_in_rounds();
    }
    if (failure_) std::rethrow_exception(failure_);
    return stats_;
  }

 private:
  // The failure of the lowest cluster is reported, whichever thread meets one first: clusters above it are
  // given up, those below run on.
  void failed(uint64_t cluster) {
    std::lock_guard lock(mutex_);
    if (cluster < failed_cluster_.load()) {
      failed_cluster_ = cluster;
      failure_ = std::current_exception();
    }
  }

  void finished(const Cluster& cluster) {
    std::lock_guard lock(mutex_);
    stats_.warp_instructions += cluster.instructions();
    stats_.ctas += cluster.ctas.size();
    ++done_;
    if (grid_.options.progress) grid_.options.progress(grid_.options.progress_user, done_, grid_.clusters);
  }

  void run_freely() {
    grid_.pending.next = grid_.pending.end;  // nothing left to cancel
    std::atomic<uint64_t> next{0};
    on_threads(threads_, [&](int) {
      std::unique_ptr<Cluster> cluster;
      while (true) {
        const uint64_t index = next++;
        if (index >= grid_.clusters || index > failed_cluster_.load()) return;
        try {
          if (!cluster) cluster = std::make_unique<Cluster>(grid_);
          cluster->start(index);
          while (cluster->run(kQuantum) != Cluster::Stop::finished) {
            if (cluster->index > failed_cluster_.load()) return;
            if (grid_.clusters == 1) continue;
          }
          finished(*cluster);
        } catch (...) {
          failed(index);
          cluster.reset();
        }
      }
    });
  }

  // On one host thread, in an order that the schedulers choose.
  void run_interleaved() {
    const uint64_t room = std::min(grid_.resident_clusters(), grid_.clusters);
    std::vector<std::unique_ptr<Cluster>> clusters;
    std::vector<Cluster*> running;
    while (grid_.pending.next < room) {
      clusters.push_back(std::make_unique<Cluster>(grid_));
      clusters.back()->keep_turn();
      clusters.back()->start(*grid_.pending.take());
      running.push_back(clusters.back().get());
    }
    while (!running.empty()) {
      const size_t at = grid_.options.schedulers->pick(running);
      Cluster& cluster = *running[at];
      try {
        if (cluster.run(kQuantum) != Cluster::Stop::finished) continue;
      } catch (...) {
        return failed(cluster.index);
      }
      finished(cluster);
      done_ += std::exchange(grid_.pending.cancelled, 0);
      if (const auto next = grid_.pending.take()) cluster.start(*next);
      else running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  struct Resident {
    std::unique_ptr<Cluster> cluster;
    Cluster::Stop stop = Cluster::Stop::budget;
  };

  void run_in_rounds() {
    const uint64_t room = std::min(grid_.resident_clusters(), grid_.clusters);
    while (grid_.pending.next < room) {
      residents_.push_back({std::make_unique<Cluster>(grid_), {}});
      residents_.back().cluster->start(*grid_.pending.take());
    }
    const int n = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(threads_), room));
    Rounds rounds(n);
    std::atomic<size_t> ticket{0};
    bool more = true;
    on_threads(n, [&](int thread) {
      while (more) {
        for (size_t i = ticket++; i < residents_.size(); i = ticket++) run_quantum(residents_[i]);
        rounds.wait();  // everyone has finished the first half
        if (thread == 0) {
          more = serve();
          ticket = 0;
        }
        rounds.wait();
      }
    });
  }

  void run_quantum(Resident& r) {
    try {
      r.stop = r.cluster->run(kQuantum);
    } catch (...) {
      failed(r.cluster->index);
      r.stop = Cluster::Stop::finished;
    }
  }

  // The second half of a round; false when the grid is done. Residents are kept in the order of their
  // clusters.
  bool serve() {
    for (Resident& r : residents_) {
      if (r.stop != Cluster::Stop::order) continue;
      try {
        r.cluster->take_turn();
      } catch (...) {
        failed(r.cluster->index);
        r.stop = Cluster::Stop::finished;
      }
    }
    const uint64_t failed_at = failed_cluster_.load();
    if (failed_at != kNone)
      return false;  // in a round the same clusters fail whatever the threads: no need to go on
    std::vector<std::unique_ptr<Cluster>> idle;
    std::erase_if(residents_, [&](Resident& r) {
      if (r.stop != Cluster::Stop::finished) return false;
      finished(*r.cluster);
      idle.push_back(std::move(r.cluster));
      return true;
    });
    done_ += std::exchange(grid_.pending.cancelled, 0);
    for (auto& cluster : idle) {
      const auto next = grid_.pending.take();
      if (!next) break;
      cluster->start(*next);
      residents_.push_back({std::move(cluster), {}});
    }
    return !residents_.empty();
  }

  // A barrier for the host threads.
  class Rounds {
   public:
    explicit Rounds(int n) : threads_(n) {}
    void wait() {
      if (threads_ == 1) return;
      std::unique_lock lock(mutex_);
      const uint64_t round = round_;
      if (++waiting_ == threads_) {
        waiting_ = 0;
        ++round_;
        changed_.notify_all();
      } else {
        changed_.wait(lock, [&] { return round_ != round; });
      }
    }

   private:
    const int threads_;
    int waiting_ = 0;
    uint64_t round_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
  };

  static constexpr uint64_t kQuantum = 20000;  // warp instructions
  static constexpr uint64_t kNone = ~uint64_t{0};

  const Grid& grid_;
  const int threads_;
  std::mutex mutex_;
  std::atomic<uint64_t> failed_cluster_{kNone};
  std::exception_ptr failure_;
  RunStats stats_;
  uint64_t done_ = 0;
  std::vector<Resident> residents_;
};

}  // namespace

RunStats Program::run(const Launch& launch, GlobalMemory& memory, const RunOptions& options) const {
  const auto begin = std::chrono::steady_clock::now();
  const Grid grid(*impl_, launch, memory, options);
  int threads =
      options.host_threads > 0 ? options.host_threads : static_cast<int>(std::thread::hardware_concurrency());
  threads = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(std::max(threads, 1)), grid.clusters));
  if (options.observer) options.observer->launch_begin(grid);
  RunStats stats = Runner(grid, threads).run();
  if (options.observer) options.observer->launch_end();
  stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return stats;
}

}  // namespace tw::sim
