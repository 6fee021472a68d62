#include "tilewright/report/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdio>

#include "tilewright/base/format.h"
#include "tilewright/report/terminal.h"

namespace tw::report {

namespace {

int terminal_columns() {
  winsize size{};
  return ioctl(fileno(stderr), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, int columns) {
  std::string line;
  if (total == 0) {
    line = label;
  } else {
    constexpr uint64_t width = 20;
    const uint64_t capped = std::min(done, total);
    const auto filled = static_cast<size_t>(capped * width / total);
    line = format("[{}{}] {:>3} %  {}", std::string(filled, '#'), std::string(width - filled, '.'),
                  capped * 100 / total, label);
  }
  if (line.size() > static_cast<size_t>(std::max(columns, 0)))
    line.resize(static_cast<size_t>(std::max(columns, 0)));
  return line;
}

Progress::Progress(bool wanted) : shown_(wanted && is_terminal(stderr)) {}

void Progress::stage(std::string label) {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  label_ = std::move(label);
  last_ = std::chrono::steady_clock::now();
  draw(progress_line(label_, 0, 0, terminal_columns() - 1));
}

void Progress::update(uint64_t done, uint64_t total) {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  draw(progress_line(label_, done, total, terminal_columns() - 1));
}

void Progress::clear() {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  draw("");
}

void Progress::draw(const std::string& line) {
  const std::string rest(drawn_ > line.size() ? drawn_ - line.size() : 0, ' ');
  std::fprintf(stderr, "\r%s%s\r%s", line.c_str(), rest.c_str(), line.c_str());
  std::fflush(stderr);
  drawn_ = line.size();
}

}  // namespace tw::report
