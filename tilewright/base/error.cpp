#include "tilewright/base/error.h"

namespace tw {
namespace {

const char* label(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user: return "error";
    case ErrorKind::not_modelled: return "not modelled";
    case ErrorKind::fault: return "fault";
    case ErrorKind::deadlock: return "deadlock";
    case ErrorKind::driver: return "driver error";
    case ErrorKind::internal: return "internal error";
  }
  return "error";
}

std::string line(const SourceLoc& loc, const char* what, const std::string& message) {
  if (loc.file.empty()) return format("{}: {}", what, message);
  return format("{}: {}: {}", to_string(loc), what, message);
}

std::string render(ErrorKind kind, const SourceLoc& loc, const std::string& message,
                   const std::vector<Note>& notes) {
  std::string text = line(loc, label(kind), message);
  for (const Note& note : notes) text += "\n" + line(note.loc, "note", note.message);
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, SourceLoc loc, std::string message, std::vector<Note> notes, Cause cause)
    : std::runtime_error(render(kind, loc, message, notes)),
      kind_(kind),
      cause_(cause),
      loc_(loc),
      message_(std::move(message)),
      notes_(std::move(notes)) {}

Error Error::with_note(SourceLoc loc, std::string message) const {
  std::vector<Note> notes = notes_;
  notes.push_back({loc, std::move(message)});
  return Error(kind_, loc_, message_, std::move(notes), cause_);
}

}  // namespace tw
