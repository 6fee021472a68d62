#include "tilewright/ptx/lexer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "tilewright/base/error.h"

namespace tw::ptx {
namespace {

enum : uint8_t { word_start = 1, word_part = 2, digit = 4, hex_digit = 8, space = 16 };

constexpr auto classes = [] {
  std::array<uint8_t, 256> c{};
  for (int i = 'a'; i <= 'z'; ++i) c[i] = c[i - 32] = word_start | word_part;
  for (int i = '0'; i <= '9'; ++i) c[i] = word_part | digit | hex_digit;
  for (int i = 'a'; i <= 'f'; ++i) {
    c[i] |= hex_digit;
    c[i - 32] |= hex_digit;
  }
  c['_'] = c['$'] = word_start | word_part;
  c['%'] = word_start;
  c[' '] = c['\t'] = c['\r'] = c['\f'] = c['\v'] = space;
  return c;
}();
bool has(char c, uint8_t what) { return classes[uint8_t(c)] & what; }

std::string printable(char c) {
  return c >= 32 && c < 127 ? tw::format("'{}'", c) : tw::format("byte 0x{:02X}", unsigned(uint8_t(c)));
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view file_name) : text_(text), file_(intern(file_name)) {
  advance();
}

Token Lexer::next() {
  const Token t = token_;
  advance();
  return t;
}

bool Lexer::at(std::string_view symbol) const {
  return text_.substr(size_t(token_.text.data() - text_.data()), symbol.size()) == symbol;
}

std::string_view Lexer::since(const Token& first) const {
  const size_t start = size_t(first.text.data() - text_.data());
  return text_.substr(start, previous_end_ > start ? previous_end_ - start : 0);
}

std::vector<std::string> Lexer::take_comments() { return std::exchange(comments_, {}); }

Token Lexer::opcode(std::string& storage) {
  Token t = token_;
  const size_t start = size_t(t.text.data() - text_.data());
  while (at_ < text_.size() && (has(text_[at_], word_part) || text_[at_] == '.' || text_[at_] == ':')) {
    // "label: ..." is told apart by its caller; only "::" belongs to a modifier.
    if (text_[at_] == ':') {
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != ':') break;
      ++at_;
    }
    ++at_;
  }
  t.text = text_.substr(start, at_ - start);
  advance();
  if (token_.kind == Token::Kind::dotted) {
    storage.assign(t.text);
    while (token_.kind == Token::Kind::dotted) {
      storage.append(token_.text);
      advance();
    }
    t.text = storage;
  }
  return t;
}

void Lexer::block_comment() {
  const SourceLoc start = here();
  at_ += 2;
  while (true) {
    if (at_ + 1 >= text_.size()) user_error(start, "this comment has no end");
    if (text_[at_] == '*' && text_[at_ + 1] == '/') break;
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }
  at_ += 2;
}

void Lexer::skip_space() {
  bool own_line = at_ == line_start_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++at_;
      own_line = true;
    } else if (has(c, space)) {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      size_t end = std::min(text_.find('\n', at_), text_.size());
      if (own_line) {
        std::string_view comment = text_.substr(at_ + 2, end - at_ - 2);
        while (!comment.empty() && has(comment.back(), space)) comment.remove_suffix(1);
        if (!comment.empty() && comment.front() == ' ') comment.remove_prefix(1);
        comments_.emplace_back(comment);
      }
      at_ = end;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      block_comment();
    } else {
      break;
    }
  }
}

void Lexer::advance() {
  previous_end_ = at_;
  skip_space();
  token_ = Token{};
  token_.line = line_;
  token_.column = uint32_t(at_ - line_start_ + 1);
  const size_t start = at_;
  if (at_ >= text_.size()) {
    token_.text = text_.substr(text_.size());
    return;
  }
  const char c = text_[at_];
  const char following = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (has(c, word_start) && (c != '%' || has(following, word_start))) {
    token_.kind = Token::Kind::word;
    ++at_;
    while (at_ < text_.size() && has(text_[at_], word_part)) ++at_;
  } else if (has(c, digit)) {
    number();
  } else if (c == '.' && has(following, word_part)) {
    token_.kind = Token::Kind::dotted;
    ++at_;
    while (at_ < text_.size()) {
      if (has(text_[at_], word_part)) ++at_;
      else if (text_.substr(at_, 2) == "::") at_ += 2;
      else break;
    }
  } else if (c == '"') {
    token_.kind = Token::Kind::string;
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size() || text_[at_] != '"') user_error(loc(token_), "this string has no closing quote");
    ++at_;
  } else if (c >= 33 && c < 127) {
    token_.kind = Token::Kind::punct;
    ++at_;
  } else {
    user_error(loc(token_), "{} is not a character of PTX", printable(c));
  }
  token_.text = text_.substr(start, at_ - start);
}

// "0f3F800000": exactly `digits` hexadecimal digits.
void Lexer::float_bits(int digits) {
  const char* first = text_.data() + at_ + 2;
  const char* last = text_.data() + std::min(text_.size(), at_ + 2 + size_t(digits));
  const auto [end, error] = std::from_chars(first, last, token_.bits, 16);
  at_ = size_t(end - text_.data());
  if (error != std::errc() || end != first + digits || (at_ < text_.size() && has(text_[at_], word_part)))
    user_error(loc(token_), "a constant 0{} needs exactly {} hexadecimal digits", digits == 8 ? 'f' : 'd',
               digits);
  token_.kind = digits == 8 ? Token::Kind::f32 : Token::Kind::f64;
}

// PTX ISA, "Integer Constants" and "Floating-Point Constants".
void Lexer::number() {
  const char second = at_ + 1 < text_.size() ? char(text_[at_ + 1] | 0x20) : '\0';
  const bool zero = text_[at_] == '0';
  if (zero && (second == 'f' || second == 'd')) return float_bits(second == 'f' ? 8 : 16);
  const char *first = text_.data() + at_, *last = text_.data() + text_.size();
  int base = 10;
  if (zero && (second == 'x' || second == 'b')) {
    base = second == 'x' ? 16 : 2;
    first += 2;
  } else if (zero && second >= '0' && second <= '9') {
    base = 8;
    first += 1;
  }
  auto [end, error] = std::from_chars(first, last, token_.bits, base);
  if (base == 10 && end != last && (*end == '.' || *end == 'e' || *end == 'E') &&
      error != std::errc::invalid_argument) {
    double value = 0;
    const auto real = std::from_chars(first, last, value);
    if (real.ec == std::errc()) {
      token_.kind = Token::Kind::f64;
      token_.bits = std::bit_cast<uint64_t>(value);
      at_ = size_t(real.ptr - text_.data());
      if (at_ < text_.size() && has(text_[at_], word_part)) user_error(loc(token_), "this is not a number");
      return;
    }
  }
  if (error == std::errc::result_out_of_range) user_error(loc(token_), "this integer does not fit 64 bits");
  token_.kind = Token::Kind::integer;
  token_.is_unsigned = token_.bits > uint64_t(INT64_MAX);
  if (error == std::errc() && end != last && (*end == 'U' || *end == 'u')) {
    token_.is_unsigned = true;
    ++end;
  }
  if (error != std::errc() || (end != last && has(*end, word_part)))
    user_error(loc(token_), "this is not a number");
  at_ = size_t(end - text_.data());
}

}  // namespace tw::ptx
