#pragma once
#include <string>

#include "tilewright/sim/trace.h"

namespace tw::tools {

// "3" or "0-7", in the order of the grid; nothing: those of the first cluster.
sim::TraceOptions trace_options(const std::string& ctas);

}  // namespace tw::tools
