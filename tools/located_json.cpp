#include "tools/located_json.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "tilewright/base/error.h"

namespace tw::tools {
namespace {

// Lines seen so far by the iterators below, of which the parser copies many.
struct Lines {
  uint32_t line = 1;
  char last = 0;
  // The parser reads one character past a number.
  uint32_t of_token() const { return last == '\n' ? line - 1 : line; }
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Lines* lines) : at_(at), lines_(lines) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    lines_->last = *at_;
    if (*at_++ == '\n') ++lines_->line;
    return *this;
  }
  bool operator==(const CountingIterator& o) const { return at_ == o.at_; }
  bool operator!=(const CountingIterator& o) const { return at_ != o.at_; }

 private:
  const char* at_;
  Lines* lines_;
};

// Builds the tree from nlohmann's events.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view file, Lines& lines) : file_(file), lines_(lines) {}

  bool null() { return add(nullptr); }
  bool boolean(bool v) { return add(v); }
  bool number_integer(number_integer_t v) { return add(int64_t{v}); }
  bool number_unsigned(number_unsigned_t v) {
    if (v > number_unsigned_t{std::numeric_limits<int64_t>::max()})
      user_error(here(), "{} does not fit 64 signed bits", v);
    return add(static_cast<int64_t>(v));
  }
  bool number_float(number_float_t v, const string_t&) { return add(v); }
  bool string(string_t& v) { return add(std::move(v)); }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return open(LocatedJson::Members{}); }
  bool start_array(size_t) { return open(LocatedJson::Items{}); }
  bool key(string_t& v) {
    keys_.back() = std::move(v);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while ..."
    const std::string_view what = e.what();
    const size_t at = what.find("syntax error");
    user_error(here(), "{}", at == what.npos ? what : what.substr(at));
  }

  LocatedJson root;

 private:
  SourceLoc here() const { return {file_, lines_.of_token()}; }

  bool add(auto v) {
    LocatedJson node;
    node.loc = here();
    node.value = std::move(v);
    place(std::move(node));
    return true;
  }
  bool open(auto v) {
    open_.emplace_back();
    open_.back().loc = here();
    open_.back().value = std::move(v);
    keys_.emplace_back();
    return true;
  }
  bool close() {
    LocatedJson node = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    place(std::move(node));
    return true;
  }
  void place(LocatedJson node) {
    if (open_.empty()) root = std::move(node);
    else if (auto* items = std::get_if<LocatedJson::Items>(&open_.back().value))
      items->push_back(std::move(node));
    else std::get<LocatedJson::Members>(open_.back().value).emplace_back(keys_.back(), std::move(node));
  }

  std::string_view file_;
  Lines& lines_;
  std::vector<LocatedJson> open_;
  std::vector<std::string> keys_;  // of each open object, the last one read
};

[[noreturn]] void expected(const LocatedJson& given, std::string_view what, std::string_view kind) {
  user_error(given.loc, "{} must be {}", what, kind);
}

}  // namespace

bool LocatedJson::boolean(std::string_view what) const {
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  expected(*this, what, "true or false");
}

int64_t LocatedJson::integer(std::string_view what, int64_t low, int64_t high) const {
  const auto* i = std::get_if<int64_t>(&value);
  if (!i) expected(*this, what, "an integer");
  if (*i < low || *i > high) user_error(loc, "{} is {}, allowed are {} to {}", what, *i, low, high);
  return *i;
}

double LocatedJson::number(std::string_view what) const {
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  expected(*this, what, "a number");
}

const std::string& LocatedJson::text(std::string_view what) const {
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  expected(*this, what, "a string");
}

const LocatedJson::Items& LocatedJson::items(std::string_view what) const {
  if (const auto* v = std::get_if<Items>(&value)) return *v;
  expected(*this, what, "an array");
}

const LocatedJson::Members& LocatedJson::members(std::string_view what) const {
  if (const auto* v = std::get_if<Members>(&value)) return *v;
  expected(*this, what, "an object");
}

std::vector<int64_t> LocatedJson::integers(std::string_view what, int64_t low, int64_t high) const {
  std::vector<int64_t> out;
  for (const LocatedJson& item : items(what)) out.push_back(item.integer(what, low, high));
  return out;
}

const LocatedJson* LocatedJson::find(std::string_view key) const {
  const auto* all = std::get_if<Members>(&value);
  if (!all) return nullptr;
  const auto it = std::find_if(all->begin(), all->end(), [&](const auto& m) { return m.first == key; });
  return it == all->end() ? nullptr : &it->second;
}

const LocatedJson& LocatedJson::at(std::string_view key, std::string_view what) const {
  members(what);
  if (const LocatedJson* found = find(key)) return *found;
  user_error(loc, "{} has no \"{}\"", what, key);
}

void LocatedJson::allow(std::initializer_list<std::string_view> keys, std::string_view what) const {
  std::vector<std::string_view> seen;
  for (const auto& [key, member] : members(what)) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      std::string known;
      for (std::string_view k : keys) known += format("{}{}", known.empty() ? "" : ", ", k);
      user_error(member.loc, "{} has an unknown member \"{}\"; known: {}", what, key, known);
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      user_error(member.loc, "{} has \"{}\" twice", what, key);
    seen.push_back(key);
  }
}

LocatedJson parse_json(std::string_view text, std::string_view file_name) {
  Lines lines;
  Builder builder(intern(file_name), lines);
  const char* const first = text.data();
  nlohmann::json::sax_parse(CountingIterator(first, &lines), CountingIterator(first + text.size(), &lines),
                            &builder);
  return std::move(builder.root);
}

}  // namespace tw::tools
