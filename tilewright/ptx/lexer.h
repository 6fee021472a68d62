#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/source.h"

namespace tw::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,
    word,     // identifier; "%r1", "$L__BB0_1", "_"
    dotted,   // ".reg", ".L2::128B", without the dot
    integer,  // value in bits
    f32,
    f64,
    string,  // without the quotes
    punct,   // one character
  };
  Kind kind = Kind::end;
  bool is_unsigned = false;  // an integer with suffix U, or too large for 64-bit signed
  uint32_t line = 1, column = 1;
  std::string_view text;  // as written
  uint64_t bits = 0;

  bool is(char c) const { return kind == Kind::punct && text.front() == c; }
};

// PTX ISA, chapter "Syntax". One token of lookahead; comments that have a line of their own are collected,
// others are dropped.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file_name);

  const Token& peek() const { return token_; }
  Token next();
  // The current token is the first word of an opcode: takes it and its modifiers as one text. Spaces before a
  // modifier's dot are legal and left out; `at` then still points at the first word.
  Token opcode(std::string& storage);
  bool at(std::string_view symbol) const;            // the text at the current token
  std::string_view since(const Token& first) const;  // source text from `first` to before the current token
  std::vector<std::string> take_comments();
  bool at_call() const {
    return at_ < text_.size() && text_[at_] == '(';
  }  // "(" right behind the current token
  SourceLoc loc(const Token& t) const { return SourceLoc(file_, t.line, t.column); }
  SourceLoc loc() const { return loc(token_); }

 private:
  void advance();
  void skip_space();
  void block_comment();
  void number();
  void float_bits(int digits);
  SourceLoc here() const { return SourceLoc(file_, line_, uint32_t(at_ - line_start_ + 1)); }

  std::string_view text_, file_;
  size_t at_ = 0, line_start_ = 0, previous_end_ = 0;
  uint32_t line_ = 1;
  Token token_;
  std::vector<std::string> comments_;
};

}  // namespace tw::ptx
