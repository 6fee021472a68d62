#include "tools/files.h"

#include <fstream>
#include <sstream>

#include "tilewright/base/error.h"

namespace tw::tools {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || (file.peek() != EOF && !(text << file.rdbuf()))) user_error({}, "cannot read {}", path);
  return std::move(text).str();
}

void write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) user_error({}, "cannot write {}", path);
}

}  // namespace tw::tools
