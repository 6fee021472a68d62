#include "tilewright/ptx/labels.h"

#include "tilewright/base/error.h"
#include "tilewright/ptx/opcode.h"

namespace tw::ptx {

Labels::Labels(const Function& f) : function_(f), parent_{0} {
  uint32_t scope = 0;
  scope_.reserve(f.body.size());
  for (size_t i = 0; i < f.body.size(); ++i) {
    if (std::holds_alternative<ScopeClose>(f.body[i])) scope = parent_[scope];
    scope_.push_back(scope);
    if (std::holds_alternative<ScopeOpen>(f.body[i])) {
      parent_.push_back(scope);
      scope = uint32_t(parent_.size() - 1);
    }
    if (const auto* label = std::get_if<Label>(&f.body[i]))
      labels_.emplace(std::pair(scope, std::string_view(label->name)), i);
  }
}

std::optional<size_t> Labels::find(std::string_view name, size_t from) const {
  for (uint32_t scope = scope_.at(from);; scope = parent_[scope]) {
    if (const auto it = labels_.find({scope, name}); it != labels_.end()) return it->second;
    if (scope == 0) return std::nullopt;
  }
}

std::vector<size_t> Labels::targets(size_t statement) const {
  const auto* inst = std::get_if<Instruction>(&function_.body.at(statement));
  if (!inst || !inst->form || !inst->form->branches) return {};
  const auto resolve = [&](std::string_view name) {
    const auto found = find(name, statement);
    if (!found) user_error(inst->loc, "there is no label '{}' in this function", name);
    return *found;
  };
  const size_t first = resolve(inst->operands.back().as<Symbol>()->name);
  if (inst->opcode() == "bra") return {first};
  // brx.idx names a label that stands before ".branchtargets a, b, c;".
  size_t at = first + 1;
  while (at < function_.body.size() && std::holds_alternative<Comment>(function_.body[at])) ++at;
  const auto* list = at < function_.body.size() ? std::get_if<Directive>(&function_.body[at]) : nullptr;
  constexpr std::string_view keyword = ".branchtargets ";
  if (!list || !list->text.starts_with(keyword))
    user_error(inst->loc, "'{}' is no list of branch targets", inst->operands.back().as<Symbol>()->name);
  std::vector<size_t> out;
  std::string_view rest = std::string_view(list->text).substr(keyword.size());
  while (!rest.empty()) {
    const size_t start = rest.find_first_not_of(" ,;");
    if (start == rest.npos) break;
    const size_t end = std::min(rest.find_first_of(" ,;", start), rest.size());
    out.push_back(resolve(rest.substr(start, end - start)));
    rest.remove_prefix(end);
  }
  return out;
}

}  // namespace tw::ptx
