#include <algorithm>
#include <set>
#include <unordered_map>

#include "tilewright/base/error.h"
#include "tilewright/ptx/opcode.h"
#include "tilewright/ptx/opcode_resolve.h"

// Fits opcode text and operands to the rows of the opcode table.
namespace tw::ptx {
namespace {

using Words = std::span<const std::string_view>;

// Assigns `words` (the tokens after the opcode) to a form's groups: first in the order of the row; then, with
// `permuted`, in any order after the leading fixed words.
class ModifierMatch {
 public:
  ModifierMatch(const Form& form, Words words) : form_(form), words_(words) { assignment_.fill(-1); }

  bool in_order() { return ordered(0, 0); }
  bool permuted() {
    size_t lead = 0;
    while (lead < form_.modifiers.size() && form_.modifiers[lead].fixed()) {
      if (lead >= words_.size() || words_[lead] != form_.modifiers[lead].name) return false;
      assignment_[lead] = int8_t(lead + 1);
      ++lead;
    }
    return any_order(lead);
  }
  const Assignment& assignment() const { return assignment_; }
  size_t reached() const { return reached_; }  // words that could be taken in order
  // Groups that were asked to take the first word that could not be.
  std::span<const ModifierGroup* const> wanted() const {
    return tried_ == reached_ ? std::span<const ModifierGroup* const>(wanted_)
                              : std::span<const ModifierGroup* const>();
  }

 private:
  bool take(size_t group, size_t word) {
    if (word >= tried_) {
      if (word > tried_) wanted_.clear();
      tried_ = word;
      wanted_.push_back(&form_.modifiers[group]);
    }
    if (word >= words_.size() || !form_.modifiers[group].takes(words_[word])) return false;
    assignment_[group] = int8_t(word + 1);
    reached_ = std::max(reached_, word + 1);
    return true;
  }

  bool ordered(size_t group, size_t word) {
    const auto& groups = form_.modifiers;
    if (group == groups.size()) return word == words_.size();
    size_t end = group + 1;  // of a bracket
    if (groups[group].bracket != 0)
      while (end < groups.size() && groups[end].bracket == groups[group].bracket) ++end;
    size_t g = group;
    while (g < end && take(g, word + (g - group))) ++g;
    if (g == end && ordered(end, word + (end - group))) return true;
    for (size_t i = group; i < end; ++i) assignment_[i] = -1;
    return groups[group].bracket != 0 && ordered(end, word);
  }

  bool any_order(size_t word) {
    const auto& groups = form_.modifiers;
    if (word == words_.size()) {
      for (size_t g = 0; g < groups.size(); ++g) {
        if (assignment_[g] >= 0) continue;
        if (groups[g].bracket == 0) return false;
        for (size_t h = 0; h < groups.size(); ++h)
          if (groups[h].bracket == groups[g].bracket && assignment_[h] >= 0) return false;
      }
      return true;
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      if (assignment_[g] >= 0 || !groups[g].takes(words_[word])) continue;
      assignment_[g] = int8_t(word + 1);
      if (any_order(word + 1)) return true;
      assignment_[g] = -1;
    }
    return false;
  }

  const Form& form_;
  Words words_;
  Assignment assignment_;
  size_t reached_ = 0, tried_ = 0;
  std::vector<const ModifierGroup*> wanted_;
};

std::vector<std::string_view> split_dots(std::string_view text) {
  std::vector<std::string_view> out;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '.') continue;
    out.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

constexpr size_t most_words = 40;  // no instruction has as many; bounds the search

OpcodeText match_opcode(std::string_view text) {
  OpcodeText out;
  const auto parts = split_dots(text);
  if (parts.size() > most_words) return out;
  const auto rows = forms(parts.front());
  const Words words = Words(parts).subspan(1);
  for (const bool permuted : {false, true}) {
    for (const Form& form : rows) {
      ModifierMatch match(form, words);
      if (words.size() <= form.modifiers.size() && (permuted ? match.permuted() : match.in_order()))
        out.candidates.push_back({&form, match.assignment(), {}});
    }
    if (!out.candidates.empty()) break;
  }
  if (out.candidates.empty()) return out;
  for (const auto& part : parts) out.tokens.push_back(intern(part));
  for (auto& candidate : out.candidates) resolve_operands(out, candidate);
  return out;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string joined(const std::vector<std::string>& words, std::string_view separator, size_t most) {
  std::string out;
  for (size_t i = 0; i < words.size() && i < most; ++i) out += (i ? std::string(separator) : "") + words[i];
  if (words.size() > most) out += tw::format("{}... ({} more)", separator, words.size() - most);
  return out;
}

}  // namespace

const OpcodeText* find_opcode(std::string_view text) {
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  static thread_local std::unordered_map<std::string, OpcodeText, Hash, std::equal_to<>> known;
  if (const auto it = known.find(text); it != known.end()) return &it->second;
  OpcodeText found = match_opcode(text);
  if (found.candidates.empty()) return nullptr;
  return &known.emplace(std::string(text), std::move(found)).first->second;
}

OpcodeComplaint explain_opcode(std::string_view text) {
  const auto parts = split_dots(text.substr(0, 4096));
  const std::string_view opcode = parts.front();
  if (std::string_view why; rejected_opcode(opcode, why) && forms(opcode).empty())
    return {0, tw::format("'{}': {}", opcode, why)};
  const auto rows = forms(opcode);
  if (rows.empty()) {
    std::vector<std::pair<size_t, std::string_view>> near;
    std::set<std::string_view> seen;
    for (const Form& form : forms())
      if (seen.insert(form.opcode).second)
        near.emplace_back(edit_distance(opcode.substr(0, 64), form.opcode), form.opcode);
    std::sort(near.begin(), near.end());
    std::string message = tw::format("unknown opcode '{}'", opcode.substr(0, 64));
    if (near.front().first <= 2) {
      message += "; did you mean ";
      for (size_t i = 0; i < 3 && near[i].first <= near.front().first; ++i)
        message += tw::format("{}'{}'", i ? ", " : "", near[i].second);
      message += "?";
    }
    return {0, message};
  }
  // The forms that take the most words before the first misfit are the nearest ones.
  const Words words = Words(parts).subspan(1);
  const Words bounded = words.first(std::min(words.size(), most_words));
  size_t best = 0;
  std::vector<std::string> nearest, wanted;
  const auto add = [](std::vector<std::string>& list, std::string item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
  };
  for (const Form& form : rows) {
    ModifierMatch match(form, bounded);
    match.in_order();
    if (match.reached() < best) continue;
    if (match.reached() > best) {
      nearest.clear();
      wanted.clear();
    }
    best = match.reached();
    add(nearest, syntax(form));
    for (const ModifierGroup* group : match.wanted())
      for (std::string_view value : group->values) add(wanted, tw::format(".{}", value));
  }
  std::string hint;
  if (!wanted.empty()) hint += tw::format("; expected {}", joined(wanted, " ", 24));
  hint += tw::format("; nearest: {}", joined(nearest, "; ", 4));
  if (best == words.size())
    return {text.size(), tw::format("'{}' lacks a modifier{}", text.substr(0, 128), hint)};
  const size_t at = size_t(words[best].data() - text.data()) - 1;  // its dot
  return {at, tw::format("'.{}' does not fit here in '{}'{}", words[best].substr(0, 64), text.substr(0, 128),
                         hint)};
}

namespace {

class OperandMatch {
 public:
  OperandMatch(const OpcodeText::Candidate& candidate, std::span<const Operand> operands,
               const std::function<bool(RegId)>& is_predicate)
      : specs_(candidate.operands), operands_(operands), is_predicate_(is_predicate) {}

  bool run() { return from(0, 0); }
  const OperandComplaint& complaint() const { return complaint_; }

 private:
  bool from(size_t spec, size_t operand) {
    if (spec == specs_.size()) {
      if (operand == operands_.size()) return true;
      return blame(operand, specs_.empty() ? "no operand" : "the end of the instruction");
    }
    const ResolvedOperand& s = specs_[spec];
    if (operand < operands_.size()) {
      if (fits(s, operands_[operand])) {
        if (from(spec + 1, operand + 1)) return true;
      } else {
        blame(operand, describe(s));
      }
    } else if (!s.spec->optional) {
      blame(operand, describe(s));
    }
    return s.spec->optional && from(spec + 1, operand);
  }

  bool blame(size_t operand, std::string wanted) {
    if (complaint_.message.empty() || operand > complaint_.operand) complaint_ = {operand, std::move(wanted)};
    return false;
  }

  static std::string describe(const ResolvedOperand& r) {
    const OperandSpec& s = *r.spec;
    switch (s.kind) {
      case OperandKind::address: return tw::format("an address [{}]", s.name);
      case OperandKind::tensor: return tw::format("a tensor address [{}, {{coordinates}}]", s.name);
      case OperandKind::label: return tw::format("a label ({})", s.name);
      case OperandKind::callee: return "a function or a register with its address";
      case OperandKind::list: return tw::format("({})", s.name);
      case OperandKind::value: break;
    }
    std::string what = r.type == "pred" ? "a predicate"
                       : !s.reg         ? "a constant"
                       : s.constant     ? "a register or constant"
                                        : "a register";
    if (r.type != "pred" && !r.type.empty())
      what += tw::format(" of {}type {}", s.wide ? "twice " : "", r.type);
    if (r.count > 0) what = tw::format("a vector of {} elements, each {}", r.count, what);
    if (r.count < 0) what = tw::format("a vector, each element {}", what);
    if (s.second == OperandSpec::Second::required) what = tw::format("a pair {}|predicate", s.name);
    return tw::format("{} ({})", what, s.name);
  }

  bool fits(const ResolvedOperand& r, const Operand& o) const {
    switch (r.spec->kind) {
      case OperandKind::address: return o.is<Address>();
      case OperandKind::tensor: return o.is<TensorAddress>();
      case OperandKind::label: return o.is<Symbol>();
      case OperandKind::callee: return o.is<Symbol>() || o.is<RegOperand>();
      case OperandKind::list: return o.is<List>();
      case OperandKind::value: return value_fits(r, o);
    }
    return false;
  }

  bool value_fits(const ResolvedOperand& r, const Operand& o) const {
    if (const auto* both = o.as<Pair>()) {
      if (r.spec->second == OperandSpec::Second::no) return false;
      return half_fits(both->both[0], r.type == "pred") && half_fits(both->both[1], true);
    }
    if (r.spec->second == OperandSpec::Second::required) return false;
    if (r.count == 0) return scalar_fits(r, o);
    const auto* v = o.as<Vector>();
    if (!v || v->elements.empty() || (r.count > 0 && v->elements.size() != size_t(r.count))) return false;
    return std::all_of(v->elements.begin(), v->elements.end(),
                       [&](const Operand& e) { return scalar_fits(r, e); });
  }

  bool half_fits(const Operand& o, bool predicate) const {
    if (o.is<Sink>()) return true;
    const auto* r = o.as<RegOperand>();
    return r && !r->negated && (!is_predicate_ || is_predicate_(r->reg) == predicate);
  }

  bool scalar_fits(const ResolvedOperand& r, const Operand& o) const {
    const OperandSpec& s = *r.spec;
    if (const auto* reg = o.as<RegOperand>()) {
      const bool predicate = r.type == "pred";
      return s.reg && (!reg->negated || (s.negatable && predicate)) &&
             (r.type.empty() || !is_predicate_ || is_predicate_(reg->reg) == predicate);
    }
    if (o.is<Immediate>()) return s.constant;
    if (o.is<Sink>()) return s.sink;
    if (o.is<Symbol>()) return s.symbol;
    if (o.is<SpecialReg>()) return s.special;
    return false;
  }

  std::span<const ResolvedOperand> specs_;
  std::span<const Operand> operands_;
  const std::function<bool(RegId)>& is_predicate_;
  OperandComplaint complaint_;
};

}  // namespace

const Form* match_operands(const OpcodeText& text, std::span<const Operand> operands,
                           const std::function<bool(RegId)>& is_predicate, OperandComplaint& complaint) {
  complaint = {};
  std::vector<std::string> wanted;
  for (const auto& candidate : text.candidates) {
    OperandMatch match(candidate, operands, is_predicate);
    if (match.run()) return candidate.form;
    const OperandComplaint& c = match.complaint();
    if (wanted.empty() || c.operand > complaint.operand) {
      wanted.clear();
      complaint.operand = c.operand;
    }
    if (c.operand == complaint.operand && std::find(wanted.begin(), wanted.end(), c.message) == wanted.end())
      wanted.push_back(c.message);
  }
  complaint.message = joined(wanted, ", or ", 6);
  return nullptr;
}

}  // namespace tw::ptx
