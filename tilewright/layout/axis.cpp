#include "tilewright/layout/axis.h"

#include <array>
#include <cctype>
#include <deque>
#include <mutex>
#include <string>

#include "tilewright/base/error.h"

namespace tw {
namespace {

constexpr std::array<std::string_view, 18> predefined = {
    "m",         "P",         "F",  "Bank", "TLane", "TCol", "laneid", "warpid", "wgid",
    "wid_in_wg", "tid_in_wg", "tx", "bx",   "by",    "bz",   "cbx",    "cby",    "cbz"};
constexpr uint16_t first_thread_axis = axis::laneid.id();

struct Named {
  std::string name;
  bool thread;
};

// Axes of users, numbered after the predefined ones. A deque keeps the names in place.
struct Registry {
  std::mutex mutex;
  std::deque<Named> named;
};

Registry& registry() {
  static Registry r;
  return r;
}

bool is_identifier(std::string_view s) {
  if (s.empty() || (!std::isalpha(static_cast<unsigned char>(s[0])) && s[0] != '_')) return false;
  for (char c : s)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

std::string_view long_name(std::string_view s) {
  if (s == "l") return "laneid";
  if (s == "w") return "warpid";
  if (s == "wiw") return "wid_in_wg";
  if (s == "tiw") return "tid_in_wg";
  return s;
}

std::optional<Axis> find_locked(const Registry& r, std::string_view name) {
  name = long_name(name);
  for (size_t i = 0; i < predefined.size(); ++i)
    if (predefined[i] == name) return Axis(static_cast<uint16_t>(i), i >= first_thread_axis);
  for (size_t i = 0; i < r.named.size(); ++i)
    if (r.named[i].name == name) return Axis(static_cast<uint16_t>(predefined.size() + i), r.named[i].thread);
  return std::nullopt;
}

}  // namespace

std::string_view Axis::name() const {
  if (id_ < predefined.size()) return predefined[id_];
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  return r.named[id_ - predefined.size()].name;
}

std::optional<Axis> Axis::find(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  return find_locked(r, name);
}

Axis Axis::define(std::string_view name, Kind kind) {
  if (!is_identifier(name)) user_error({}, "an axis name is an identifier, '{}' is not", name);
  const bool thread = kind == Kind::thread;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (auto known = find_locked(r, name)) {
    if (known->is_thread() != thread)
      user_error({}, "axis '{}' is already a {} axis", name, known->is_thread() ? "thread" : "memory");
    return *known;
  }
  const auto id = static_cast<uint16_t>(predefined.size() + r.named.size());
  r.named.push_back({std::string(name), thread});
  return Axis(id, thread);
}

}  // namespace tw
