#include "tilewright/ptx/module.h"

#include <algorithm>

namespace tw::ptx {

bool Instruction::has(std::string_view modifier) const {
  return std::find(tokens.begin() + 1, tokens.end(), modifier) != tokens.end();
}

}  // namespace tw::ptx
