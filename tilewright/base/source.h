#pragma once
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

namespace tw {

// A place in a text a person wrote: a kernel's C++ file, a PTX file. `file` lives for the whole program (a
// literal, or interned); line and column count from 1, 0 means unknown.
struct SourceLoc {
  std::string_view file;
  uint32_t line = 0;
  uint32_t column = 0;

  SourceLoc() = default;
  SourceLoc(std::string_view f, uint32_t l, uint32_t c = 0) : file(f), line(l), column(c) {}
  SourceLoc(const std::source_location& s)
      : file(s.file_name()), line(s.line()), column(s.column()) {}  // NOLINT

  explicit operator bool() const { return line != 0; }
  bool operator==(const SourceLoc&) const = default;
};

// Keeps one copy of `text` for the whole program; thread-safe.
std::string_view intern(std::string_view text);

// The file's path from the project's root when it lies below it, else as it is.
std::string_view shown_file(const SourceLoc& loc);
// "gemm/step1.cpp:42:7", of the shown file.
std::string to_string(const SourceLoc& loc);

}  // namespace tw
