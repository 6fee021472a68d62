#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/base/source.h"

namespace tw {

// What went wrong, seen from the person who has to act on it.
enum class ErrorKind {
  user,          // the input breaks a rule; the message names the rule
  not_modelled,  // legal, but the simulator has no model of it; never guessed
  fault,         // the simulated program did something undefined
  deadlock,      // nothing of the simulated program can go on, or it does not end within its limit
  driver,        // the GPU driver refused; the message carries its text
  internal,      // a defect of Tilewright itself
};

// What a fault is about, where those who explain it want to know.
enum class Cause {
  other,
  unwritten,  // a read of memory that nothing has written
  exited,     // an access to the shared memory of a CTA that has exited
};

struct Note {
  SourceLoc loc;
  std::string message;
};

// The one exception type. what() reads as a compiler diagnostic:
//   kernels/gemm/step1.cpp:42:7: error: ...
//   kernels/gemm/step1.cpp:30:3: note: ...
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, SourceLoc loc, std::string message, std::vector<Note> notes = {},
        Cause cause = Cause::other);

  ErrorKind kind() const { return kind_; }
  Cause cause() const { return cause_; }
  const SourceLoc& loc() const { return loc_; }
  const std::string& message() const { return message_; }
  const std::vector<Note>& notes() const { return notes_; }

  // The same error with one more note, for callers that know more of the context.
  Error with_note(SourceLoc loc, std::string message) const;

 private:
  ErrorKind kind_;
  Cause cause_;
  SourceLoc loc_;
  std::string message_;
  std::vector<Note> notes_;
};

template <class... Args>
[[noreturn]] void user_error(const SourceLoc& loc, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::user, loc, tw::vformat(text, fmt::make_format_args(args...)));
}
template <class... Args>
[[noreturn]] void not_modelled(const SourceLoc& loc, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::not_modelled, loc, tw::vformat(text, fmt::make_format_args(args...)));
}
template <class... Args>
[[noreturn]] void internal_error(const SourceLoc& loc, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::internal, loc, tw::vformat(text, fmt::make_format_args(args...)));
}

// An invariant of our own code; the location is the caller's.
inline void require(bool holds, const char* what,
                    std::source_location here = std::source_location::current()) {
  if (!holds) throw Error(ErrorKind::internal, here, what);
}

}  // namespace tw
