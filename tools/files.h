#pragma once
#include <string>
#include <string_view>

namespace tw::tools {

std::string read_file(const std::string& path);                   // a user error when it cannot be read
void write_file(const std::string& path, std::string_view text);  // a user error when it cannot be written

}  // namespace tw::tools
