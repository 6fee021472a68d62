#pragma once
#include <regex>
#include <string>

#include "tilewright/base/error.h"

// What a user reads when `body` fails. Lines of the test file itself are shown relative to `base`, so that a
// message can be pinned without counting lines: "+2" is the second line after it.
namespace tw::testing {

// A user error: "place message", and so for each note.
template <class F>
std::string message_of(int base, F&& body) {
  auto relative = [base](SourceLoc loc) {
    return loc ? tw::format("+{}", static_cast<int>(loc.line) - base) : std::string();
  };
  try {
    body();
  } catch (const Error& e) {
    std::string text = relative(e.loc()) + " " + e.message();
    for (const Note& n : e.notes()) text += "\n" + relative(n.loc) + " " + n.message;
    return e.kind() == ErrorKind::user ? text : "not a user error: " + text;
  }
  return "no error";
}

// The whole text of any error, as a terminal shows it.
template <class F>
std::string text_of(int base, F&& body) {
  try {
    body();
  } catch (const Error& e) {
    static const std::regex place(R"(\S*_test\.cpp:(\d+):\d+)");
    std::string rest = e.what(), text;
    for (std::smatch m; std::regex_search(rest, m, place); rest = m.suffix())
      text += tw::format("{}+{}", m.prefix().str(), std::stoi(m[1]) - base);
    return text + rest;
  }
  return "no error";
}
template <class F>
std::string text_of(F&& body) {
  return text_of(0, body);
}

}  // namespace tw::testing
