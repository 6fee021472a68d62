#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/check/protocol.h"

namespace tw::check {

// What the roles of a CTA make of its registers ("setmaxnreg"). What a role gives back and none takes lies
// idle until the CTA ends. That is said only where it makes a step of 8 for all threads of some role, and
// only of a CTA that executed every setmaxnreg of the program: another, which left early, may not have come
// to those that take.
class RegisterPlan {
 public:
  RegisterPlan(Report report, const std::vector<const ptx::Instruction*>& program)
      : report_(std::move(report)), program_(program) {}
  void moved(const sim::Warp& warp);      // executes a setmaxnreg
  void ended(const sim::Cta& cta) const;  // all its threads

 private:
  // The warps whose last setmaxnreg is this one.
  struct Role {
    uint32_t pc, warps, registers, step;  // step: how many more each of its threads could have
  };
  std::vector<Role> roles(const sim::Cta& cta) const;
  bool complete(const sim::Cta& cta) const;
  std::string advice(const std::vector<Role>& roles) const;

  Report report_;
  const std::vector<const ptx::Instruction*>& program_;
  std::set<std::pair<uint32_t, uint32_t>> executed_;        // CTA rank and place
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> last_;  // by CTA rank and warp: the place
};

}  // namespace tw::check
