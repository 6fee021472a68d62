#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/base/source.h"

// JSON that people write: every value knows its line, and reading it as the wrong thing is a user error that
// says so.
namespace tw::tools {

class LocatedJson {
 public:
  using Members = std::vector<std::pair<std::string, LocatedJson>>;
  using Items = std::vector<LocatedJson>;

  SourceLoc loc;
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Items, Members> value;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value);
  }

  // Each takes what the value is called in messages: "grid".
  bool boolean(std::string_view what) const;
  int64_t integer(std::string_view what, int64_t low, int64_t high) const;  // and checks the range
  double number(std::string_view what) const;
  const std::string& text(std::string_view what) const;
  const Items& items(std::string_view what) const;
  const Members& members(std::string_view what) const;
  std::vector<int64_t> integers(std::string_view what, int64_t low, int64_t high) const;

  // A member of an object; nullptr when it is not there.
  const LocatedJson* find(std::string_view key) const;
  const LocatedJson& at(std::string_view key, std::string_view what) const;  // user error when missing
  // User error when the object has a member of another name, or one twice.
  void allow(std::initializer_list<std::string_view> keys, std::string_view what) const;
};

// User errors: what is no JSON, with its line.
LocatedJson parse_json(std::string_view text, std::string_view file_name);

}  // namespace tw::tools
