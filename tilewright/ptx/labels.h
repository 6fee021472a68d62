#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tilewright/ptx/module.h"

namespace tw::ptx {

// Where the branches of a function go. A label is known in the scope that holds it and in the scopes inside,
// so the same name may stand in several scopes (each expansion of an inline assembly block has its own).
class Labels {
 public:
  explicit Labels(const Function& f);

  // Statement that holds label `name`, as seen from statement `from`.
  std::optional<size_t> find(std::string_view name, size_t from) const;
  // Statements an instruction may branch to: one of bra, the whole list of brx.idx in its order, none of
  // others. A missing label is a user error at the instruction.
  std::vector<size_t> targets(size_t statement) const;

 private:
  const Function& function_;
  std::vector<uint32_t> scope_;   // by statement
  std::vector<uint32_t> parent_;  // by scope; the outermost is 0, its own parent
  std::map<std::pair<uint32_t, std::string_view>, size_t> labels_;
};

}  // namespace tw::ptx
