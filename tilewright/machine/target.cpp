#include "tilewright/machine/target.h"

#include <charconv>

#include "tilewright/base/error.h"

namespace tw::machine {
namespace {

struct Arch {
  int number = 0;                                                  // 100 of sm_100a
  char suffix = 0;                                                 // 'a', 'f' or none
  int family() const { return number == 101 ? 11 : number / 10; }  // Table "Architecture Families"
};

Arch parse(std::string_view text) {
  Arch arch;
  std::string_view rest = text;
  if (rest.starts_with("sm_")) {
    rest.remove_prefix(3);
    const char* end = std::from_chars(rest.data(), rest.data() + rest.size(), arch.number).ptr;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (arch.number > 0 && rest.empty()) return arch;
    if (arch.number > 0 && (rest == "a" || rest == "f")) {
      arch.suffix = rest[0];
      return arch;
    }
  }
  user_error({}, "'{}' is no target architecture; one reads like sm_90a or sm_100f", text);
}

}  // namespace

std::string why_not_on(std::string_view target, std::string_view arch) {
  Arch from = parse(target), to = parse(arch);
  if (from.suffix == 'a' && from.number != to.number)
    return format("{} is architecture-specific: it runs on that architecture alone, not on {}", target, arch);
  if (from.suffix == 'f' && (from.family() != to.family() || from.number > to.number))
    return format("{} is family-specific: it runs on sm_{} and later architectures of its family, not on {}",
                  target, from.number, arch);
  if (from.number > to.number)
    return format("{} runs on that architecture and later ones, not on the older {}", target, arch);
  return "";
}

}  // namespace tw::machine
