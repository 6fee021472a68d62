#include "tilewright/base/source.h"

#include <mutex>
#include <unordered_set>

#include "tilewright/base/format.h"

namespace tw {

std::string_view intern(std::string_view text) {
  static std::mutex mutex;
  static std::unordered_set<std::string> texts;
  std::lock_guard lock(mutex);
  return *texts.emplace(text).first;
}

std::string_view shown_file(const SourceLoc& loc) {
  // This file's own path ends in a part known here; what precedes it is the project's root.
  static const std::string_view self = __FILE__;
  static const std::string_view root =
      self.substr(0, self.size() - std::string_view("tilewright/base/source.cpp").size());
  return !root.empty() && loc.file.starts_with(root) ? loc.file.substr(root.size()) : loc.file;
}

std::string to_string(const SourceLoc& loc) {
  const std::string_view file = shown_file(loc);
  if (loc.line == 0) return std::string(file);
  if (loc.column == 0) return format("{}:{}", file, loc.line);
  return format("{}:{}:{}", file, loc.line, loc.column);
}

}  // namespace tw
