#pragma once
#include <string>
#include <string_view>

// Which PTX runs on which GPU (PTX ISA, "PTX Module Directives: .target").
namespace tw::machine {

// Why a module whose .target is `target` cannot run on a GPU of architecture `arch` ("sm_100a"); empty if it
// can. "sm_100a" runs on that architecture alone, "sm_100f" on later ones of its family, "sm_100" on all
// later ones. User error when either is no architecture.
std::string why_not_on(std::string_view target, std::string_view arch);

}  // namespace tw::machine
