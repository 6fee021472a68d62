#include "tools/trace_file.h"

#include <charconv>

#include "tilewright/base/error.h"

namespace tw::tools {

sim::TraceOptions trace_options(const std::string& ctas) {
  sim::TraceOptions options;
  if (ctas.empty()) return options;
  const char *at = ctas.data(), *end = at + ctas.size();
  uint64_t first = 0, last = 0;
  auto [rest, error] = std::from_chars(at, end, first);
  last = first;
  if (error == std::errc{} && rest != end && *rest == '-') {
    const auto second = std::from_chars(rest + 1, end, last);
    rest = second.ptr, error = second.ec;
  }
  if (error != std::errc{} || rest != end || last < first)
    user_error({}, "--trace-ctas {}: expected a CTA or a range of CTAs, as in 0-7", ctas);
  options.first_cta = first;
  options.ctas = last - first + 1;
  return options;
}

}  // namespace tw::tools
