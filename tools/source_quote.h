#pragma once
#include <map>
#include <string>
#include <vector>

#include "tilewright/base/error.h"

namespace tw::tools {

// Lines of source files, for reports that show them. A file that cannot be read is quoted as nothing.
class SourceQuotes {
 public:
  // "   37 |   thread.copy_async(...)\n      |          ^\n", or nothing.
  std::string operator()(const SourceLoc& loc);

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace tw::tools
