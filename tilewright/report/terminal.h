#pragma once
#include <cstdio>
#include <string_view>

// Where output goes, and what it may contain.
namespace tw::report {

// plain: ASCII columns for files, pipes and logs. boxed: UTF-8 box drawing for a person at a terminal.
enum class Style { plain, boxed };

bool is_terminal(std::FILE* stream);
// boxed when the stream is a terminal of a UTF-8 locale.
Style style_for(std::FILE* stream);

// Columns that UTF-8 text takes on a terminal: one a code point. Reports use no double-width characters.
int display_width(std::string_view utf8);

}  // namespace tw::report
