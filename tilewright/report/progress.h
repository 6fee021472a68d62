#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace tw::report {

// One line on stderr that long work keeps up to date, and that is gone when the work is done. Silent unless
// stderr is a terminal, so that logs and pipes see none of it. Safe to update from several threads.
class Progress {
 public:
  explicit Progress(bool wanted = true);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stage(std::string label);  // what is going on now, shown at once
  void update(uint64_t done, uint64_t total);
  void clear();

 private:
  void draw(const std::string& line);

  bool shown_;
  std::mutex mutex_;
  std::string label_;
  size_t drawn_ = 0;  // columns on the line now
  std::chrono::steady_clock::time_point last_{};
};

// "[#######.............]  35 %  gemm.step3 on sim:b200", at most `columns` wide.
std::string progress_line(const std::string& label, uint64_t done, uint64_t total, int columns);

}  // namespace tw::report
