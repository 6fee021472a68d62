#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include "tilewright/base/format.h"

namespace tw {

std::string vformat(fmt::string_view text, fmt::format_args args) { return fmt::vformat(text, args); }

}  // namespace tw
