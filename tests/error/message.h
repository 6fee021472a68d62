#pragma once
#include <algorithm>
#include <string>

#include "tilewright/base/error.h"

// What a user reads when `body` fails; lines of this test file are shown relative to `base`, so that a
// message can be pinned without counting lines: "+2" is the second line after it.
namespace tw::testing {

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

}  // namespace tw::testing
