#include "tilewright/ptx/opcode.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "tilewright/base/error.h"
#include "tilewright/ptx/opcode_table.h"

// Reads the rows of opcode_table.cpp.
namespace tw::ptx {
namespace {

using Words = std::vector<std::string_view>;

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

Words split(std::string_view s, char separator) {
  Words out;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size() && (s[i] == '(' || s[i] == '[' || s[i] == '<')) ++depth;
    if (i < s.size() && (s[i] == ')' || s[i] == ']' || s[i] == '>')) --depth;
    if (i == s.size() || (s[i] == separator && depth == 0)) {
      out.push_back(trim(s.substr(start, i - start)));
      start = i + 1;
    }
  }
  return out;
}

int number(std::string_view s) {
  int n = 0;
  const auto result = std::from_chars(s.data(), s.data() + s.size(), n);
  require(result.ec == std::errc() && result.ptr == s.data() + s.size(), "opcode table: not a number");
  return n;
}

class Reader {
 public:
  void read(std::string_view rows) {
    while (!rows.empty()) {
      const size_t end = std::min(rows.find('\n'), rows.size());
      const std::string_view line = trim(rows.substr(0, end));
      rows.remove_prefix(std::min(end + 1, rows.size()));
      if (line.empty() || line.front() == '#') continue;
      if (line.front() == '@') {
        const size_t equals = line.find('=');
        sets_[trim(line.substr(1, equals - 1))] = values(trim(line.substr(equals + 1)));
      } else {
        row(line);
      }
    }
  }
  std::vector<Form> forms;

 private:
  // "a|b|@set|m64n<8..256:8>k16"
  Words values(std::string_view text) {
    Words out;
    for (std::string_view word : split(text, '|')) {
      if (word.front() == '@') {
        const auto it = sets_.find(word.substr(1));
        require(it != sets_.end(), "opcode table: unknown set");
        out.insert(out.end(), it->second.begin(), it->second.end());
      } else if (const size_t open = word.find('<'); open != word.npos) {
        const size_t dots = word.find("..", open), colon = word.find(':', dots),
                     close = word.find('>', colon);
        const int step = number(word.substr(colon + 1, close - colon - 1));
        const int last = number(word.substr(dots + 2, colon - dots - 2));
        for (int n = number(word.substr(open + 1, dots - open - 1)); n <= last; n += step)
          out.push_back(intern(tw::format("{}{}{}", word.substr(0, open), n, word.substr(close + 1))));
      } else {
        out.push_back(word);
      }
    }
    return out;
  }

  void row(std::string_view line) {
    Form form;
    const size_t semicolon = line.find(';');
    if (semicolon != line.npos)
      for (std::string_view property : split(line.substr(semicolon + 1), ' ')) set_property(form, property);
    line = trim(line.substr(0, semicolon));
    const size_t space = std::min(line.find(' '), line.size());
    form.text = line.substr(0, space);
    form.operands_text = trim(line.substr(space));
    const size_t end = std::min(form.text.find_first_of(".{"), form.text.size());
    form.opcode = form.text.substr(0, end);
    modifiers(form, form.text.substr(end));
    if (!form.operands_text.empty())
      for (std::string_view operand : split(form.operands_text, ',')) form.operands.push_back(spec(operand));
    forms.push_back(std::move(form));
  }

  static void set_property(Form& form, std::string_view property) {
    if (property == "branches") form.branches = true;
    else if (property == "ends") form.ends = true;
    else form.arch = property;
  }

  void modifiers(Form& form, std::string_view text) {
    int bracket = 0, brackets = 0;
    while (!text.empty()) {
      if (text.front() == '{') bracket = ++brackets;
      if (text.front() == '}') bracket = 0;
      if (text.front() != '.') {
        text.remove_prefix(1);
        continue;
      }
      text.remove_prefix(1);
      ModifierGroup group;
      group.bracket = bracket;
      const size_t end = std::min(text.find_first_of(".{}("), text.size());
      group.name = text.substr(0, end);
      text.remove_prefix(end);
      if (!text.empty() && text.front() == '(') {
        const size_t close = text.find(')');
        group.values = values(text.substr(1, close - 1));
        text.remove_prefix(close + 1);
      } else {
        group.values = values(group.name);
        if (group.name.front() == '@') group.name.remove_prefix(1);
      }
      form.modifiers.push_back(std::move(group));
    }
    require(form.modifiers.size() <= std::tuple_size_v<Assignment>,
            "opcode table: too many modifiers in a row");
  }

  static Count count_from(std::string_view text, OperandSpec& spec) {
    static const std::map<std::string_view, Count> names{
        {"vec", Count::vec},         {"num", Count::num},         {"pack", Count::pack},
        {"any", Count::any},         {"mma_a", Count::mma_a},     {"mma_b", Count::mma_b},
        {"mma_c", Count::mma_c},     {"mma_d", Count::mma_d},     {"wmma", Count::wmma},
        {"wgmma_a", Count::wgmma_a}, {"wgmma_d", Count::wgmma_d}, {"tmem", Count::tmem}};
    if (const auto it = names.find(text); it != names.end()) return it->second;
    spec.fixed_count = number(text);
    return Count::fixed;
  }

  static OperandSpec spec(std::string_view text) {
    OperandSpec s;
    if (const size_t q = text.find('?'); q != text.npos) {
      if (q + 1 == text.size()) s.optional = true;
      else s.only_if = split(text.substr(q + 1), '|');
      text = text.substr(0, q);
    }
    if (text.front() == '[' || text.front() == '<') {
      s.kind = text.front() == '[' ? OperandKind::address : OperandKind::tensor;
      text = text.substr(1, text.size() - 2);
      access(s, text);
      s.name = text;
      return s;
    }
    if (text.front() == '&' || text.front() == '*' || text.front() == '(') {
      s.kind = text.front() == '&'   ? OperandKind::label
               : text.front() == '*' ? OperandKind::callee
                                     : OperandKind::list;
      s.read = s.kind == OperandKind::callee || text != "(results)";
      s.written = !s.read;
      s.name = text.front() == '(' ? text.substr(1, text.size() - 2) : text.substr(1);
      return s;
    }
    access(s, text);
    s.constant = s.read && !s.written;
    if (const size_t slash = text.find('/'); slash != text.npos) {
      for (const char flag : text.substr(slash)) value_flag(s, flag);
      text = text.substr(0, slash);
    }
    if (const size_t bar = text.find('|'); bar != text.npos) {
      s.second = text.substr(bar, 2) == "||" ? OperandSpec::Second::required : OperandSpec::Second::optional;
      text = text.substr(0, bar);
    }
    if (const size_t star = text.find('*'); star != text.npos) {
      s.count = count_from(text.substr(star + 1), s);
      text = text.substr(0, star);
    }
    const size_t colon = std::min(text.find(':'), text.size());
    s.name = text.substr(0, colon);
    if (colon < text.size()) s.type = text.substr(colon + 1);
    if (s.type.starts_with("wide(")) {
      s.wide = true;
      s.type = s.type.substr(5, s.type.size() - 6);
    }
    return s;
  }

  static void access(OperandSpec& s, std::string_view& text) {
    const char mark = text.front();
    s.written = mark == '=' || mark == '+';
    s.read = mark != '=' && mark != '.';
    if (mark == '=' || mark == '+' || mark == '.') text.remove_prefix(1);
  }

  static void value_flag(OperandSpec& s, char flag) {
    switch (flag) {
      case '/': break;
      case '_': s.sink = true; break;
      case 's': s.symbol = true; break;
      case '%': s.special = true; break;
      case 'r': s.constant = false; break;
      case 'i': s.reg = false; break;
      case '!': s.negatable = true; break;
      default: require(false, "opcode table: unknown operand flag");
    }
  }

  std::map<std::string_view, Words> sets_;
};

struct Table {
  std::vector<Form> forms;
  std::unordered_map<std::string_view, std::span<const Form>> by_opcode;
  std::unordered_map<std::string_view, std::string_view> rejected;

  Table() {
    Reader reader;
    reader.read(opcode_rows);
    forms = std::move(reader.forms);
    std::stable_sort(forms.begin(), forms.end(),
                     [](const Form& a, const Form& b) { return a.opcode < b.opcode; });
    for (size_t i = 0, j; i < forms.size(); i = j) {
      for (j = i; j < forms.size() && forms[j].opcode == forms[i].opcode;) ++j;
      by_opcode[forms[i].opcode] = std::span(forms).subspan(i, j - i);
    }
    for (std::string_view line : split(rejected_rows, '\n')) {
      const size_t colon = line.find(':');
      if (colon == line.npos) continue;
      for (std::string_view opcode : split(trim(line.substr(colon + 1)), ' '))
        rejected[opcode] = line.substr(0, colon);
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

bool ModifierGroup::takes(std::string_view word) const {
  return std::find(values.begin(), values.end(), word) != values.end();
}

std::string syntax(const Form& form) {
  std::string out;
  int depth = 0;
  for (const char c : form.text) {
    depth += c == '(';
    if (depth == 0 && c != '@') out += c;
    depth -= c == ')';
  }
  bool first = true;
  for (const OperandSpec& s : form.operands) {
    std::string text(s.name);
    if (s.kind == OperandKind::address) text = tw::format("[{}]", s.name);
    if (s.kind == OperandKind::tensor) text = tw::format("[{}, {{coordinates}}]", s.name);
    if (s.kind == OperandKind::list) text = tw::format("({})", s.name);
    if (s.count != Count::scalar && s.count != Count::vec) text = tw::format("{{{}...}}", s.name);
    if (s.second == OperandSpec::Second::optional) text += "[|q]";
    if (s.second == OperandSpec::Second::required) text += "|q";
    const bool may_lack = s.optional || !s.only_if.empty();
    out += first ? " " : may_lack ? "{, " : ", ";
    out += text;
    if (may_lack && !first) out += '}';
    first = false;
  }
  return out;
}

std::span<const Form> forms() { return table().forms; }

std::span<const Form> forms(std::string_view opcode) {
  const auto it = table().by_opcode.find(opcode);
  return it == table().by_opcode.end() ? std::span<const Form>{} : it->second;
}

bool rejected_opcode(std::string_view opcode, std::string_view& why) {
  const auto it = table().rejected.find(opcode);
  if (it == table().rejected.end()) return false;
  why = it->second;
  return true;
}

}  // namespace tw::ptx
